#ifndef SOFTLOOKUP_CLIENT_TOOL_COMMAND_H_
#define SOFTLOOKUP_CLIENT_TOOL_COMMAND_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <iostream>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/output/table.h"
#include "softlookup/client.h"
#include "softlookup/credentials.h"

namespace softlookup::tool {

// State of one run of the tool that all commands share.
struct Session {
  std::string server = "127.0.0.1:7471";  // Of several servers: addresses with commas.
  std::optional<double> timeout_s;        // Deadline of a call, > 0. Unset: the command's default.
  bool json = false;
  CredentialFiles credential_files;
  std::ostream* out = &std::cout;
  std::ostream* err = &std::cerr;  // Messages for people; scripts read `out`.
  // Columns of a line of the terminal `out`. Unset: `out` is not a terminal.
  std::optional<std::size_t> terminal_width;
  bool wide = false;  // Print all columns of a table, whatever the terminal's width.

  // Runs the command. Parsing the command line sets this.
  std::function<absl::Status()> run;

  // Prints a table to `out`. Unless `wide` is set, hides columns that the terminal has no room for,
  // and says so on `err`.
  void Print(output::Table* table) const;
  // Prints a table as Print() does, but says nothing on `err`. Returns the number of columns that
  // it hid, for one NoteHidden() about several tables. `indent` goes before each line.
  std::size_t PrintFitted(output::Table* table, const std::string& indent = "") const;
  // Says on `err` that `hidden` columns are hidden. Says nothing if `hidden` is 0.
  void NoteHidden(std::size_t hidden) const;
  // Reads and checks the files that `credential_files` names. The errors are those of
  // CredentialsFrom() (credential_flags.h).
  absl::StatusOr<Credentials> ReadCredentials() const;
  // Returns the deadline of a stream of rows or memories: `timeout_s`, or InfiniteDuration if that
  // is unset.
  absl::Duration StreamDeadline() const;
  // Returns a client of `server`, which connects with its first call. Ignores the credentials in
  // `options`, and uses those that ReadCredentials() reads. If `timeout_s` is set, it replaces the
  // deadline in `options`. UsageError if `server` is not HOST:PORT, or a list of such. Also returns
  // the errors of ReadCredentials().
  absl::StatusOr<Client> Connect(ClientOptions options = {}) const;
};

// Each function below adds one group of commands and their options to `app`. `session` must outlive
// `app`.
void AddStoreCommands(CLI::App* app, Session* session);
void AddAppendCommand(CLI::App* app, Session* session);
void AddImportCommand(CLI::App* app, Session* session);
void AddLookupCommand(CLI::App* app, Session* session);
void AddRowsCommands(CLI::App* app, Session* session);
void AddAttendCommand(CLI::App* app, Session* session);
void AddMemoryCommands(CLI::App* app, Session* session);
void AddBackupCommands(CLI::App* app, Session* session);
void AddTuneCommand(CLI::App* app, Session* session);
void AddRecallCommand(CLI::App* app, Session* session);
void AddLoadtestCommand(CLI::App* app, Session* session);
void AddConsoleCommand(CLI::App* app, Session* session);
void AddHealthCommand(CLI::App* app, Session* session);
void AddTlsCommands(CLI::App* app, Session* session);
void AddAuthCommands(CLI::App* app, Session* session);
void AddClusterCommands(CLI::App* app, Session* session);

// Adds the options that all commands share, all commands above, and the command `help`. Set
// session->terminal_width before. `session` must outlive `app`.
void AddEverything(CLI::App* app, Session* session);

// Runs the command that the parsed command line names. If the command fails because a store does
// not exist, the error suggests a store with a similar name, if WithNearestStore() finds one.
absl::Status RunCommand(const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_COMMAND_H_
