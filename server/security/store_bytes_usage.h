#ifndef SOFTLOOKUP_SERVER_SECURITY_STORE_BYTES_USAGE_H_
#define SOFTLOOKUP_SERVER_SECURITY_STORE_BYTES_USAGE_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// Keeps the bytes of all stores that count for one identity's IdentityLimits::store_bytes: as they
// were counted last, and what has been added since. The current time is passed in. Thread-safe.
class StoreBytesUsage {
 public:
  // Whether Set() must be called before TryGrow(): true if Set() was last called a second ago or
  // earlier, or never.
  bool NeedsCount(absl::Time now) const;
  // Sets the bytes of the stores to `bytes`, as counted at `now`.
  void Set(std::int64_t bytes, absl::Time now);
  // Adds `growth` to the bytes of the stores. Returns false, and adds nothing, if they would exceed
  // `limit`.
  bool TryGrow(std::int64_t growth, std::int64_t limit);

 private:
  mutable absl::Mutex mutex_;
  std::int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time counted_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // When Set() was called.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_STORE_BYTES_USAGE_H_
