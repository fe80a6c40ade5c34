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
  kUsage = 2,          // The command line is wrong.
  kInput = 3,          // A file cannot be read or written, is malformed, or does not fit the store.
  kRefused = 4,        // INVALID_ARGUMENT, FAILED_PRECONDITION, OUT_OF_RANGE, or
                       // RESOURCE_EXHAUSTED without a retry delay.
  kNotFound = 5,       // NOT_FOUND.
  kAlreadyExists = 6,  // ALREADY_EXISTS.
  kUnavailable = 7,    // UNAVAILABLE, DEADLINE_EXCEEDED, or RESOURCE_EXHAUSTED with a retry delay.
  // A condition of --fail-if holds, a load test got a wrong answer, --find-max found no rate that
  // keeps --slo, or --verify could check no answer.
  kMissed = 8,
  // The figures of a load test do not describe the server, because the client was the bottleneck,
  // or did not send calls that were due.
  kInvalid = 9,
  kUnauthenticated = 10,   // UNAUTHENTICATED: the server does not know the caller.
  kPermissionDenied = 11,  // PERMISSION_DENIED: the caller is known but not allowed to do this.
};

// The exit codes as text for --help.
extern const char kExitCodeHelp[];

// The next six functions make errors that the tool itself detects. A payload in the status marks
// them as such. It tells ExitCodeOf() to return kUsage, kInput, kMissed or kInvalid, except for a
// NotServingError, whose exit code goes by its status code.
absl::Status UsageError(const std::string& message);
absl::Status InputError(const std::string& file, const std::string& message);
// Turns `error`, whose message already names the file, into an InputError.
absl::Status AsInputError(const absl::Status& error);
absl::Status MissedError(const std::string& message);
// A server answered that it takes no calls.
absl::Status NotServingError(const std::string& message);
absl::Status InvalidFiguresError(const std::string& message);

// Marks `error`, which may be OK, as that of a call to a server that answered an earlier call of
// this run. ErrorLine() then does not guess at what keeps the server from answering at all.
absl::Status AfterAnAnswer(const absl::Status& error);

// Returns `error` with "; " and `note` appended to its message.
absl::Status Annotate(const absl::Status& error, const std::string& note);

ExitCode ExitCodeOf(const absl::Status& status);

// Describes `status` on one line, for people: the stable reason or else the code, the message, and
// for some errors a hint at what to do. A field that the server's message names is shown as its
// flag, where there is one (field_flags.h). An error of the six functions above shows only its
// message. UNAVAILABLE or DEADLINE_EXCEEDED without a reason means that no answer came; the line
// then also names `server`. The hint may depend on `credentials`. The message and `server` pass
// through cli::TerminalText().
std::string ErrorLine(const absl::Status& status, const std::string& server,
                      const CredentialFiles& credentials = {});

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_EXIT_CODE_H_
