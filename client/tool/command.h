#ifndef SOFTLOOKUP_CLIENT_TOOL_COMMAND_H_
#define SOFTLOOKUP_CLIENT_TOOL_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "softlookup/client.h"
#include "softlookup/credentials.h"

namespace softlookup::tool {

// One run of the tool: what every command shares.
struct Session {
  std::string server = "127.0.0.1:7471";
  std::optional<double> timeout_s;  // > 0.
  bool json = false;
  CredentialFiles credential_files;
  std::ostream* out = &std::cout;
  std::ostream* err = &std::cerr;  // For people, beside what scripts read on `out`.

  // What parsing chose to do; set by the command that was named.
  std::function<absl::Status()> run;

  // What the files of `credential_files` hold.
  absl::StatusOr<Credentials> ReadCredentials() const;
  absl::StatusOr<Client> Connect() const;
};

// Each adds one group of commands and their options to `app`. `session` must outlive it.
void AddStoreCommands(CLI::App* app, Session* session);
void AddAppendCommand(CLI::App* app, Session* session);
void AddImportCommand(CLI::App* app, Session* session);
void AddLookupCommand(CLI::App* app, Session* session);
void AddRowsCommands(CLI::App* app, Session* session);
void AddAttendCommand(CLI::App* app, Session* session);
void AddMemoryCommands(CLI::App* app, Session* session);
void AddBackupCommands(CLI::App* app, Session* session);
void AddRecallCommand(CLI::App* app, Session* session);
void AddLoadtestCommand(CLI::App* app, Session* session);
void AddHealthCommand(CLI::App* app, Session* session);
void AddTlsCommands(CLI::App* app, Session* session);
void AddAuthCommands(CLI::App* app, Session* session);

// The options in front of the command, then all of the above.
void AddEverything(CLI::App* app, Session* session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_COMMAND_H_
