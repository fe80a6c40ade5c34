#include "client/tool/certificate_authority.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <ctime>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cpp/status_macros.h"

namespace softlookup::tool {
namespace {

constexpr long kBackdatedSeconds = 3600;
constexpr int kSerialBits = 128;

// Returns the oldest error that OpenSSL queued on this thread, and discards the others.
absl::Status OpensslError(absl::string_view what) {
  char text[256] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, text, sizeof(text));
  }
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("OpenSSL cannot ", what, ": ", text));
}

// Returns the bytes of the IP address `host`, or "" if `host` is not an IP address.
std::string AddressBytes(const std::string& host) {
  const Asn1OctetStringPtr address(a2i_IPADDRESS(host.c_str()));
  ERR_clear_error();
  if (address == nullptr) return "";
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(address.get())),
                     static_cast<std::size_t>(ASN1_STRING_length(address.get())));
}

bool IsAddress(const std::string& host) { return !AddressBytes(host).empty(); }

// Returns the hosts in OpenSSL's syntax for alternative names, without duplicates. DNS names are
// compared without case. Addresses are compared by their bytes, because an address has several
// spellings.
std::string AlternativeNames(const std::vector<std::string>& hosts) {
  std::set<std::string> seen;
  std::vector<std::string> names;
  for (const std::string& host : hosts) {
    const std::string address = AddressBytes(host);
    const std::string key = address.empty() ? absl::StrCat("DNS:", absl::AsciiStrToLower(host))
                                            : absl::StrCat("IP:", address);
    if (!seen.insert(key).second) continue;
    names.push_back(absl::StrCat(address.empty() ? "DNS:" : "IP:", host));
  }
  return absl::StrJoin(names, ",");
}

bool IsLabel(absl::string_view label) {
  constexpr std::size_t kLabelBytesMax = 63;
  return !label.empty() && label.size() <= kLabelBytesMax && label.front() != '-' &&
         label.back() != '-' && std::all_of(label.begin(), label.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_';
         });
}

absl::Status SetSerial(X509* certificate) {
  const BignumPtr serial(BN_new());
  if (serial == nullptr ||
      BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) == nullptr) {
    return OpensslError("make a serial number");
  }
  return absl::OkStatus();
}

absl::Status SetValidity(int days, X509* certificate) {
  std::time_t now = std::time(nullptr);
  if (X509_time_adj_ex(X509_getm_notBefore(certificate), 0, -kBackdatedSeconds, &now) == nullptr ||
      X509_time_adj_ex(X509_getm_notAfter(certificate), days, -kBackdatedSeconds, &now) ==
          nullptr) {
    return OpensslError("set the validity of a certificate");
  }
  return absl::OkStatus();
}

absl::Status SetCommonName(const std::string& name, X509* certificate) {
  if (X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName, MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(name.data()),
                                 static_cast<int>(name.size()), -1, 0) != 1) {
    return OpensslError("name a certificate");
  }
  return absl::OkStatus();
}

struct Extension {
  int nid;
  std::string value;  // In the syntax of OpenSSL's configuration files.
};

absl::Status AddExtensions(const std::vector<Extension>& extensions, X509* issuer,
                           X509* certificate) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const Extension& one : extensions) {
    const X509ExtensionPtr extension(
        X509V3_EXT_conf_nid(nullptr, &context, one.nid, one.value.c_str()));
    if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
      return OpensslError(absl::StrCat("add the extension ", OBJ_nid2sn(one.nid)));
    }
  }
  return absl::OkStatus();
}

struct CertificateFields {
  std::string name;
  int days = 0;
  std::vector<Extension> extensions;
};

// Makes a certificate for `key`, signed with `issuer_key`. `issuer` is the certificate of the
// signer. If `issuer` is null, the new certificate names itself as the issuer.
absl::StatusOr<X509Ptr> MakeCertificate(const CertificateFields& fields, EVP_PKEY* key,
                                        X509* issuer, EVP_PKEY* issuer_key) {
  X509Ptr certificate(X509_new());
  if (certificate == nullptr || X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      X509_set_pubkey(certificate.get(), key) != 1) {
    return OpensslError("make a certificate");
  }
  if (issuer == nullptr) issuer = certificate.get();
  CLIENT_RETURN_IF_ERROR(SetSerial(certificate.get()));
  CLIENT_RETURN_IF_ERROR(SetValidity(fields.days, certificate.get()));
  CLIENT_RETURN_IF_ERROR(SetCommonName(fields.name, certificate.get()));
  if (X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer)) != 1) {
    return OpensslError("name the issuer of a certificate");
  }
  CLIENT_RETURN_IF_ERROR(AddExtensions(fields.extensions, issuer, certificate.get()));
  if (X509_sign(certificate.get(), issuer_key, EVP_sha256()) == 0) {
    return OpensslError("sign a certificate");
  }
  return certificate;
}

absl::StatusOr<EvpKeyPtr> MakeKey() {
  EvpKeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpensslError("make a key");
  return key;
}

absl::StatusOr<PemPair> ToPem(X509* certificate, EVP_PKEY* key) {
  const auto text = [](BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return std::string(data, static_cast<std::size_t>(size));
  };
  const BioPtr certificate_pem(BIO_new(BIO_s_mem())), key_pem(BIO_new(BIO_s_mem()));
  if (certificate_pem == nullptr || key_pem == nullptr ||
      PEM_write_bio_X509(certificate_pem.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_pem.get(), key, nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return OpensslError("write PEM");
  }
  return PemPair{.certificate = text(certificate_pem.get()), .key = text(key_pem.get())};
}

}  // namespace

bool IsHost(const std::string& host) {
  constexpr std::size_t kNameBytesMax = 253;
  if (IsAddress(host)) return true;
  absl::string_view name = host;
  absl::ConsumePrefix(&name, "*.");
  const std::vector<absl::string_view> labels = absl::StrSplit(name, '.');
  return host.size() <= kNameBytesMax && std::all_of(labels.begin(), labels.end(), IsLabel);
}

bool NamesHost(const std::string& pem, const std::string& host) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (bio == nullptr) return false;
  const X509Ptr certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (certificate == nullptr) return false;
  return (IsAddress(host)
              ? X509_check_ip_asc(certificate.get(), host.c_str(), 0)
              : X509_check_host(certificate.get(), host.data(), host.size(), 0, nullptr)) == 1;
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::Create() {
  CLIENT_ASSIGN_OR_RETURN(EvpKeyPtr key, MakeKey());
  CLIENT_ASSIGN_OR_RETURN(
      X509Ptr certificate,
      MakeCertificate({.name = "softlookup authority",
                       .days = kAuthorityDays,
                       .extensions = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                      {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                      {NID_subject_key_identifier, "hash"},
                                      {NID_authority_key_identifier, "keyid:always"}}},
                      key.get(), /*issuer=*/nullptr, key.get()));
  CLIENT_ASSIGN_OR_RETURN(PemPair pem, ToPem(certificate.get(), key.get()));
  return CertificateAuthority(std::move(key), std::move(certificate), std::move(pem));
}

absl::StatusOr<PemPair> CertificateAuthority::IssueServer(
    const std::vector<std::string>& hosts) const {
  // Includes clientAuth for the health check in a container, which presents the server's own
  // certificate as a client, and for nodes of a cluster, which call each other with one
  // certificate. With --tls-client-ca, the server refuses a client certificate without clientAuth.
  return Issue(hosts.front(), "serverAuth,clientAuth", AlternativeNames(hosts));
}

absl::StatusOr<PemPair> CertificateAuthority::IssueClient(const std::string& name) const {
  return Issue(name, "clientAuth", absl::StrCat("DNS:", name));
}

absl::StatusOr<PemPair> CertificateAuthority::Issue(const std::string& name, const char* usage,
                                                    const std::string& alternative_names) const {
  CLIENT_ASSIGN_OR_RETURN(const EvpKeyPtr key, MakeKey());
  CLIENT_ASSIGN_OR_RETURN(
      const X509Ptr certificate,
      MakeCertificate({.name = name,
                       .days = kLeafDays,
                       .extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                                      {NID_key_usage, "critical,digitalSignature"},
                                      {NID_ext_key_usage, usage},
                                      {NID_subject_key_identifier, "hash"},
                                      {NID_authority_key_identifier, "keyid:always"},
                                      {NID_subject_alt_name, alternative_names}}},
                      key.get(), certificate_.get(), key_.get()));
  return ToPem(certificate.get(), key.get());
}

}  // namespace softlookup::tool
