#ifndef SOFTLOOKUP_CLIENT_CPP_TLS_FAILURE_H_
#define SOFTLOOKUP_CLIENT_CPP_TLS_FAILURE_H_

#include "absl/status/status.h"

namespace softlookup::client_internal {

// Why a TLS handshake failed. Another try gives the same until someone changes the configuration.
enum class TlsFailure {
  kNone,             // Not a handshake, or one whose failure may pass.
  kUntrusted,        // No known authority signed the server's certificate, or it is out of date.
  kWrongHost,        // The server's certificate does not name the host.
  kPlaintextServer,  // The other side does not speak TLS.
};

// gRPC calls each of them UNAVAILABLE, so this reads its message.
TlsFailure TlsFailureOf(const absl::Status& status);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_TLS_FAILURE_H_
