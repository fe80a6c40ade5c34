#ifndef SOFTLOOKUP_CLIENT_CPP_TLS_FAILURE_H_
#define SOFTLOOKUP_CLIENT_CPP_TLS_FAILURE_H_

#include "absl/status/status.h"

namespace softlookup::client_internal {

// Why a TLS handshake failed. A retry fails in the same way until the configuration changes.
enum class TlsFailure {
  kNone,             // No handshake failed, or its failure may pass.
  kUntrusted,        // No known authority issued the server's certificate, or it is out of date.
  kWrongHost,        // The server's certificate does not name the host.
  kPlaintextServer,  // The server does not speak TLS.
};

// Finds the reason in the message of `status`, a status that gRPC made. The code does not tell it:
// it is UNAVAILABLE for every connection that fails.
TlsFailure TlsFailureOf(const absl::Status& status);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_TLS_FAILURE_H_
