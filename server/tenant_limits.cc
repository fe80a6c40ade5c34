#include "server/tenant_limits.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/base/steady_time.h"

namespace softlookup::server {
namespace {

// No store has it as its name's first part.
constexpr absl::string_view kAllOthers = "";

// Whether a share has what `count` takes at `rate` a second, and how long until it has, if not.
absl::Duration WaitFor(double share, double count, double rate) {
  if (rate <= 0 || count <= 0) return absl::ZeroDuration();
  return absl::Seconds(std::max(0.0, std::min(1.0, count / rate) - share));
}

absl::Status Exceeded(absl::string_view what, absl::string_view tenant, double rate,
                      absl::Duration wait) {
  return WithRetryAfter(MakeError(reasons::kTenantRate,
                                  absl::StrCat("The stores of \"", tenant, "\" get more than ",
                                               rate, " ", what, " a second"),
                                  {{"tenant", std::string(tenant)}, {"limit", absl::StrCat(rate)}}),
                        std::max(wait, absl::Milliseconds(1)));
}

}  // namespace

absl::Status TenantLimits::Admit(absl::string_view store, std::int64_t rows) {
  return has_limits() ? Admit(store, rows, SteadyNow()) : absl::OkStatus();
}

absl::Status TenantLimits::Admit(absl::string_view store, std::int64_t rows, absl::Time now) {
  if (!has_limits()) return absl::OkStatus();
  // Longer names are those of no store.
  const absl::string_view tenant = store.substr(0, store.find('/')).substr(0, kNameLengthMax);
  const auto row_count = static_cast<double>(rows);
  absl::MutexLock lock(&mutex_);
  Shares& left = SharesOf(tenant, now);
  const double seconds = absl::ToDoubleSeconds(now - left.as_of);
  left.requests = std::min(1.0, left.requests + seconds);
  left.rows = std::min(1.0, left.rows + seconds);
  left.as_of = now;
  const absl::Duration requests_wait = WaitFor(left.requests, 1, rates_.requests_per_second);
  if (requests_wait > absl::ZeroDuration()) {
    return Exceeded("requests", tenant, rates_.requests_per_second, requests_wait);
  }
  const absl::Duration rows_wait = WaitFor(left.rows, row_count, rates_.rows_per_second);
  if (rows_wait > absl::ZeroDuration()) {
    return Exceeded("rows", tenant, rates_.rows_per_second, rows_wait);
  }
  if (rates_.requests_per_second > 0) left.requests -= 1 / rates_.requests_per_second;
  if (rates_.rows_per_second > 0) left.rows -= row_count / rates_.rows_per_second;
  return absl::OkStatus();
}

TenantLimits::Shares& TenantLimits::SharesOf(absl::string_view tenant, absl::Time now) {
  if (const auto known = shares_.find(tenant); known != shares_.end()) return known->second;
  if (shares_.size() >= std::min(tenants_before_sweep_, tenants_max_) && now >= next_sweep_) {
    ForgetIdle(now);
    tenants_before_sweep_ = std::max<std::size_t>(1024, 2 * shares_.size());
    // Looking at all of them for every one that comes would take too long.
    next_sweep_ = now + absl::Milliseconds(100);
  }
  const absl::string_view name = shares_.size() < tenants_max_ ? tenant : kAllOthers;
  return shares_.try_emplace(name, Shares{.as_of = now}).first->second;
}

void TenantLimits::ForgetIdle(absl::Time now) {
  absl::erase_if(shares_, [&](const auto& entry) {
    const Shares& left = entry.second;
    const double seconds = absl::ToDoubleSeconds(now - left.as_of);
    return std::min(left.requests, left.rows) + seconds >= 1;
  });
}

}  // namespace softlookup::server
