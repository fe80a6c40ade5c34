#include "client/tool/credential_check.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/tool/exit_code.h"
#include "client/tool/openssl_ptr.h"

namespace softlookup::tool {
namespace {

BioPtr BioOf(const std::string& pem) {
  return BioPtr(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// The first certificate in `pem`, or null if it does not parse.
X509Ptr ParseCertificate(const std::string& pem) {
  return X509Ptr(PEM_read_bio_X509(BioOf(pem).get(), nullptr, nullptr, nullptr));
}

EvpKeyPtr ParseKey(const std::string& pem) {
  // For an encrypted key, OpenSSL would ask for a passphrase on the terminal. This callback makes
  // the parse fail instead.
  const auto no_passphrase = [](char*, int, int, void*) { return 0; };
  return EvpKeyPtr(PEM_read_bio_PrivateKey(BioOf(pem).get(), nullptr, no_passphrase, nullptr));
}

absl::Status Check(const Credentials& credentials, const CredentialFiles& files) {
  if (!credentials.tls_ca.empty() && ParseCertificate(credentials.tls_ca) == nullptr) {
    return InputError(files.tls_ca, "has a certificate that does not parse");
  }
  if (credentials.tls_certificate.empty()) return absl::OkStatus();
  const X509Ptr certificate = ParseCertificate(credentials.tls_certificate);
  if (certificate == nullptr) {
    return InputError(files.tls_certificate, "has a certificate that does not parse");
  }
  const EvpKeyPtr key = ParseKey(credentials.tls_key);
  if (key == nullptr) return InputError(files.tls_key, "has a private key that does not parse");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return InputError(files.tls_key,
                      absl::StrCat("is not the key of the certificate in ", files.tls_certificate));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCertificates(const Credentials& credentials, const CredentialFiles& files) {
  absl::Status checked = Check(credentials, files);
  ERR_clear_error();  // `checked` describes the failure.
  return checked;
}

}  // namespace softlookup::tool
