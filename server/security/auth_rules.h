#ifndef SOFTLOOKUP_SERVER_SECURITY_AUTH_RULES_H_
#define SOFTLOOKUP_SERVER_SECURITY_AUTH_RULES_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/security/identity.h"

namespace softlookup::server {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 Sha256Of(absl::string_view text);

// The contents of an auth file: the identities, and what each may do. Immutable.
class AuthRules {
 public:
  // Parses the JSON of an auth file. INVALID_ARGUMENT if anything in it is wrong, unknown or
  // repeated, since a rule that is misread could let somebody in. The message says where the error
  // is, such as identities[0].name. For a repeated member, it gives only the member's name.
  static absl::StatusOr<std::shared_ptr<const AuthRules>> Parse(const std::string& text);

  // Returns the identity of this name; null if there is none.
  std::shared_ptr<const Identity> FindByName(const std::string& name) const;
  // Returns the identity whose token has this digest; null if there is none. The time that it takes
  // reveals nothing about the known digests.
  std::shared_ptr<const Identity> FindByToken(const Sha256& digest) const;
  // Returns the identity of a client certificate with these names; null if no identity has one of
  // them, or several have.
  std::shared_ptr<const Identity> FindByCertificate(const std::vector<std::string>& names) const;

  bool HasIdentity(const std::string& name) const { return by_name_.contains(name); }
  std::size_t identity_count() const { return by_name_.size(); }
  // The names of the identities that have no token, so that only a client certificate tells who
  // they are. In the order of the file.
  const std::vector<std::string>& certificate_only() const { return certificate_only_; }

 private:
  std::vector<std::string> certificate_only_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Identity>> by_name_;
  absl::flat_hash_map<Sha256, std::shared_ptr<const Identity>> by_token_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Identity>> by_certificate_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_AUTH_RULES_H_
