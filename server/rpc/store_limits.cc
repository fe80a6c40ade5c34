#include "server/rpc/store_limits.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/base/steady_time.h"
#include "server/security/store_bytes_usage.h"

namespace softlookup::server {
namespace {

// Most stores to ask the engine for in one call.
constexpr std::int64_t kStoresAtOnce = 256;

absl::Status Exceeded(const Caller& caller, absl::string_view what, std::int64_t limit) {
  return MakeError(reasons::kIdentityLimit,
                   absl::StrCat("The stores of \"", caller.name(), "\" ", what, " ", limit),
                   {{"identity", caller.name()}, {"limit", absl::StrCat(limit)}});
}

// Calls `visit` once for each store that the caller's grants of at least `role` cover, until
// `visit` returns false. The caller must have an identity.
absl::Status VisitStores(Engine& engine, const Caller& caller, Role role,
                         absl::FunctionRef<bool(const StoreInfo&)> visit) {
  const std::vector<Grant>& grants = caller.identity->grants;
  for (auto grant_at = grants.begin(); grant_at != grants.end(); ++grant_at) {
    const Grant& grant = *grant_at;
    if (grant.role < role) continue;
    const auto is_visited = [&](absl::string_view name) {
      return std::any_of(grants.begin(), grant_at, [&](const Grant& earlier) {
        return earlier.role >= role && earlier.stores.Matches(name);
      });
    };
    std::string last;
    for (bool more = true; more;) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(const ListResult list,
                                  engine.ListStores(grant.stores.prefix(), last, kStoresAtOnce));
      for (const StoreInfo& store : list.stores) {
        last = store.config.name;
        // The name of a grant for one store may be a prefix of other stores' names.
        if (!grant.stores.Matches(last) || is_visited(last)) continue;
        if (!visit(store)) return absl::OkStatus();
      }
      more = list.more && !grant.stores.is_name();
    }
  }
  return absl::OkStatus();
}

}  // namespace

StoreCreations::Reservation::~Reservation() {
  absl::MutexLock lock(&creations_.mutex_);
  creations_.names_.erase(creations_.names_.find(name_));
}

absl::StatusOr<std::unique_ptr<StoreCreations::Reservation>> StoreCreations::Reserve(
    Engine& engine, const Caller& caller, const std::string& name) {
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_RETURN_IF_ERROR(CheckCount(engine, caller, name));
  names_.insert(name);
  return std::make_unique<Reservation>(*this, name);
}

std::unique_ptr<StoreCreations::Reservation> StoreCreations::ReserveNewName(
    const std::string& name) {
  absl::MutexLock lock(&mutex_);
  names_.insert(name);
  return std::make_unique<Reservation>(*this, name);
}

absl::Status StoreCreations::CheckCount(Engine& engine, const Caller& caller,
                                        const std::string& name) const {
  const std::int64_t limit = caller.identity == nullptr ? 0 : caller.identity->limits.stores;
  if (limit == 0) return absl::OkStatus();
  std::set<std::string> covered;
  for (const std::string& other : names_) {
    if (other != name && caller.identity->May(Role::kManage, other)) covered.insert(other);
  }
  auto count = static_cast<std::int64_t>(covered.size());
  if (count < limit) {
    SOFTLOOKUP_RETURN_IF_ERROR(
        VisitStores(engine, caller, Role::kManage, [&](const StoreInfo& store) {
          // A creation that has just ended may not have given up its reservation yet.
          const std::string& other = store.config.name;
          if (other != name && !covered.contains(other)) ++count;
          return count < limit;
        }));
  }
  return count < limit ? absl::OkStatus() : Exceeded(caller, "may be at most", limit);
}

absl::Status CheckStoreGrowth(Engine& engine, const Caller& caller, std::int64_t growth) {
  const std::int64_t limit = caller.identity == nullptr ? 0 : caller.identity->limits.store_bytes;
  if (limit == 0) return absl::OkStatus();
  StoreBytesUsage& usage = caller.usage->store_bytes();
  const absl::Time now = SteadyNow();
  if (usage.NeedsCount(now)) {
    std::int64_t bytes = 0;
    SOFTLOOKUP_RETURN_IF_ERROR(
        VisitStores(engine, caller, Role::kWrite, [&](const StoreInfo& store) {
          bytes += static_cast<std::int64_t>(store.byte_size);
          return true;
        }));
    usage.Set(bytes, now);
  }
  return usage.TryGrow(growth, limit) ? absl::OkStatus()
                                      : Exceeded(caller, "would take more bytes than", limit);
}

}  // namespace softlookup::server
