#ifndef SOFTLOOKUP_CLIENT_TOOL_EXIT_CODE_H_
#define SOFTLOOKUP_CLIENT_TOOL_EXIT_CODE_H_

#include <string>

#include "absl/status/status.h"
#include "softlookup/credentials.h"

namespace softlookup::tool {

// Scripts rely on these numbers: they never change.
enum class ExitCode {
  kOk = 0,
  kOther = 1,
  kUsage = 2,          // The command line.
  kInput = 3,          // A file: not to be read or written, malformed, or unfit for the store.
  kRefused = 4,        // INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE, RESOURCE_EXHAUSTED.
  kNotFound = 5,       // NOT_FOUND.
  kAlreadyExists = 6,  // ALREADY_EXISTS.
  kUnavailable = 7,    // UNAVAILABLE, DEADLINE_EXCEEDED, or a server that says to come back later.
  kMissed = 8,         // A load test: a condition of --fail-if, or a wrong answer.
  kInvalid = 9,        // A load test: its figures tell of the client, not of the server.
  kUnauthenticated = 10,   // UNAUTHENTICATED: the server does not know who asks.
  kPermissionDenied = 11,  // PERMISSION_DENIED: it knows, and does not allow it.
};

// The same, for --help.
extern const char kExitCodeHelp[];

// Errors that the tool finds itself. They carry a mark that ExitCodeOf() knows them by.
absl::Status UsageError(const std::string& message);
absl::Status InputError(const std::string& file, const std::string& message);
// An error whose message names the file already, as an input error.
absl::Status AsInputError(const absl::Status& error);
absl::Status MissedError(const std::string& message);
absl::Status InvalidFiguresError(const std::string& message);

// The same error with `note` behind its message, after a semicolon.
absl::Status Annotate(const absl::Status& error, const std::string& note);

ExitCode ExitCodeOf(const absl::Status& status);

// One line that says what went wrong, for people: the stable reason, or else the code, then the
// message, then what can be done about it. `server` is named if it cannot be reached; the hint may
// depend on which `credentials` were in use. Text of others is shown as TerminalText() does.
std::string ErrorLine(const absl::Status& status, const std::string& server,
                      const CredentialFiles& credentials = {});

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_EXIT_CODE_H_
