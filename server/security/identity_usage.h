#ifndef SOFTLOOKUP_SERVER_SECURITY_IDENTITY_USAGE_H_
#define SOFTLOOKUP_SERVER_SECURITY_IDENTITY_USAGE_H_

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/limits/request_bytes.h"
#include "server/limits/token_buckets.h"
#include "server/security/identity.h"

namespace softlookup::server {

// Keeps what one identity uses of its IdentityLimits, over all its connections: of its rates, of
// the bytes of its stores and of its bytes in flight. It stays the same object when the auth file
// changes, as long as the file has an identity of the same name. The current time is passed in.
// Thread-safe.
class IdentityUsage {
 public:
  explicit IdentityUsage(absl::Time now) : buckets_(now) {}

  // Takes `requests` and `rows` from the identity's rates. If too few are left, takes nothing and
  // returns IDENTITY_LIMIT with a retry delay. A request of more than a second's worth of rows is
  // admitted when a whole second's worth is left. The identity then owes the rest, and is refused
  // until its rates have made up for it.
  absl::Status Take(const Identity& identity, std::int64_t requests, std::int64_t rows,
                    absl::Time now);

  // Whether SetStoreBytes() must be called before TryGrow(): true if SetStoreBytes() was last
  // called a second ago or earlier, or never.
  bool NeedsStoreBytes(absl::Time now) const;
  // Sets the bytes of all stores that count for IdentityLimits::store_bytes.
  void SetStoreBytes(std::int64_t bytes, absl::Time now);
  // Adds `growth` to the bytes of the stores. Returns false, and adds nothing, if they would exceed
  // `limit`.
  bool TryGrow(std::int64_t growth, std::int64_t limit);

  // The budget of the identity's requests in flight. IdentityUsages::Of() sets its limit.
  const std::shared_ptr<RequestBytes>& bytes() const { return bytes_; }

 private:
  const std::shared_ptr<RequestBytes> bytes_ = std::make_shared<RequestBytes>(0);
  mutable absl::Mutex mutex_;
  TokenBuckets buckets_ ABSL_GUARDED_BY(mutex_);
  std::int64_t store_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time store_bytes_time_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_IDENTITY_USAGE_H_
