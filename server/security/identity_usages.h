#ifndef SOFTLOOKUP_SERVER_SECURITY_IDENTITY_USAGES_H_
#define SOFTLOOKUP_SERVER_SECURITY_IDENTITY_USAGES_H_

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/security/auth_rules.h"
#include "server/security/identity.h"
#include "server/security/identity_usage.h"

namespace softlookup::server {

// Keeps the usage of each identity under its name, so that the usage outlives a change of the auth
// rules. Not thread-safe.
class IdentityUsages {
 public:
  // Returns the usage that is kept under the name of `identity`. If there is none, makes one, which
  // begins at `now`. Sets the limit of its bytes in flight to that of `identity`.
  std::shared_ptr<IdentityUsage> Of(const Identity& identity, absl::Time now);

  // Forgets the usages of identities that `rules` does not have. Callers that hold such a usage
  // keep it.
  void KeepOnly(const AuthRules& rules);

 private:
  absl::flat_hash_map<std::string, std::shared_ptr<IdentityUsage>> usages_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_IDENTITY_USAGES_H_
