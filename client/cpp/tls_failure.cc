#include "client/cpp/tls_failure.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace softlookup::client_internal {

TlsFailure TlsFailureOf(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return TlsFailure::kNone;
  // OpenSSL writes "certificate verify failed", BoringSSL "CERTIFICATE_VERIFY_FAILED".
  const std::string message =
      absl::StrReplaceAll(absl::AsciiStrToLower(status.message()), {{"_", " "}});
  if (absl::StrContains(message, "is not in peer certificate")) return TlsFailure::kWrongHost;
  if (!absl::StrContains(message, "ssl handshake failed")) return TlsFailure::kNone;
  if (absl::StrContains(message, "certificate verify failed")) return TlsFailure::kUntrusted;
  if (absl::StrContains(message, "wrong version number")) return TlsFailure::kPlaintextServer;
  return TlsFailure::kNone;
}

}  // namespace softlookup::client_internal
