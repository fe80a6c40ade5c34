#ifndef SOFTLOOKUP_CORE_STORE_STORE_LEASE_H_
#define SOFTLOOKUP_CORE_STORE_STORE_LEASE_H_

#include <utility>

#include "absl/functional/any_invocable.h"

namespace softlookup {

// Runs a callback when the bytes of a store are free. A store's editor and all its snapshots share
// the lease, so it is destroyed with the last of them.
class StoreLease {
 public:
  ~StoreLease() {
    if (on_end_) on_end_();
  }

  // Makes the destructor run `on_end`, on the thread that drops the last reference to the lease.
  // Call this once, while the caller holds the editor or a snapshot.
  void OnEnd(absl::AnyInvocable<void()> on_end) { on_end_ = std::move(on_end); }

 private:
  absl::AnyInvocable<void()> on_end_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_STORE_LEASE_H_
