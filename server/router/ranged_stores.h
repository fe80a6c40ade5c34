#ifndef SOFTLOOKUP_SERVER_ROUTER_RANGED_STORES_H_
#define SOFTLOOKUP_SERVER_ROUTER_RANGED_STORES_H_

#include <cstddef>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::server {

// Which stores nodes have told to be cut into ranges. A router that does not know it of a store
// hears it from the first node that it asks. Thread-safe.
class RangedStores {
 public:
  explicit RangedStores(std::size_t stores_max = 65'536) : stores_max_(stores_max) {}

  void Note(absl::string_view store) {
    absl::MutexLock lock(&mutex_);
    if (stores_.size() >= stores_max_) stores_.clear();
    stores_.emplace(store);
  }
  void Forget(absl::string_view store) {
    absl::MutexLock lock(&mutex_);
    stores_.erase(store);
  }
  bool Has(absl::string_view store) const {
    absl::ReaderMutexLock lock(&mutex_);
    return stores_.contains(store);
  }

 private:
  const std::size_t stores_max_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_set<std::string> stores_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_RANGED_STORES_H_
