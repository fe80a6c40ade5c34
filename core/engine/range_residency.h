#ifndef SOFTLOOKUP_CORE_ENGINE_RANGE_RESIDENCY_H_
#define SOFTLOOKUP_CORE_ENGINE_RANGE_RESIDENCY_H_

#include <cstdint>
#include <memory>
#include <set>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/engine/committer.h"
#include "core/engine/counted_stores.h"
#include "core/storage/commit_log.h"
#include "core/store/snapshot.h"
#include "core/store/store.h"
#include "core/store/store_editor.h"
#include "softlookup/engine_observer.h"

namespace softlookup {

// Keeps the rows of a store's ranges in RAM that this server answers for, and no others
// (KeptRanges). It looks at the stores of CountedStores::residency_queue on a thread of its own,
// reads rows that are missing from the log, and evicts those that are too many. Lookups and writes
// go on meanwhile.
class RangeResidency {
 public:
  // The arguments must outlive this object. At most one may be made for each `stores`.
  // `observer` may be null.
  RangeResidency(CountedStores& stores, const CommitLog& log, Committer& committer,
                 std::shared_ptr<EngineObserver> observer, const Clock& clock = Clock::Steady());
  RangeResidency(const RangeResidency&) = delete;
  RangeResidency& operator=(const RangeResidency&) = delete;
  ~RangeResidency();

 private:
  void Run();
  // After an error the store has to be looked at again: the budget or the queue of writes is full,
  // the log cannot be read, or a compaction came between.
  absl::Status LookAt(const std::shared_ptr<Store>& store);
  absl::Status EvictOthers(const std::shared_ptr<Store>& store);
  // Loads some of the rows that are missing, and queues the store again if there may be more: so
  // others have their turn, and it sees which rows are missing then.
  absl::Status LoadSome(const std::shared_ptr<Store>& store);
  // Loads the blocks [begin, end), which must not be resident.
  absl::Status Load(const std::shared_ptr<Store>& store, const Snapshot& snapshot,
                    std::int64_t begin, std::int64_t end);
  // Calls change(editor) in the turn of a write. Does not call it if the store is not there any
  // more.
  absl::Status Change(const std::shared_ptr<Store>& store,
                      absl::FunctionRef<void(StoreEditor&)> change);
  // Waits for that long, or until this object ends.
  void Rest(absl::Duration time);

  CountedStores& stores_;
  const CommitLog& log_;
  Committer& committer_;
  const std::shared_ptr<EngineObserver> observer_;
  const Clock& clock_;
  std::set<std::uint64_t> failing_;  // Numbers of stores that were reported. Used by thread_ alone.
  CancelToken cancel_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_RANGE_RESIDENCY_H_
