#ifndef SOFTLOOKUP_SERVER_SECURITY_ACCOUNT_H_
#define SOFTLOOKUP_SERVER_SECURITY_ACCOUNT_H_

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/limits/rate_share.h"
#include "server/limits/request_bytes.h"
#include "server/security/identity.h"

namespace softlookup::server {

// What one identity takes of what its limits allow, over all its connections. It outlives a change
// of the auth file. Times are told. Thread-safe.
class Account {
 public:
  explicit Account(absl::Time now) : share_(now) {}

  // Takes `requests` and `rows`. IDENTITY_LIMIT, with when to come back, if the identity's rates
  // leave too little.
  absl::Status Admit(const Identity& identity, std::int64_t requests, std::int64_t rows,
                     absl::Time now);

  // What its stores take, as of a second ago at most, with what they have grown by since.
  bool NeedsStoreBytes(absl::Time now) const;
  void SetStoreBytes(std::int64_t bytes, absl::Time now);
  // False, and nothing is added, if they would take more than `limit`.
  bool TryGrow(std::int64_t growth, std::int64_t limit);

  // The bytes of its requests in flight.
  const std::shared_ptr<RequestBytes>& bytes() const { return bytes_; }

 private:
  const std::shared_ptr<RequestBytes> bytes_ = std::make_shared<RequestBytes>(0);
  mutable absl::Mutex mutex_;
  RateShare share_ ABSL_GUARDED_BY(mutex_);
  std::int64_t store_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time store_bytes_time_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_ACCOUNT_H_
