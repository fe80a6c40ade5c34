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

// What the server uses in TLS handshakes, as PEM texts.
struct TlsConfig {
  std::string certificate;  // With its chain, up to but without the authority.
  std::string private_key;  // Of the certificate, without a password.
  std::string client_ca;    // The authority of client certificates. Empty: clients need none.
};

// INVALID_ARGUMENT if a text cannot be parsed, or if the private key is not the certificate's. The
// message says what is wrong.
absl::Status CheckTlsConfig(const TlsConfig& config);

// gRPC credentials for a server's port. The certificates can change while the server runs. Open
// connections are not affected. Thread-safe.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  // With `clients_need_certificates`, the handshake of a client without a valid certificate fails,
  // before any byte of HTTP/2 is read.
  explicit TlsCredentials(bool clients_need_certificates);
  ~TlsCredentials() override;

  // Uses `config` for all later handshakes. It must have passed CheckTlsConfig().
  void Set(TlsConfig config);

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& processor) override {}

 private:
  // gRPC calls this before each handshake.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** fetched) {
    return static_cast<TlsCredentials*>(self)->FetchInto(fetched);
  }
  grpc_ssl_certificate_config_reload_status FetchInto(grpc_ssl_server_certificate_config** fetched);

  int AddPortToServer(const std::string& address, grpc_server* server) override;

  absl::Mutex mutex_;
  TlsConfig config_ ABSL_GUARDED_BY(mutex_);
  bool is_fetched_ ABSL_GUARDED_BY(mutex_) = true;  // Whether gRPC has config_.
  grpc_server_credentials* const credentials_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_TLS_CREDENTIALS_H_
