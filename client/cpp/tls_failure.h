#ifndef SOFTLOOKUP_CLIENT_CPP_TLS_FAILURE_H_
#define SOFTLOOKUP_CLIENT_CPP_TLS_FAILURE_H_

#include "absl/status/status.h"

namespace softlookup::client_internal {

// Why a TLS handshake failed. Unless the reason is kNone, a retry fails in the same way until the
// configuration changes.
enum class TlsFailure {
  kNone,             // No handshake failed, or a retry may succeed.
  kUntrusted,        // The server's certificate is out of date, or of no known authority.
  kWrongHost,        // The server's certificate does not name the host.
  kPlaintextServer,  // The server does not speak TLS.
};

// Finds the reason in the message that gRPC gave `status`. The code does not tell the reason,
// because every failure to connect has the code UNAVAILABLE.
TlsFailure TlsFailureOf(const absl::Status& status);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_TLS_FAILURE_H_
