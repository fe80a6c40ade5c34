#include "server/security/identity_usage.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace softlookup::server {

absl::Status IdentityUsage::Take(const Identity& identity, std::int64_t requests, std::int64_t rows,
                                 absl::Time now) {
  const Rates rates{.requests_per_second = identity.limits.requests_per_second,
                    .rows_per_second = identity.limits.rows_per_second};
  if (!rates.is_limited()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  const auto refusal = buckets_.Take(rates, requests, rows, now);
  if (!refusal) return absl::OkStatus();
  return WithRetryAfter(
      MakeError(reasons::kIdentityLimit,
                absl::StrCat("\"", identity.name, "\" sends more than ", refusal->rate, " ",
                             refusal->what, " a second"),
                {{"identity", identity.name}, {"limit", absl::StrCat(refusal->rate)}}),
      refusal->wait);
}

}  // namespace softlookup::server
