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
#include "core/base/steady_time.h"
#include "server/limits/token_buckets.h"

namespace softlookup::server {

// Refuses requests of a tenant that exceeds its rate of requests or of rows. A tenant is a store's
// name up to its first '/', or the whole name if it has none. What a tenant does not use is saved
// up, but never more than a second's worth. Thread-safe.
class TenantLimits {
 public:
  // If more than `tenants_max` tenants are active within about a second, all tenants beyond these
  // share the rates of a single tenant.
  explicit TenantLimits(const Rates& rates, std::size_t tenants_max = 65536)
      : rates_(rates), tenants_max_(tenants_max) {}

  // Returns the tenant of the store named `store`, as a view into `store`. Cuts it to
  // kNameLengthMax bytes, because no store has a longer name.
  static absl::string_view TenantOf(absl::string_view store);

  // Takes one request and `rows` rows from the rates of the tenant of `store`. The rows of a lookup
  // are its queries. If too few requests or rows are left, takes nothing and returns TENANT_RATE
  // with a retry delay. A request of more than a second's worth of rows is admitted when a whole
  // second's worth is left. The tenant then owes the rest, and is refused until its rates have made
  // up for it. `now` is the steady clock's time.
  absl::Status Take(absl::string_view store, std::int64_t rows, absl::Time now = SteadyNow());

 private:
  // Returns the buckets of `tenant`. A new tenant gets buckets of its own, or the common buckets if
  // tenants_max_ tenants have buckets.
  TokenBuckets& BucketsOf(absl::string_view tenant, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets the tenants that have a whole second's worth left. They lose nothing: a new tenant
  // starts with as much.
  void ForgetIdle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Rates rates_;
  const std::size_t tenants_max_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, TokenBuckets> buckets_ ABSL_GUARDED_BY(mutex_);
  // BucketsOf() calls ForgetIdle() at this many tenants or at tenants_max_, but not before
  // next_sweep_.
  std::size_t tenants_before_sweep_ ABSL_GUARDED_BY(mutex_) = 1024;
  absl::Time next_sweep_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_TENANT_LIMITS_H_
