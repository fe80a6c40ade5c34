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

// PEM texts.
struct TlsIdentity {
  std::string certificate;  // With the chain up to, and without, the authority.
  std::string key;
  std::string client_ca;  // Empty: clients need no certificate.
};

// INVALID_ARGUMENT, which says what is wrong, unless the texts are what they should be and the key
// is the certificate's.
absl::Status CheckTlsIdentity(const TlsIdentity& identity);

// What one port of a server shows its clients in TLS handshakes, and asks of them. May change while
// it serves: connections that are open keep what they have. Thread-safe.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  // With `clients_need_certificates`, no byte of HTTP/2 is read of a client without one.
  explicit TlsCredentials(bool clients_need_certificates);
  ~TlsCredentials() override;

  // Handshakes from now on use `identity`, which is checked.
  void Set(TlsIdentity identity);

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& processor) override {}

 private:
  // gRPC asks before each handshake.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<TlsCredentials*>(self)->FetchInto(config);
  }
  grpc_ssl_certificate_config_reload_status FetchInto(grpc_ssl_server_certificate_config** config);

  int AddPortToServer(const std::string& address, grpc_server* server) override;

  absl::Mutex mutex_;
  TlsIdentity identity_ ABSL_GUARDED_BY(mutex_);
  bool is_fetched_ ABSL_GUARDED_BY(mutex_) = true;
  grpc_server_credentials* const credentials_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_TLS_CREDENTIALS_H_
