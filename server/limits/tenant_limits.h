#ifndef SOFTLOOKUP_SERVER_LIMITS_TENANT_LIMITS_H_
#define SOFTLOOKUP_SERVER_LIMITS_TENANT_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/limits/rate_share.h"

namespace softlookup::server {

// Keeps every tenant, which is a store's name up to its first '/', to its share of requests and
// rows. What a tenant does not use of a second it may use in the next one, but no longer. Times are
// told. Thread-safe.
class TenantLimits {
 public:
  // Beyond `tenants_max` that were busy within about a second, those that come share one share.
  explicit TenantLimits(const Rates& rates, std::size_t tenants_max = 65536)
      : rates_(rates), tenants_max_(tenants_max) {}

  // One request about `store`, which brings `rows`. TENANT_RATE, with when to come back, if the
  // tenant has none left; else they are counted. A request of more rows than a second brings needs
  // a whole second's, and the tenant owes the rest.
  absl::Status Admit(absl::string_view store, std::int64_t rows, absl::Time now);
  absl::Status Admit(absl::string_view store, std::int64_t rows);

 private:
  RateShare& ShareOf(absl::string_view tenant, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets the tenants that have all of a second left.
  void ForgetIdle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Rates rates_;
  const std::size_t tenants_max_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, RateShare> shares_ ABSL_GUARDED_BY(mutex_);
  std::size_t tenants_before_sweep_ ABSL_GUARDED_BY(mutex_) = 1024;
  absl::Time next_sweep_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_TENANT_LIMITS_H_
