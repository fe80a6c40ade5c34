#include "server/limits/tenant_limits.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/limits.h"
#include "softlookup/tenant.h"

namespace softlookup::server {
namespace {

// Stands for all tenants beyond tenants_max_. It is not itself the tenant of any store, because no
// store's name begins with '/'.
constexpr absl::string_view kAllOthers = "";

absl::Status Exceeded(absl::string_view tenant, const TokenBuckets::Refusal& refusal) {
  return WithRetryAfter(
      MakeError(reasons::kTenantRate,
                absl::StrCat("The stores of \"", tenant, "\" get more than ", refusal.rate, " ",
                             refusal.what, " a second"),
                {{"tenant", std::string(tenant)}, {"limit", absl::StrCat(refusal.rate)}}),
      refusal.wait);
}

}  // namespace

absl::string_view TenantLimits::TenantOf(absl::string_view store) {
  return softlookup::TenantOf(store).substr(0, kNameLengthMax);
}

absl::Status TenantLimits::Take(absl::string_view store, std::int64_t rows, absl::Time now) {
  if (!rates_.is_limited()) return absl::OkStatus();
  const absl::string_view tenant = TenantOf(store);
  absl::MutexLock lock(&mutex_);
  const auto refusal = BucketsOf(tenant, now).Take(rates_, 1, rows, now);
  return refusal ? Exceeded(tenant, *refusal) : absl::OkStatus();
}

TokenBuckets& TenantLimits::BucketsOf(absl::string_view tenant, absl::Time now) {
  if (const auto known = buckets_.find(tenant); known != buckets_.end()) return known->second;
  if (buckets_.size() >= std::min(tenants_before_sweep_, tenants_max_) && now >= next_sweep_) {
    ForgetIdle(now);
    tenants_before_sweep_ = std::max<std::size_t>(1024, 2 * buckets_.size());
    // A sweep visits all tenants. A sweep for every new tenant would take too long.
    next_sweep_ = now + absl::Milliseconds(100);
  }
  const absl::string_view name = buckets_.size() < tenants_max_ ? tenant : kAllOthers;
  return buckets_.try_emplace(name, now).first->second;
}

void TenantLimits::ForgetIdle(absl::Time now) {
  absl::erase_if(buckets_, [&](const auto& entry) { return entry.second.IsFull(now); });
}

}  // namespace softlookup::server
