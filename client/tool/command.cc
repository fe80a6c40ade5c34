#include "client/tool/command.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cpp/status_macros.h"
#include "client/tool/credential_flags.h"
#include "client/tool/exit_code.h"
#include "client/tool/validators.h"

namespace softlookup::tool {
namespace {

// UsageError unless `server` looks like HOST:PORT. gRPC accepts other forms too, and its errors for
// an unusable address are obscure.
absl::Status CheckServer(const std::string& server) {
  const char* wrong = "";
  if (server.empty()) {
    wrong = "it is empty";
  } else if (absl::StartsWith(server, "http") && absl::StrContains(server, "://")) {
    wrong = "leave out http://";
  } else if (!absl::StrContains(server, ':')) {
    wrong = "the port is missing";
  } else {
    return absl::OkStatus();
  }
  return UsageError(absl::StrCat("--server or SOFTLOOKUP_SERVER must be HOST:PORT, not \"", server,
                                 "\": ", wrong));
}

// Adds to the help of `command` and its subcommands where to find the shared options.
void AddSharedFooter(CLI::App* command) {
  std::string footer = command->get_footer();
  if (!footer.empty()) footer += "\n";
  command->footer(footer +
                  "`softlookup --help` has the options of all commands, such as --server.");
  for (CLI::App* subcommand : command->get_subcommands({})) AddSharedFooter(subcommand);
}

}  // namespace

absl::StatusOr<Credentials> Session::ReadCredentials() const {
  return CredentialsFrom(credential_files);
}

absl::StatusOr<Client> Session::Connect() const {
  CLIENT_RETURN_IF_ERROR(CheckServer(server));
  ClientOptions options;
  if (timeout_s.has_value()) options.deadline = absl::Seconds(*timeout_s);
  CLIENT_ASSIGN_OR_RETURN(options.credentials, ReadCredentials());
  return Client::Connect(server, options);
}

void AddEverything(CLI::App* app, Session* session) {
  app->add_option("--server", session->server, "Address of the server, HOST:PORT")
      ->envname("SOFTLOOKUP_SERVER")
      ->capture_default_str();
  app->add_option("--timeout", session->timeout_s,
                  "Seconds that a call may take (default 10; streams of rows and watches: no end)")
      ->check(Positive());
  app->add_option_function<std::string>(
         "-o,--output", [session](const std::string& format) { session->json = format == "json"; },
         "Form of what is printed on standard output (default table)")
      ->check(CLI::IsMember({"table", "json"}));
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
  AddRecallCommand(app, session);
  AddLoadtestCommand(app, session);
  AddHealthCommand(app, session);
  AddTlsCommands(app, session);
  AddAuthCommands(app, session);
  for (CLI::App* command : app->get_subcommands({})) AddSharedFooter(command);
  app->footer(
      absl::StrCat("`softlookup COMMAND --help` has a command's options.\n\n", kExitCodeHelp));
}

}  // namespace softlookup::tool
