#include "client/tool/command.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/help_formatter.h"
#include "client/cpp/address.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/tool/credential_flags.h"
#include "client/tool/exit_code.h"
#include "client/tool/parse_error.h"
#include "client/tool/store_suggestion.h"
#include "client/tool/validators.h"

namespace softlookup::tool {
namespace {

// UsageError unless `server` is what Client::Connect() takes.
absl::Status CheckServer(const std::string& server) {
  const std::vector<std::string> addresses = client_internal::SplitServers(server);
  for (const std::string& address : addresses) {
    const std::string_view fault = client_internal::AddressFault(address);
    if (fault.empty()) continue;
    const std::string where = addresses.size() == 1 ? "" : absl::StrCat(" in \"", server, "\"");
    return UsageError(absl::StrCat("--server or SOFTLOOKUP_SERVER must be HOST:PORT, not \"",
                                   address, "\"", where, ": ",
                                   absl::string_view(fault.data(), fault.size())));
  }
  return absl::OkStatus();
}

// Adds to the help of `command` and its subcommands where to find the shared options.
void AddSharedFooter(CLI::App* command) {
  std::string footer = command->get_footer();
  if (!footer.empty()) footer += "\n\n";
  command->footer(footer +
                  "`softlookup --help` has the options of all commands, such as --server.");
  for (CLI::App* subcommand : command->get_subcommands({})) AddSharedFooter(subcommand);
}

// Prints the help of the command that `words` name, such as {"store", "create"}.
absl::Status PrintHelp(CLI::App* app, const std::vector<std::string>& words,
                       const Session& session) {
  CLI::App* command = app;
  std::string parents;
  for (const std::string& word : words) {
    absl::StrAppend(&parents, parents.empty() ? "" : " ", command->get_name());
    const std::vector<CLI::App*> commands = command->get_subcommands({});
    const auto named = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* each) { return each->check_name(word); });
    if (named == commands.end()) {
      return UsageError(
          absl::StrCat(UnknownCommandText(*command, word), " (see ", parents, " --help)"));
    }
    command = *named;
  }
  // App::help() would not do: for the whole tool, CLI11 prints the help of the subcommand that was
  // parsed, which is `help`.
  *session.out << command->get_formatter()->make_help(
      command, absl::StrCat(parents, parents.empty() ? "" : " ", command->get_name()),
      CLI::AppFormatMode::Normal);
  return absl::OkStatus();
}

void AddHelpCommand(CLI::App* app, Session* session) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help =
      app->add_subcommand("help", "Show the help of a command, as COMMAND --help does");
  help->add_option("COMMAND", *words,
                   "Command to explain, such as store create (default: softlookup itself)");
  help->callback([=] { session->run = [=] { return PrintHelp(app, *words, *session); }; });
}

// Makes options for whole numbers refuse negative ones, in `command` and its subcommands. CLI11
// itself refuses -1 for an option of 32 bits, but takes it as 2^64 - 1 for an option of 64 bits.
void RefuseNegativeCounts(CLI::App* command) {
  for (CLI::Option* option : command->get_options()) {
    const std::string type = option->get_type_name();
    if (!absl::StrContains(type, "UINT") && type != "N" && type != "ID,...") continue;
    option->check([option](const std::string& value) {
      if (!absl::StartsWith(value, "-")) return std::string();
      throw CLI::ConversionError(
          absl::StrCat("Could not convert: ", option->get_name(), " = ", value));
    });
  }
  for (CLI::App* subcommand : command->get_subcommands({})) RefuseNegativeCounts(subcommand);
}

}  // namespace

absl::StatusOr<Credentials> Session::ReadCredentials() const {
  return CredentialsFrom(credential_files);
}

absl::StatusOr<Client> Session::Connect(ClientOptions options) const {
  CLIENT_RETURN_IF_ERROR(CheckServer(server));
  if (timeout_s.has_value()) options.deadline = absl::Seconds(*timeout_s);
  CLIENT_ASSIGN_OR_RETURN(options.credentials, ReadCredentials());
  return Client::Connect(server, options);
}

absl::Duration Session::StreamDeadline() const {
  return timeout_s.has_value() ? absl::Seconds(*timeout_s) : absl::InfiniteDuration();
}

void Session::Print(output::Table* table) const { NoteHidden(PrintFitted(table)); }

std::size_t Session::PrintFitted(output::Table* table, const std::string& indent) const {
  std::size_t hidden = 0;
  if (!wide && terminal_width.has_value()) {
    hidden = table->HideColumns(*terminal_width - std::min(*terminal_width, indent.size()));
  }
  table->Print(out, indent);
  return hidden;
}

void Session::NoteHidden(std::size_t hidden) const {
  if (hidden > 0) *err << "(" << output::Counted(hidden, "column") << " more: -w)\n";
}

void AddEverything(CLI::App* app, Session* session) {
  if (session->terminal_width.has_value()) {
    app->formatter(std::make_shared<cli::HelpFormatter>(*session->terminal_width));
  }
  app->add_option("--server", session->server,
                  "Address of the server, HOST:PORT, or of several, with commas between them")
      ->envname("SOFTLOOKUP_SERVER")
      ->capture_default_str();
  app->add_option("--timeout", session->timeout_s,
                  "Seconds that a call may take (default 10; health: 2; streams, compact, backups, "
                  "restores: no limit)")
      ->check(Positive());
  app->add_option_function<std::string>(
         "-o,--output", [session](const std::string& format) { session->json = format == "json"; },
         "Format of standard output (default table)")
      ->check(CLI::IsMember({"table", "json"}));
  app->add_flag(
      "-w,--wide", session->wide,
      "Print all columns of tables; without this flag, those that do not fit the terminal are "
      "hidden");
  AddCredentialFlags(app, &session->credential_files);
  app->require_subcommand(1);
  app->fallthrough();
  AddStoreCommands(app, session);
  AddAppendCommand(app, session);
  AddImportCommand(app, session);
  AddLookupCommand(app, session);
  AddRowsCommands(app, session);
  AddAttendCommand(app, session);
  AddMemoryCommands(app, session);
  AddBackupCommands(app, session);
  AddTuneCommand(app, session);
  AddRecallCommand(app, session);
  AddLoadtestCommand(app, session);
  AddConsoleCommand(app, session);
  AddHealthCommand(app, session);
  AddTlsCommands(app, session);
  AddAuthCommands(app, session);
  AddClusterCommands(app, session);
  AddHelpCommand(app, session);
  for (CLI::App* command : app->get_subcommands({})) AddSharedFooter(command);
  RefuseNegativeCounts(app);
  app->footer(
      absl::StrCat("`softlookup COMMAND --help` has a command's options.\n\n", kExitCodeHelp));
}

absl::Status RunCommand(const Session& session) { return WithNearestStore(session.run(), session); }

}  // namespace softlookup::tool
