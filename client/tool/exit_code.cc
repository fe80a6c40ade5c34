#include "client/tool/exit_code.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/append_text.h"
#include "client/tool/connection_hint.h"
#include "client/tool/field_flags.h"
#include "softlookup/error_details.h"

namespace softlookup::tool {
namespace {

using cli::TerminalText;

constexpr char kUsageMark[] = "softlookup/usage";
constexpr char kInputMark[] = "softlookup/input";
constexpr char kMissedMark[] = "softlookup/missed";
constexpr char kInvalidMark[] = "softlookup/invalid";
constexpr char kNotServingMark[] = "softlookup/not-serving";
constexpr char kAnsweredMark[] = "softlookup/answered";

absl::Status Marked(const std::string& message, const char* mark,
                    absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  absl::Status status(code, message);
  status.SetPayload(mark, absl::Cord());
  return status;
}

bool HasMark(const absl::Status& status, const char* mark) {
  return status.GetPayload(mark).has_value();
}

// Returns a hint to add to the server's error message. Empty for most errors.
absl::string_view Hint(const absl::Status& status, absl::string_view reason) {
  if (reason == "STORE_NOT_FOUND") return " (`softlookup store list` shows those there are)";
  if (reason == "MEMORY_NOT_FOUND") return " (`softlookup store get` shows those beside average)";
  if (absl::IsUnauthenticated(status)) {
    return " (--token-file, or --tls-certificate with --tls-key, says who asks)";
  }
  return "";
}

// Returns the message on one line. Some messages, such as those of parsers, have several lines.
std::string MessageText(const absl::Status& status) {
  return TerminalText(
      absl::StrReplaceAll(WithFlagsForFields(status), {{"\r", " "}, {"\n", " "}, {"\t", " "}}));
}

}  // namespace

const char kExitCodeHelp[] =
    "Exit codes:\n"
    "  0  ok\n"
    "  1  any other failure\n"
    "  2  wrong usage\n"
    "  3  a file that cannot be read or written, is malformed or does not fit the store\n"
    "  4  refused by the server as invalid or over a limit\n"
    "  5  not found\n"
    "  6  already exists\n"
    "  7  the server is unavailable or overloaded, or did not answer in time\n"
    "  8  a load test got wrong answers, met a --fail-if, found no rate, or --verify checked no "
    "answer\n"
    "  9  a load test is invalid: this client was the bottleneck, or left calls out\n"
    "  10 the server does not know the token or the certificate, or was given none\n"
    "  11 the token or the certificate does not allow the call\n";

absl::Status UsageError(const std::string& message) { return Marked(message, kUsageMark); }

absl::Status InputError(const std::string& file, const std::string& message) {
  return Marked(absl::StrCat(file, ": ", message), kInputMark);
}

absl::Status AsInputError(const absl::Status& error) {
  return Marked(std::string(error.message()), kInputMark);
}

absl::Status MissedError(const std::string& message) { return Marked(message, kMissedMark); }

absl::Status NotServingError(const std::string& message) {
  return Marked(message, kNotServingMark, absl::StatusCode::kUnavailable);
}

absl::Status InvalidFiguresError(const std::string& message) {
  return Marked(message, kInvalidMark);
}

absl::Status AfterAnAnswer(const absl::Status& error) {
  absl::Status marked = error;
  if (!marked.ok()) marked.SetPayload(kAnsweredMark, absl::Cord());
  return marked;
}

absl::Status Annotate(const absl::Status& error, const std::string& note) {
  return client_internal::AppendText(error, absl::StrCat("; ", note));
}

ExitCode ExitCodeOf(const absl::Status& status) {
  if (HasMark(status, kUsageMark)) return ExitCode::kUsage;
  if (HasMark(status, kInputMark)) return ExitCode::kInput;
  if (HasMark(status, kMissedMark)) return ExitCode::kMissed;
  if (HasMark(status, kInvalidMark)) return ExitCode::kInvalid;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kResourceExhausted:
      return RetryDelay(status).has_value() ? ExitCode::kUnavailable : ExitCode::kRefused;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kRefused;
    case absl::StatusCode::kNotFound:
      return ExitCode::kNotFound;
    case absl::StatusCode::kAlreadyExists:
      return ExitCode::kAlreadyExists;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kUnavailable;
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kUnauthenticated;
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kPermissionDenied;
    default:
      return ExitCode::kOther;
  }
}

std::string ErrorLine(const absl::Status& status, const std::string& server,
                      const CredentialFiles& credentials) {
  std::string message = MessageText(status);
  const std::string reason = TerminalText(ErrorReason(status));
  if (!reason.empty()) return absl::StrCat(reason, ": ", message, Hint(status, reason));
  for (const char* mark : {kUsageMark, kInputMark, kMissedMark, kInvalidMark, kNotServingMark}) {
    if (HasMark(status, mark)) return message;
  }
  if (absl::IsUnavailable(status)) {
    return absl::StrCat("UNAVAILABLE: no answer from ", TerminalText(server), "; ",
                        ConnectionHint(status, credentials, HasMark(status, kAnsweredMark)), ": ",
                        message);
  }
  if (absl::IsDeadlineExceeded(status)) {
    return absl::StrCat("DEADLINE_EXCEEDED: no answer from ", TerminalText(server),
                        " in time (--timeout gives it longer): ", message);
  }
  return absl::StrCat(absl::StatusCodeToString(status.code()), ": ", message, Hint(status, ""));
}

}  // namespace softlookup::tool
