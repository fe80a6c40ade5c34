#include "server/security/tls_credentials.h"

#include <grpc/grpc.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace softlookup::server {
namespace {

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

Bio BioOf(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Refuses encrypted private keys. By default, OpenSSL would ask for the password on the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

Certificate FirstCertificate(const std::string& text) {
  return Certificate(PEM_read_bio_X509(BioOf(text).get(), nullptr, NoPassword, nullptr));
}

// Returns `time`, or infinite past if it cannot be read.
absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm utc{};
  if (ASN1_TIME_to_tm(time, &utc) != 1) return absl::InfinitePast();
  return absl::FromTM(utc, absl::UTCTimeZone());
}

std::string DateOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace

absl::Status CheckTlsConfig(const TlsConfig& config) {
  const Certificate certificate = FirstCertificate(config.certificate);
  const PrivateKey private_key(
      PEM_read_bio_PrivateKey(BioOf(config.private_key).get(), nullptr, NoPassword, nullptr));
  const bool is_pair = certificate != nullptr && private_key != nullptr &&
                       X509_check_private_key(certificate.get(), private_key.get()) == 1;
  const bool has_ca = config.client_ca.empty() || FirstCertificate(config.client_ca) != nullptr;
  ERR_clear_error();
  if (certificate == nullptr) {
    return absl::InvalidArgumentError("--tls-certificate: holds no certificate in PEM");
  }
  if (private_key == nullptr) {
    return absl::InvalidArgumentError("--tls-key: holds no key in PEM without a password");
  }
  if (!is_pair) {
    return absl::InvalidArgumentError(
        "--tls-key: is not the key of the certificate in --tls-certificate; the two files must be "
        "a pair");
  }
  if (!has_ca) return absl::InvalidArgumentError("--tls-client-ca: holds no certificate in PEM");
  return absl::OkStatus();
}

std::optional<std::string> CertificateWarning(const TlsConfig& config, absl::Time now) {
  const Certificate certificate = FirstCertificate(config.certificate);
  if (certificate == nullptr) return std::nullopt;
  const absl::Time begin = TimeOf(X509_get0_notBefore(certificate.get()));
  const absl::Time end = TimeOf(X509_get0_notAfter(certificate.get()));
  const bool is_for_servers =
      X509_check_purpose(certificate.get(), X509_PURPOSE_SSL_SERVER, /*ca=*/0) == 1;
  ERR_clear_error();
  if (!is_for_servers) {
    return "--tls-certificate: is not for servers, so clients refuse it; its extended key usage, "
           "if "
           "it has one, must have serverAuth";
  }
  if (now < begin) {
    return absl::StrCat("--tls-certificate: is valid only from ", DateOf(begin),
                        " on, so clients refuse it; is this machine's clock right?");
  }
  if (now > end) {
    return absl::StrCat("--tls-certificate: has expired at ", DateOf(end),
                        ", so clients refuse it; put a new one in its place");
  }
  return std::nullopt;
}

absl::Time CertificateEnd(const TlsConfig& config) {
  const Certificate certificate = FirstCertificate(config.certificate);
  const absl::Time end =
      certificate == nullptr ? absl::InfinitePast() : TimeOf(X509_get0_notAfter(certificate.get()));
  ERR_clear_error();
  return end;
}

TlsCredentials::TlsCredentials(bool clients_need_certificates)
    : credentials_(grpc_ssl_server_credentials_create_with_options(
          grpc_ssl_server_credentials_create_options_using_config_fetcher(
              clients_need_certificates ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                        : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
              &Fetch, this))) {}

TlsCredentials::~TlsCredentials() { grpc_server_credentials_release(credentials_); }

void TlsCredentials::Set(TlsConfig config) {
  const absl::Time end = CertificateEnd(config);
  absl::MutexLock lock(&mutex_);
  config_ = std::move(config);
  certificate_end_ = end;
  is_fetched_ = false;
}

absl::Time TlsCredentials::certificate_end() const {
  absl::MutexLock lock(&mutex_);
  return certificate_end_;
}

grpc_ssl_certificate_config_reload_status TlsCredentials::FetchInto(
    grpc_ssl_server_certificate_config** fetched) {
  absl::MutexLock lock(&mutex_);
  if (std::exchange(is_fetched_, true)) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pair{config_.private_key.c_str(), config_.certificate.c_str()};
  // gRPC requires an authority even if clients are not asked for certificates. In that case gRPC
  // does not use the authority, so any certificate will do.
  const std::string& authority =
      config_.client_ca.empty() ? config_.certificate : config_.client_ca;
  *fetched = grpc_ssl_server_certificate_config_create(authority.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

int TlsCredentials::AddPortToServer(const std::string& address, grpc_server* server) {
  return grpc_server_add_http2_port(server, address.c_str(), credentials_);
}

}  // namespace softlookup::server
