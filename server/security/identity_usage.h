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
#include "server/security/store_bytes_usage.h"

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

  // The bytes of the stores that the identity may write.
  StoreBytesUsage& store_bytes() { return store_bytes_; }

  // The budget of the identity's requests in flight. IdentityUsages::Of() sets its limit.
  const std::shared_ptr<RequestBytes>& bytes() const { return bytes_; }

 private:
  const std::shared_ptr<RequestBytes> bytes_ = std::make_shared<RequestBytes>(0);
  StoreBytesUsage store_bytes_;
  absl::Mutex mutex_;
  TokenBuckets buckets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_IDENTITY_USAGE_H_
