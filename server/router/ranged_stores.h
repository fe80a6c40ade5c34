#ifndef SOFTLOOKUP_SERVER_ROUTER_RANGED_STORES_H_
#define SOFTLOOKUP_SERVER_ROUTER_RANGED_STORES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::server {

// The ranges of a store as of one revision of it.
struct RangesAt {
  struct Range {
    std::uint64_t begin = 0;         // It ends where the next one begins.
    std::vector<std::string> nodes;  // That answer for it.
  };

  std::uint64_t revision = 0;
  std::uint64_t incarnation = 0;  // Of the store that has this revision.
  std::uint64_t row_count = 0;    // Of the store.
  std::vector<Range> ranges;      // Ascending.
};

// Which stores nodes have told to be cut into ranges, and the ranges of those that do not change. A
// router that does not know it of a store hears it from the first node that it asks. Thread-safe.
class RangedStores {
 public:
  // A store counts as steady after this many lookups in a row that began with the same revision.
  static constexpr int kSteadyCount = 4;

  // Keeps the names of at most `stores_max` stores, and at most `ranges_max` ranges of all stores.
  explicit RangedStores(std::size_t stores_max = 65'536, std::size_t ranges_max = 131'072)
      : stores_max_(stores_max), ranges_max_(ranges_max) {}

  // The store has ranges.
  void Add(absl::string_view store);
  // The store has none any more.
  void Forget(absl::string_view store);
  bool Has(absl::string_view store) const;

  // A node has told a lookup in the store, which has ranges, to begin as of `told`.
  void OnBegun(absl::string_view store, std::shared_ptr<const RangesAt> told);
  // A lookup as of `told`, which Steady() has returned, has failed, or the store has changed since.
  void OnChanged(absl::string_view store, const RangesAt& told);
  // Returns what lookups in the store begin with, if it is steady. Otherwise null.
  std::shared_ptr<const RangesAt> Steady(absl::string_view store) const;

 private:
  struct Entry {
    std::shared_ptr<const RangesAt> told;  // Null: nothing yet.
    int same_count = 0;                    // Lookups in a row that have begun with it.
  };

  // Removes all stores if there are too many, or too many ranges.
  void MakeRoomFor(std::size_t stores, std::size_t ranges) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t stores_max_;
  const std::size_t ranges_max_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> stores_ ABSL_GUARDED_BY(mutex_);
  std::size_t range_count_ ABSL_GUARDED_BY(mutex_) = 0;  // Of all stores_.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_RANGED_STORES_H_
