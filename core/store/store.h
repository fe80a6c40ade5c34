#ifndef SOFTLOOKUP_CORE_STORE_STORE_H_
#define SOFTLOOKUP_CORE_STORE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/cancellation.h"
#include "core/base/matrix_view.h"
#include "core/store/snapshot.h"

namespace softlookup {

// The rows of a block: a power of two, as many as keep it in a core's second-level cache, so that a
// batch of queries reads it from main memory once. Fixed by the dimensions, because the bits of an
// answer depend on it.
std::int64_t BlockRows(const kernels::PanelShape& shape);

// Rows to append: checked, and whole.
struct RowBatch {
  MatrixView keys;
  MatrixView values;
  absl::Span<const std::uint64_t> ids;                    // None, or one a row, all different.
  absl::Span<const std::vector<std::string>> row_labels;  // None, or one a row.
  OnConflict on_conflict = OnConflict::kFail;
};

struct AppendOutcome {
  std::shared_ptr<const Snapshot> snapshot;  // The first that shows the rows.
  std::uint64_t first_position = 0;
  std::uint64_t appended_count = 0;  // Less than the batch's where rows were skipped.
};

struct DeleteOutcome {
  std::shared_ptr<const Snapshot> snapshot;
  std::uint64_t deleted_count = 0;
};

// One store in memory. Writers take turns; readers take snapshots and never wait for a writer at
// work. Thread-safe. Arguments are checked by the caller.
class Store {
 public:
  Store(StoreConfig config, absl::Time create_time);

  std::shared_ptr<const Snapshot> snapshot() const;
  // Different for every store of the process.
  std::uint64_t incarnation() const { return incarnation_; }
  StoreInfo InfoOf(const Snapshot& snapshot) const;
  StoreInfo info() const { return InfoOf(*snapshot()); }

  // Appends the rows as one revision; if all are skipped, there is none. ROW_EXISTS, and nothing
  // changed, if a live row has one of the ids and on_conflict says so.
  absl::StatusOr<AppendOutcome> Append(const RowBatch& batch);

  // Deletes the live rows that `filter` leaves as one revision; if there are none, there is none.
  // Positions stay, and so do the memories. POSITION_OUT_OF_RANGE as in RowSelection.
  absl::StatusOr<DeleteOutcome> Delete(const RowFilter& filter);

  // Changes the configuration as one revision. Name and dimensions stay.
  std::shared_ptr<const Snapshot> Update(absl::FunctionRef<void(StoreConfig&)> change);

  // Runs `callback` once: with OK when the store reaches `revision`, with the status of `cancel` if
  // that is cancelled before, with `status` if the store is closed before. On the thread where that
  // happens, which may be this one.
  void WhenRevision(std::uint64_t revision, std::shared_ptr<CancelToken> cancel,
                    absl::AnyInvocable<void(absl::Status)> callback);

  // The store is deleted: those who wait for a revision get `status`.
  void Close(absl::Status status);

 private:
  // Someone who waits for a revision; whoever takes the callback runs it.
  class Waiter;

  // Runs `body`, which changes the writer's state, and publishes the result.
  template <typename Body>
  std::shared_ptr<const Snapshot> Write(const Body& body) ABSL_LOCKS_EXCLUDED(writer_mutex_);
  // Which rows of the batch are to be appended; an error if one of them may not.
  absl::StatusOr<std::vector<bool>> Admit(const RowBatch& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  void TagRow(const RowBatch& batch, std::int64_t row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // Marks live rows, given by position in ascending order, as deleted.
  void DeletePositions(absl::Span<const std::uint64_t> positions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // Packs the live rows of a sealed block that has few, so that the cost of a lookup follows them.
  // Called whenever one of its rows goes: the bits of an answer depend on which rows are live, not
  // on the order in which the others went.
  void PackIfFewAreLive(SealedBlock& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  std::uint64_t RowCount() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_) {
    return static_cast<std::uint64_t>(sealed_.size() * block_rows_ + tail_rows_);
  }
  std::int64_t ByteSize() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  void AppendRow(const float* key, const float* value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  void StartTail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  void SealTail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // Makes the writer's state visible as the next revision. Whoever waited for it is moved to
  // `reached`, to be told without the lock.
  std::shared_ptr<const Snapshot> Publish(std::vector<std::shared_ptr<Waiter>>& reached)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);

  const std::uint64_t incarnation_;
  const absl::Time create_time_;
  const kernels::PanelShape shape_;
  const std::int64_t block_rows_;

  // What the next snapshot is made of.
  absl::Mutex writer_mutex_ ABSL_ACQUIRED_BEFORE(snapshot_mutex_);
  std::shared_ptr<const StoreConfig> config_ ABSL_GUARDED_BY(writer_mutex_);
  std::uint64_t revision_ ABSL_GUARDED_BY(writer_mutex_) = 0;
  SharedList<SealedBlock> sealed_ ABSL_GUARDED_BY(writer_mutex_);
  std::shared_ptr<PanelBuffer> tail_panels_ ABSL_GUARDED_BY(writer_mutex_);
  std::int64_t tail_rows_ ABSL_GUARDED_BY(writer_mutex_) = 0;
  RowBounds tail_bounds_ ABSL_GUARDED_BY(writer_mutex_);
  // Shared by snapshots once they show it; null while no row of the tail has tags, or is deleted.
  std::shared_ptr<const RowTags> tail_tags_ ABSL_GUARDED_BY(writer_mutex_);
  std::shared_ptr<const RowMask> tail_live_ ABSL_GUARDED_BY(writer_mutex_);
  // Of the batch in progress; moved to tail_tags_ when it is published or the tail sealed.
  std::unique_ptr<RowTags> growing_tags_ ABSL_GUARDED_BY(writer_mutex_);
  std::shared_ptr<LabelDictionary> labels_ ABSL_GUARDED_BY(writer_mutex_);
  absl::flat_hash_map<std::uint64_t, std::uint64_t> live_ids_
      ABSL_GUARDED_BY(writer_mutex_);                             // Id to position.
  std::int64_t tag_bytes_ ABSL_GUARDED_BY(writer_mutex_) = 0;     // Of sealed blocks.
  std::int64_t packed_bytes_ ABSL_GUARDED_BY(writer_mutex_) = 0;  // Likewise.
  std::uint64_t deleted_count_ ABSL_GUARDED_BY(writer_mutex_) = 0;
  std::shared_ptr<const MemorySet> memories_before_tail_ ABSL_GUARDED_BY(writer_mutex_);
  // The panel that is filling. Once a snapshot shows it, the next row goes into a copy. Copied
  // behind the full ones when it is full.
  std::shared_ptr<PanelBuffer> partial_panel_ ABSL_GUARDED_BY(writer_mutex_);
  bool partial_panel_shown_ ABSL_GUARDED_BY(writer_mutex_) = false;
  // As of all rows. Like all of the above, there is none before the first row: an empty store is
  // small.
  std::unique_ptr<MemorySet> memories_ ABSL_GUARDED_BY(writer_mutex_);

  mutable absl::Mutex snapshot_mutex_;
  std::shared_ptr<const Snapshot> snapshot_ ABSL_GUARDED_BY(snapshot_mutex_);
  std::vector<std::shared_ptr<Waiter>> waiters_ ABSL_GUARDED_BY(snapshot_mutex_);
  std::size_t waiters_before_sweep_ ABSL_GUARDED_BY(snapshot_mutex_) = 16;
  absl::Status closed_ ABSL_GUARDED_BY(snapshot_mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_STORE_H_
