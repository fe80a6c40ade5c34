#include "server/security/identity_usages.h"

namespace softlookup::server {

std::shared_ptr<IdentityUsage> IdentityUsages::Of(const Identity& identity, absl::Time now) {
  std::shared_ptr<IdentityUsage>& usage = usages_[identity.name];
  if (usage == nullptr) usage = std::make_shared<IdentityUsage>(now);
  usage->bytes()->set_limit(identity.limits.bytes_in_flight);
  return usage;
}

void IdentityUsages::KeepOnly(const AuthRules& rules) {
  absl::erase_if(usages_, [&](const auto& usage) { return !rules.HasIdentity(usage.first); });
}

}  // namespace softlookup::server
