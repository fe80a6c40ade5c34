#include "server/router/tenant_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/base/steady_time.h"
#include "server/limits/tenant_limits.h"
#include "softlookup/cluster_directory.h"

namespace softlookup::server {
namespace {

// When a call that finds no group, or no node, may be tried again.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);

// Whether a store's name can begin with `tenant`.
bool IsTenant(absl::string_view tenant) {
  const auto is_allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  };
  return !tenant.empty() && tenant.size() < kNameLengthMax &&
         std::ranges::all_of(tenant, is_allowed);
}

}  // namespace

absl::Status ClusterUnavailable(absl::string_view why) {
  return WithRetryAfter(MakeError(reasons::kClusterUnavailable, why), kRetryDelay);
}

void TenantTable::FindGroup(absl::string_view store, Done done) {
  const std::shared_ptr<const ClusterMap> map = watch_.map();
  if (map->groups.empty()) {
    return done(ClusterUnavailable("The router knows no group of servers yet"));
  }
  if (map->groups.size() == 1) return done(map->groups[0].name);
  const std::string tenant(TenantLimits::TenantOf(store));
  if (std::string group = KnownGroup(tenant, *map); !group.empty()) return done(std::move(group));
  // All groups refuse such a name in the same way.
  if (!IsTenant(tenant)) return done(map->GroupOfNewTenant(tenant).name);
  if (reads_.fetch_add(1) >= kReadsMax) {
    --reads_;
    return done(ClusterUnavailable("The router asks etcd about too many tenants at once"));
  }
  watch_.WithEtcd([this, tenant, done = std::move(done)](Etcd& etcd) mutable {
    FindGroupOfTenant(
        etcd, cluster_, tenant,
        [this, tenant,
         done = std::move(done)](const absl::StatusOr<std::optional<std::string>>& found) mutable {
          --reads_;
          if (!found.ok()) {
            return done(ClusterUnavailable("etcd does not tell which group has the store"));
          }
          const absl::Time absent_until = SteadyNow() + kAbsentKept;
          Keep(tenant, {.group = found->value_or(""),
                        .until = found->has_value() ? absl::InfiniteFuture() : absent_until});
          done(found->has_value() ? **found : watch_.map()->GroupOfNewTenant(tenant).name);
        });
  });
}

std::string TenantTable::KnownGroup(const std::string& tenant, const ClusterMap& map) {
  absl::MutexLock lock(&mutex_);
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end() || found->second.until <= SteadyNow()) return "";
  return found->second.group.empty() ? map.GroupOfNewTenant(tenant).name : found->second.group;
}

void TenantTable::Learn(absl::string_view store, const std::string& group) {
  Keep(std::string(TenantLimits::TenantOf(store)),
       {.group = group, .until = absl::InfiniteFuture()});
}

void TenantTable::Keep(const std::string& tenant, Tenant found) {
  absl::MutexLock lock(&mutex_);
  // Anybody can ask for tenants that do not exist.
  if (tenants_.size() >= kTenantsMax) {
    absl::erase_if(tenants_,
                   [](const auto& kept) { return kept.second.until != absl::InfiniteFuture(); });
  }
  if (tenants_.size() >= kTenantsMax) tenants_.clear();
  tenants_[tenant] = std::move(found);
}

}  // namespace softlookup::server
