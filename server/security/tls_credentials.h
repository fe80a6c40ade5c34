#ifndef SOFTLOOKUP_SERVER_SECURITY_TLS_CREDENTIALS_H_
#define SOFTLOOKUP_SERVER_SECURITY_TLS_CREDENTIALS_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::server {

// The server's side of TLS handshakes, as PEM texts.
struct TlsIdentity {
  std::string certificate;  // With its chain, up to but without the authority.
  std::string key;          // The private key of the certificate, without a password.
  std::string client_ca;    // The authority of client certificates. Empty: clients need none.
};

// INVALID_ARGUMENT, which says what is wrong, unless the texts can be parsed and the key is the
// certificate's.
absl::Status CheckTlsIdentity(const TlsIdentity& identity);

// gRPC credentials for the port of a server, whose certificates can change while it serves. Open
// connections are not affected. Thread-safe.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  // With `clients_need_certificates`, the handshake of a client without a valid certificate fails,
  // before any byte of HTTP/2 is read.
  explicit TlsCredentials(bool clients_need_certificates);
  ~TlsCredentials() override;

  // Uses `identity` for all later handshakes. It must have passed CheckTlsIdentity().
  void Set(TlsIdentity identity);

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& processor) override {}

 private:
  // gRPC calls this before each handshake.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<TlsCredentials*>(self)->FetchInto(config);
  }
  grpc_ssl_certificate_config_reload_status FetchInto(grpc_ssl_server_certificate_config** config);

  int AddPortToServer(const std::string& address, grpc_server* server) override;

  absl::Mutex mutex_;
  TlsIdentity identity_ ABSL_GUARDED_BY(mutex_);
  bool is_fetched_ ABSL_GUARDED_BY(mutex_) = true;  // Whether gRPC has identity_.
  grpc_server_credentials* const credentials_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_TLS_CREDENTIALS_H_
