#include "client/cpp/certificate_validity.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"

namespace softlookup::client_internal {
namespace {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

// A certificate in PEM may be encrypted. By default, OpenSSL would ask for the password on the
// terminal.
int NoPassword(char*, int, int, void*) { return -1; }

// Returns `time`, or nullopt if it cannot be read.
std::optional<absl::Time> TimeOf(const ASN1_TIME* time) {
  std::tm utc{};
  if (ASN1_TIME_to_tm(time, &utc) != 1) return std::nullopt;
  return absl::FromTM(utc, absl::UTCTimeZone());
}

std::string DateOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace

std::string ValidityFault(const std::string& pem, absl::Time now) {
  const std::unique_ptr<BIO, FreeBio> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const std::unique_ptr<X509, FreeCertificate> certificate(
      PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
  std::optional<absl::Time> begin, end;
  if (certificate != nullptr) {
    begin = TimeOf(X509_get0_notBefore(certificate.get()));
    end = TimeOf(X509_get0_notAfter(certificate.get()));
  }
  ERR_clear_error();
  if (begin.has_value() && now < *begin) {
    return absl::StrCat("is valid only from ", DateOf(*begin),
                        " on, so servers refuse it; is this machine's clock right?");
  }
  if (end.has_value() && now > *end) {
    return absl::StrCat("has expired at ", DateOf(*end),
                        ", so servers refuse it; put a new one in its place");
  }
  return "";
}

}  // namespace softlookup::client_internal
