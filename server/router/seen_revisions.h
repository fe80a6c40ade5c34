#ifndef SOFTLOOKUP_SERVER_ROUTER_SEEN_REVISIONS_H_
#define SOFTLOOKUP_SERVER_ROUTER_SEEN_REVISIONS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::server {

// Keeps the newest revision of each store that has passed a router, until all nodes that answer
// lookups have it. A lookup asks for it, so that its answer is not older. Thread-safe.
class SeenRevisions {
 public:
  // A revision is kept for this many calls of Advance() after it was last noted.
  static constexpr std::uint64_t kStepsKept = 10;

  explicit SeenRevisions(std::size_t stores_max = 65'536) : stores_max_(stores_max) {}

  // An answer about `store` was as of `revision`. 0: it tells none.
  void Note(absl::string_view store, std::uint64_t revision);
  // There is no store of this name any more, or it is another one. A node that is behind may still
  // show the old one, whose revisions say nothing about the new one.
  void Replace(absl::string_view store);
  // What an answer about `store` must have. nullopt: only the primary can tell, because the store
  // was replaced, or because too many stores have changed at once.
  std::optional<std::uint64_t> Needed(absl::string_view store) const;

  // Call this when all nodes that answer lookups are known to have what was committed some calls of
  // Advance() before.
  void Advance();

 private:
  struct Entry {
    std::uint64_t revision = 0;
    std::uint64_t step = 0;            // When it was last noted, or replaced.
    std::uint64_t replaced_until = 0;  // Before this step, only the primary can tell.
  };

  // Returns the entry of `store`, to be kept from now on. Null if there are too many.
  Entry* Keep(absl::string_view store) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t stores_max_;
  mutable absl::Mutex mutex_;
  std::uint64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t full_until_ ABSL_GUARDED_BY(mutex_) = 0;  // Some were not noted, until this step.
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  // The stores in the order in which they were noted, with the steps. A store can be in it again.
  std::deque<std::pair<std::uint64_t, std::string>> order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_SEEN_REVISIONS_H_
