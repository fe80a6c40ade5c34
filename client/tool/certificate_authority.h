#ifndef SOFTLOOKUP_CLIENT_TOOL_CERTIFICATE_AUTHORITY_H_
#define SOFTLOOKUP_CLIENT_TOOL_CERTIFICATE_AUTHORITY_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tool/openssl_ptr.h"

namespace softlookup::tool {

// A certificate and its private key, both in PEM.
struct PemPair {
  std::string certificate;
  std::string key;
};

inline constexpr int kAuthorityDays = 3652;  // Ten years.
inline constexpr int kLeafDays = 825;

// Whether a server certificate can name `host`. It can if `host` is an IP address, or a DNS name,
// whose first label may be a wildcard.
bool IsHost(const std::string& host);

// Whether the first certificate in `pem` names `host`, which must pass IsHost(), so that a client
// accepts it for that host. False if `pem` has no certificate.
bool NamesHost(const std::string& pem, const std::string& host);

// Issues certificates with P-256 keys, SHA-256 signatures and random serial numbers of 128 bits. A
// certificate is valid from an hour before it is issued, because the clocks of machines may differ.
class CertificateAuthority {
 public:
  // Makes an authority. Its own certificate is valid for kAuthorityDays and may sign certificates
  // of servers and clients, but not of other authorities.
  static absl::StatusOr<CertificateAuthority> Create();

  // The authority's own certificate and key.
  const PemPair& pem() const { return pem_; }

  // Issues a server certificate, valid for kLeafDays, that can also serve as a client's. `hosts`,
  // at least one, must pass IsHost(). `hosts` without duplicates become the subject alternative
  // names, and the first of `hosts` the common name.
  absl::StatusOr<PemPair> IssueServer(const std::vector<std::string>& hosts) const;

  // Issues a client certificate, valid for kLeafDays. `name`, a DNS name, becomes the common name
  // and the subject alternative name.
  absl::StatusOr<PemPair> IssueClient(const std::string& name) const;

 private:
  CertificateAuthority(EvpKeyPtr key, X509Ptr certificate, PemPair pem)
      : key_(std::move(key)), certificate_(std::move(certificate)), pem_(std::move(pem)) {}

  absl::StatusOr<PemPair> Issue(const std::string& name, const char* usage,
                                const std::string& alternative_names) const;

  EvpKeyPtr key_;
  X509Ptr certificate_;
  PemPair pem_;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_CERTIFICATE_AUTHORITY_H_
