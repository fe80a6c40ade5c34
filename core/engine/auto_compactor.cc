#include "core/engine/auto_compactor.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/base/check.h"
#include "core/base/error.h"
#include "core/store/snapshot.h"

namespace softlookup {
namespace {

// Returns whether `status` is a failure. A compaction that ends early is none if the server stops,
// if a call compacts the store already, or if the store was deleted or renamed. The rename queues
// the store again.
bool IsFailure(const absl::Status& status) {
  return !status.ok() && !absl::IsCancelled(status) && !absl::IsNotFound(status) &&
         ReasonOf(status) != reasons::kCompactionInProgress.name;
}

}  // namespace

CompactionRows CountCompactionRows(const StoredBlocks& blocks) {
  const std::int64_t block_rows = blocks.block_rows();
  const std::int64_t full_block_count = blocks.row_count() / block_rows;
  CompactionRows rows{.held = blocks.row_count()};
  for (std::int64_t block = 0; block < full_block_count; ++block) {
    rows.to_drop += blocks.RowsToDropOf(block);
    if (const RowMask* kept = blocks.KeptMaskOf(block)) {
      rows.held -= block_rows - kept->CountFirst(block_rows);
    }
  }
  SOFTLOOKUP_CHECK(rows.to_drop <= rows.held) << rows.to_drop << " of " << rows.held << " rows";
  return rows;
}

AutoCompactor::AutoCompactor(double compact_above, CountedStores& stores, Compactor& compactor,
                             std::shared_ptr<EngineObserver> observer)
    : compact_above_(compact_above),
      stores_(stores),
      compactor_(compactor),
      observer_(std::move(observer)) {
  SOFTLOOKUP_CHECK(compact_above > 0 && compact_above <= 1) << compact_above;
  stores_.compaction_queue.Open();
  thread_ = std::thread([this] { Run(); });
}

AutoCompactor::~AutoCompactor() {
  stores_.compaction_queue.Close();
  cancel_.Cancel();
  thread_.join();
}

void AutoCompactor::Run() {
  while (const std::shared_ptr<Store> store = stores_.compaction_queue.Take()) LookAt(store);
}

void AutoCompactor::LookAt(const std::shared_ptr<Store>& store) {
  {
    const std::shared_ptr<const Snapshot> snapshot = store->snapshot();
    if (snapshot->deleted_row_count() == 0) return;
    const auto last = counted_.find(store->number());
    if (last != counted_.end() && !MayBeEnough(last->second, *snapshot)) return;
    const CompactionRows rows = CountCompactionRows(snapshot->stored_blocks());
    if (!IsEnough(rows)) return Remember(store, *snapshot, rows);
    counted_.erase(store->number());
  }
  Compact(store);
}

void AutoCompactor::Compact(const std::shared_ptr<Store>& store) {
  const std::string name = store->snapshot()->config().name;
  if (observer_ != nullptr) observer_->OnAutoCompactionBegin(name);
  // Errors are not retried. If a write failed, or the queue of writes was full, the next write that
  // deletes rows queues the store again.
  std::uint64_t dropped_rows = 0;
  const CompactionRequest request{.end_memories = true, .dropped_rows = &dropped_rows};
  const absl::Status status = compactor_.Compact(store, request, cancel_).status();
  if (IsFailure(status)) stores_.totals.AddFailedCompaction();
  if (observer_ != nullptr) observer_->OnAutoCompactionEnd(name, status, dropped_rows);
}

bool AutoCompactor::IsEnough(const CompactionRows& rows) const {
  return rows.to_drop > 0 &&
         static_cast<double>(rows.to_drop) >= compact_above_ * static_cast<double>(rows.held);
}

bool AutoCompactor::MayBeEnough(const Counted& last, const Snapshot& snapshot) const {
  // Since the last count, at most one more block has got rows to drop for each row that was
  // deleted, and for each block behind which another one began. Compactions that callers asked for
  // have lowered `held` and `to_drop` by the same number. They are left out, which makes the part
  // of rows to drop no smaller.
  const std::int64_t block_rows = snapshot.stored_blocks().block_rows();
  const auto row_count = static_cast<std::int64_t>(snapshot.row_count());
  const std::int64_t appended = row_count - last.row_count;
  const std::int64_t block_count_max = static_cast<std::int64_t>(snapshot.deleted_row_count()) -
                                       last.deleted_rows + appended / block_rows + 1;
  return IsEnough({.held = last.rows.held + appended,
                   .to_drop = last.rows.to_drop + block_count_max * block_rows});
}

void AutoCompactor::Remember(const std::shared_ptr<Store>& store, const Snapshot& snapshot,
                             const CompactionRows& rows) {
  counted_.insert_or_assign(
      store->number(),
      Counted{.store = store,
              .rows = rows,
              .row_count = static_cast<std::int64_t>(snapshot.row_count()),
              .deleted_rows = static_cast<std::int64_t>(snapshot.deleted_row_count())});
  // Forgets deleted stores once they may be half of all.
  if (static_cast<std::int64_t>(counted_.size()) <= 2 * stores_.totals.stores()) return;
  absl::erase_if(counted_, [](const auto& entry) { return entry.second.store.expired(); });
}

}  // namespace softlookup
