#include "client/tool/command.h"

#include "absl/time/time.h"
#include "client/tool/exit_code.h"

namespace softlookup::tool {

absl::StatusOr<Client> Session::Connect() const {
  if (server.empty()) return UsageError("--server is empty");
  ClientOptions options;
  if (timeout_s.has_value()) options.deadline = absl::Seconds(*timeout_s);
  return Client::Connect(server, options);
}

void AddEverything(CLI::App* app, Session* session) {
  app->add_option("--server", session->server, "Address of the server, HOST:PORT")
      ->envname("SOFTLOOKUP_SERVER")
      ->capture_default_str();
  app->add_option("--timeout", session->timeout_s,
                  "Seconds that a call may take (default 10; streams of rows and watches: no end)")
      ->check(CLI::PositiveNumber);
  app->add_option_function<std::string>(
         "-o,--output", [session](const std::string& format) { session->json = format == "json"; },
         "What to print on standard output (default table)")
      ->check(CLI::IsMember({"table", "json"}));
  app->require_subcommand(1);
  app->fallthrough();
  app->footer(kExitCodeHelp);
  AddStoreCommands(app, session);
  AddAppendCommand(app, session);
  AddLookupCommand(app, session);
  AddRowsCommands(app, session);
  AddAttendCommand(app, session);
  AddMemoryCommands(app, session);
  AddRecallCommand(app, session);
  AddHealthCommand(app, session);
}

}  // namespace softlookup::tool
