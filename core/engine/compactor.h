#ifndef SOFTLOOKUP_CORE_ENGINE_COMPACTOR_H_
#define SOFTLOOKUP_CORE_ENGINE_COMPACTOR_H_

#include <cstdint>
#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/cancellation.h"
#include "core/engine/committer.h"
#include "core/engine/counted_stores.h"
#include "core/storage/commit_log.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// Compacts stores, each at most once at a time. Thread-safe.
class Compactor {
 public:
  // `log` is null if nothing outlives the process. The arguments must outlive this object.
  Compactor(CountedStores& stores, const CommitLog* log, Committer& committer)
      : stores_(stores), log_(log), committer_(committer) {}

  // Does what Engine::CompactStore() says, to a store that is not damaged.
  absl::StatusOr<CompactionResult> Compact(const std::shared_ptr<Store>& store, bool end_memories,
                                           const CancelToken& cancel);

 private:
  CountedStores& stores_;
  const CommitLog* const log_;
  Committer& committer_;

  absl::Mutex mutex_;
  // The numbers of the stores that are being compacted.
  std::set<std::uint64_t> in_progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_COMPACTOR_H_
