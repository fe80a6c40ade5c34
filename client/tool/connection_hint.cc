#include "client/tool/connection_hint.h"

#include "absl/strings/match.h"
#include "client/cpp/tls_failure.h"

namespace softlookup::tool {
namespace {

using client_internal::TlsFailure;

// Whether the server closed the connection without giving a reason. A server does so if it gets
// plaintext on a TLS port, if the client certificate is missing or refused, or if it ends.
bool WasClosed(const absl::Status& status) {
  return absl::StrContains(status.message(), "Socket closed") ||
         absl::StrContains(status.message(), "Connection reset by peer");
}

// Whether there was a connection that broke during a call. gRPC counts it as made once the server
// has sent its first HTTP/2 frame, which a server that refuses the client never sends.
bool WasConnected(const absl::Status& status) {
  return !absl::StrContains(status.message(), "failed to connect");
}

absl::string_view ClosedHint(const CredentialFiles& credentials) {
  if (!credentials.tls_certificate.empty()) {
    return "it may not accept the certificate of --tls-certificate";
  }
  if (!credentials.tls_ca.empty()) {
    return "it may ask for a client certificate: --tls-certificate and --tls-key";
  }
  return "it may serve TLS: --tls-ca names its authority's certificate; or this is the server's "
         "HTTP port";
}

}  // namespace

absl::string_view ConnectionHint(const absl::Status& status, const CredentialFiles& credentials,
                                 bool answered_before) {
  switch (client_internal::TlsFailureOf(status)) {
    case TlsFailure::kUntrusted:
      return "its certificate is out of date or not of an authority in --tls-ca";
    case TlsFailure::kWrongHost:
      return "its certificate does not name this host (its authority can make one that does: "
             "docs/security.md, Change a certificate)";
    case TlsFailure::kPlaintextServer:
      return "it does not serve TLS: leave out --tls-ca and --tls-certificate, or name its TLS "
             "port";
    case TlsFailure::kNone:
      break;
  }
  if (answered_before) return "it answered before, so it may have stopped";
  if (WasClosed(status)) {
    return WasConnected(status)
               ? "it took the call and closed the connection, so it may have stopped"
               : ClosedHint(credentials);
  }
  return "does softlookup-server run there? (--server or SOFTLOOKUP_SERVER names another)";
}

}  // namespace softlookup::tool
