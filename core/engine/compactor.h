#ifndef SOFTLOOKUP_CORE_ENGINE_COMPACTOR_H_
#define SOFTLOOKUP_CORE_ENGINE_COMPACTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/engine/committer.h"
#include "core/engine/counted_stores.h"
#include "core/engine/put_records.h"
#include "core/storage/commit_log.h"
#include "core/store/store.h"
#include "core/store/store_editor.h"
#include "softlookup/engine.h"

namespace softlookup {

// Blocks [begin, end) of a store.
struct BlockRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Returns whether a compaction may drop more rows of `after` than of `before`. One write, not a
// compaction, must have made `after` from `before`.
bool MayDropMore(const Snapshot& before, const Snapshot& after);

// Compacts stores, each at most once at a time. Thread-safe.
class Compactor {
 public:
  // `log` is null if nothing outlives the process. The arguments must outlive this object.
  Compactor(CountedStores& stores, const CommitLog* log, Committer& committer,
            const Clock& clock = Clock::Steady())
      : stores_(stores), log_(log), committer_(committer), clock_(clock) {}

  // Does what Engine::CompactStore() says, to a store that is not damaged. Does not use
  // `request.store`.
  absl::StatusOr<CompactionResult> Compact(const std::shared_ptr<Store>& store,
                                           const CompactionRequest& request,
                                           const CancelToken& cancel);

 private:
  // Returns false if the store is being compacted already. The store is then queued for
  // AutoCompactor once that compaction has ended: rows that were deleted after it began are left
  // for another one.
  bool Begin(const std::shared_ptr<Store>& store);
  void End(std::uint64_t number);
  // Compacts one run, whose rows are in the records `spans`. Reads rows again that were evicted
  // meanwhile. The snapshot of the returned outcome is null.
  absl::StatusOr<CompactOutcome> CompactRun(const std::shared_ptr<Store>& store, BlockRun run,
                                            const std::vector<RowSpan>& spans,
                                            std::uint64_t replay_count, const CancelToken& cancel);
  // Compacts the run in one write. ROWS_NOT_RESIDENT if a block is neither resident then nor in
  // `read`. The snapshot of the returned outcome is null.
  absl::StatusOr<CompactOutcome> Commit(const std::shared_ptr<Store>& store, BlockRun run,
                                        std::vector<RowSpan> spans,
                                        std::vector<StoreEditor::ReadBlock> read,
                                        std::uint64_t replay_count);
  // Reads the rows of the blocks with rows in `spans` that are not resident.
  absl::StatusOr<std::vector<StoreEditor::ReadBlock>> ReadEvicted(const Store& store,
                                                                  absl::Span<const RowSpan> spans,
                                                                  const CancelToken& cancel) const;
  // Waits as long as the run took that began at `begin`, so that lookups have the cores meanwhile.
  void RestAfterRun(absl::Time begin) const;

  CountedStores& stores_;
  const CommitLog* const log_;
  Committer& committer_;
  const Clock& clock_;

  absl::Mutex mutex_;
  // The numbers of the stores that are being compacted. The value is the store of this number if
  // Begin() refused a compaction of it meanwhile, else null. A rename may have made it another
  // Store than the one that is being compacted.
  std::map<std::uint64_t, std::weak_ptr<Store>> in_progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_COMPACTOR_H_
