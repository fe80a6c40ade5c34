#ifndef SOFTLOOKUP_SERVER_SECURITY_TLS_CREDENTIALS_H_
#define SOFTLOOKUP_SERVER_SECURITY_TLS_CREDENTIALS_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// What the server uses in TLS handshakes, as PEM texts.
struct TlsConfig {
  std::string certificate;  // The server's, then those of its chain, not the authority's.
  std::string private_key;  // Of the certificate, without a password.
  // The certificate of the authority that signs client certificates. Empty: clients need no
  // certificate.
  std::string client_ca;
};

// Returns INVALID_ARGUMENT if a text lacks the certificate or private key that it must hold, or if
// the private key is not the certificate's. Of several certificates in a text, only the first is
// checked. The message says what is wrong.
absl::Status CheckTlsConfig(const TlsConfig& config);

// Returns a sentence for the operator if clients refuse the server's certificate: at `now` it is
// not valid yet, or not any more, or it is not for servers. `config` must have passed
// CheckTlsConfig().
std::optional<std::string> CertificateWarning(const TlsConfig& config, absl::Time now);

// Returns when the server's certificate expires. `config` must have passed CheckTlsConfig().
absl::Time CertificateEnd(const TlsConfig& config);

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
  // Returns the CertificateEnd() of the last Set(). Infinite past before the first one.
  absl::Time certificate_end() const;

  // Does nothing. Authenticator reads the metadata of calls instead.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& processor) override {}

 private:
  // gRPC calls this before each handshake. Passes config_ on if it has changed since the last call.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** fetched) {
    return static_cast<TlsCredentials*>(self)->FetchInto(fetched);
  }
  grpc_ssl_certificate_config_reload_status FetchInto(grpc_ssl_server_certificate_config** fetched);

  int AddPortToServer(const std::string& address, grpc_server* server) override;

  mutable absl::Mutex mutex_;
  TlsConfig config_ ABSL_GUARDED_BY(mutex_);
  absl::Time certificate_end_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // Whether gRPC has config_. True before the first Set(), when there is nothing to fetch.
  bool is_fetched_ ABSL_GUARDED_BY(mutex_) = true;
  grpc_server_credentials* const credentials_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_TLS_CREDENTIALS_H_
