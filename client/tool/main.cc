// `softlookup`: stores, appends, lookups and memories from the command line.
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/synchronization/mutex.h"
#include "client/cli/terminal_width.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/parse_error.h"

namespace {

// What a shell calls the end of a command by SIGPIPE, which some commands ignore while they work.
constexpr int kBrokenPipe = 128 + SIGPIPE;

// Whether standard output is a pipe whose reader has gone, as with `| head`.
bool NobodyReadsOutput() {
  pollfd output = {.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return poll(&output, 1, /*timeout=*/0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace

int main(int argc, char** argv) {
  using softlookup::tool::ExitCode;
  // Turn off the deadlock detection of Debian's Abseil: it takes one global lock whenever a mutex
  // is locked.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Silence gRPC, which logs every failed handshake. The tool's error line says the same once.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  CLI::App app("Soft lookups over a softlookup server", "softlookup");
  app.set_version_flag("--version", "softlookup " SOFTLOOKUP_VERSION_TEXT);
  softlookup::tool::Session session;
  session.terminal_width = softlookup::cli::TerminalWidth();
  softlookup::tool::AddEverything(&app, &session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (!softlookup::tool::IsMistake(app, error)) return app.exit(error);
    std::cerr << "softlookup: " << softlookup::tool::ParseErrorLine(app, error) << "\n";
    return static_cast<int>(ExitCode::kUsage);
  }
  absl::Status status = softlookup::tool::RunCommand(session);
  if (!std::cout.flush() && status.ok()) {
    if (NobodyReadsOutput()) return kBrokenPipe;
    status = absl::DataLossError("standard output cannot be written");
  }
  if (!status.ok()) {
    std::cerr << "softlookup: "
              << softlookup::tool::ErrorLine(status, session.server, session.credential_files)
              << "\n";
  }
  return static_cast<int>(softlookup::tool::ExitCodeOf(status));
}
