#ifndef SOFTLOOKUP_CORE_ENGINE_KEPT_SNAPSHOTS_H_
#define SOFTLOOKUP_CORE_ENGINE_KEPT_SNAPSHOTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/engine/byte_budget.h"
#include "core/store/snapshot.h"
#include "core/store/store.h"

namespace softlookup {

// Returns kSnapshotGone, with the newest revision of `store`.
absl::Status SnapshotGone(const Store& store, absl::string_view message);

// Keeps snapshots for a while after newer ones have replaced them, so that all parts of a lookup
// can be answered as of one revision. Keeps those of a store only while it is asked for parts. So a
// server that is in no cluster keeps none, and has no thread for it.
//
// A snapshot costs what it shares with no later one: at least the panel that was filling, a block
// that was compacted since, and rows that were evicted since. These bytes count as reserved in the
// budget. Freeing evicted rows can take long, so a thread of this object does it, unless their room
// is needed. Thread-safe.
class KeptSnapshots {
 public:
  static constexpr std::uint64_t kCountMax = 16'384;  // Of one store.
  // How long a snapshot is kept, and how long those of a store are kept after it was last asked for
  // a part.
  static constexpr absl::Duration kTimeMax = absl::Seconds(10);
  // How long snapshots that have evicted rows are kept at least, if there is room: for as long as
  // most lookups take.
  static constexpr absl::Duration kEvictedTime = absl::Seconds(1);

  // Returns the most bytes to keep in an engine with this Limits::ram_bytes_max.
  static std::int64_t BytesMax(std::int64_t ram_bytes_max);

  // Keeps at most `bytes_max` bytes of all stores, and evicted rows. `budget` and `clock` must
  // outlive this object.
  KeptSnapshots(std::int64_t bytes_max, ByteBudget& budget, const Clock& clock = Clock::Steady());
  ~KeptSnapshots();
  KeptSnapshots(const KeptSnapshots&) = delete;
  KeptSnapshots& operator=(const KeptSnapshots&) = delete;

  // Tells that `store` is asked for a part of a lookup.
  void OnAsked(const Store& store);
  // Returns the snapshot of `store` at `revision`, which the store must have reached. SNAPSHOT_GONE
  // if it is not kept.
  absl::StatusOr<std::shared_ptr<const Snapshot>> Find(const Store& store,
                                                       std::uint64_t revision) const;
  // Keeps the newest snapshot of `store`. Call this before Store::Publish(), on the same thread,
  // with the snapshot that is going to be published.
  void Keep(const Store& store, const Snapshot& next);
  // Tells that `bytes` of rows were evicted from `store` as of `revision`, and given back to the
  // budget. Lookups that have begun are answered from the snapshots before it, which still have
  // these rows. They are dropped after kEvictedTime, or now if the budget has no room for the rows.
  void OnEvicted(const Store& store, std::uint64_t revision, std::int64_t bytes);
  // Drops all snapshots that have evicted rows, to make room.
  void DropEvicted();
  // Drops the snapshots of a store that has lost its name.
  void Drop(const Store& store);

 private:
  // The number of a store, and a revision of it.
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  struct Kept {
    std::shared_ptr<const Snapshot> snapshot;
    std::int64_t bytes = 0;
    ByteBudget::Reserved reserved;
  };
  struct Place {
    Key key;
    absl::Time end;  // When the snapshot is to be dropped.
  };
  // Rows were evicted from the snapshot with this key. Those before it have them.
  struct Eviction {
    Key key;
    absl::Time end;  // When these are to be dropped.
    ByteBudget::Reserved reserved;
  };
  // To drop a snapshot can free many bytes, so that is done without the mutex.
  using Dropped = std::vector<std::shared_ptr<const Snapshot>>;

  void Run();
  // Returns whether `store` was asked for a part within the last kTimeMax.
  bool WasAsked(const Store& store, absl::Time now) const;
  bool BudgetHas(std::int64_t bytes) const;
  bool HasRoomFor(std::int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops what has been kept for long enough, but for evicted rows.
  void DropOld(Dropped& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldest(Dropped& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOne(const Key& key, Dropped& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops what has the rows of evictions that end by `end`.
  void DropEvictedUntil(absl::Time end, Dropped& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops the snapshots of the same store that are older than that of `key`.
  void DropBefore(const Key& key, Dropped& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::int64_t bytes_max_;
  ByteBudget& budget_;
  const Clock& clock_;

  mutable absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // When each store was last asked for a part, by its number.
  absl::flat_hash_map<std::uint64_t, absl::Time> asked_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, Kept> kept_ ABSL_GUARDED_BY(mutex_);
  std::int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Of all in kept_.
  // In the order in which they came. Snapshots that are dropped early are still in here.
  std::deque<Place> places_ ABSL_GUARDED_BY(mutex_);
  std::list<Eviction> evictions_ ABSL_GUARDED_BY(mutex_);  // In the order in which they came.
  // Drops what is old also if no call comes. Started by the first OnAsked().
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_KEPT_SNAPSHOTS_H_
