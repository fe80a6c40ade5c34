#include "core/engine/compactor.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/appender.h"
#include "core/engine/entry_replay.h"
#include "core/engine/put_records.h"
#include "core/engine/read_blocks.h"
#include "core/engine/store_write.h"
#include "core/storage/records.h"
#include "core/store/kept_ranges.h"
#include "core/store/snapshot.h"
#include "core/store/stored_blocks.h"
#include "softlookup/partial_lookup.h"

namespace softlookup {
namespace {

// Maximum number of blocks in a run. One write compacts a run. Other writes wait for it, and the
// log rewrites what is left of these blocks in one batch.
constexpr std::int64_t kBlocksPerRun = 16;
// Longest rest after a run. A run that took longer has mostly waited for the disk, and the call can
// be cancelled only between two runs.
constexpr absl::Duration kRestMax = absl::Milliseconds(100);
// How long a caller should wait if the store is being compacted.
constexpr absl::Duration kCompactionRetryDelay = absl::Seconds(5);
// How often the evicted rows of a run are read. Others are evicted meanwhile only right after the
// ranges have changed, or after the run before has loaded them.
constexpr int kReadsMax = 10;

// Returns runs, in order, that together have all blocks with rows to drop. A run begins and ends
// with such a block. Of other blocks in between, only the records are rewritten, which takes less
// time than further writes.
std::vector<BlockRun> RunsToCompact(const StoredBlocks& blocks) {
  std::vector<BlockRun> runs;
  const std::int64_t block_count = blocks.row_count() / blocks.block_rows();
  for (std::int64_t block = 0; block < block_count; ++block) {
    if (blocks.RowsToDropOf(block) == 0) continue;
    if (runs.empty() || block - runs.back().begin >= kBlocksPerRun)
      runs.push_back({.begin = block});
    runs.back().end = block + 1;
  }
  return runs;
}

// Compacts one run.
class CompactWrite final : public StoreWrite<CompactOutcome> {
 public:
  // `spans` are the records of the log that have the rows of the run, and `read` the rows of the
  // blocks in them that are not resident. `replay_count` is as of before they were read.
  CompactWrite(CountedStores& stores, std::shared_ptr<Store> store, BlockRun run,
               std::vector<RowSpan> spans, std::vector<StoreEditor::ReadBlock> read,
               std::uint64_t replay_count, WriteCallback<CompactOutcome> callback)
      : StoreWrite(stores, std::move(store), std::move(callback)),
        stores_(stores),
        replay_count_(replay_count),
        run_(run),
        spans_(std::move(spans)),
        read_(std::move(read)) {}

 protected:
  absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreEditor& editor) override {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckNoReplaySince(replay_count_, stores_));
    SOFTLOOKUP_RETURN_IF_ERROR(CheckRows(*editor.newest()));
    if (!read_.empty()) editor.Load(std::move(read_));
    outcome_ = editor.Compact(run_.begin, run_.end);
    return outcome_.snapshot;
  }
  void PutRecords(const StoreEditor&, LogBatch& batch) override {
    if (outcome_.compacted_blocks.empty()) return;
    PutCompaction(store().number(), outcome_, run_.begin, run_.end, spans_, batch);
  }
  // A write that frees memory is never refused for want of it.
  bool IsBounded(const Snapshot&, const Snapshot&) const override { return false; }
  CompactOutcome MakeResult() override { return std::move(outcome_); }

 private:
  // Rows may have been evicted since those of other blocks were read.
  absl::Status CheckRows(const Snapshot& snapshot) const {
    const StoredBlocks& blocks = snapshot.stored_blocks();
    if (blocks.evicted_count() == 0 || spans_.empty()) return absl::OkStatus();
    const PositionRange rows{.begin = spans_.front().first_position, .end = spans_.back().end()};
    const auto block_rows = static_cast<std::uint64_t>(blocks.block_rows());
    auto read = read_.begin();
    for (std::uint64_t block = rows.begin / block_rows; block * block_rows < rows.end; ++block) {
      const auto index = static_cast<std::int64_t>(block);
      const bool was_read = read != read_.end() && read->index == index;
      if (was_read) ++read;
      if (!was_read && !blocks.IsResident(index)) {
        return RowsNotResident(snapshot.config().name, rows);
      }
    }
    return absl::OkStatus();
  }

  const CountedStores& stores_;
  const std::uint64_t replay_count_;
  const BlockRun run_;
  const std::vector<RowSpan> spans_;
  std::vector<StoreEditor::ReadBlock> read_;  // RangeResidency evicts these rows again.
  CompactOutcome outcome_;
};

// The kRows records that have the rows of some runs. Only compactions change those of full blocks.
class RowRecords {
 public:
  // Reads the records of the rows of `runs`, which must be in order.
  static absl::StatusOr<RowRecords> Read(const CommitLog& log, std::uint64_t store,
                                         const StoredBlocks& blocks,
                                         const std::vector<BlockRun>& runs,
                                         const CancelToken& cancel) {
    RowRecords records(blocks.block_rows());
    const auto key_at = [&](std::uint64_t position) {
      return EncodeKey({.store = store, .kind = RecordKind::kRows, .number = position});
    };
    auto run = runs.begin();
    const auto add = [&](absl::string_view key, absl::string_view value) -> absl::Status {
      SOFTLOOKUP_RETURN_IF_ERROR(cancel.Check());
      SOFTLOOKUP_ASSIGN_OR_RETURN(const RecordKey parsed, ParseKey(key));
      SOFTLOOKUP_ASSIGN_OR_RETURN(std::uint64_t row_count, ParseRowCount(value));
      // The record of a compacted block has fewer rows than positions.
      const auto block = static_cast<std::int64_t>(parsed.number) / blocks.block_rows();
      if (blocks.IsCompacted(block)) row_count = static_cast<std::uint64_t>(blocks.block_rows());
      const RowSpan span{.first_position = parsed.number, .row_count = row_count};
      while (run != runs.end() && records.PositionOf(run->end) <= span.first_position) ++run;
      if (run != runs.end() && span.end() > records.PositionOf(run->begin)) {
        records.spans_.push_back(span);
      }
      return absl::OkStatus();
    };
    // The record with the first row of the runs may begin before that row, but hardly ever by more
    // rows than one append may have.
    const std::uint64_t first = records.PositionOf(runs.front().begin);
    const std::string end = key_at(records.PositionOf(runs.back().end));
    const auto append_rows = static_cast<std::uint64_t>(Limits().rows_per_append_max);
    if (first > append_rows) {
      SOFTLOOKUP_RETURN_IF_ERROR(log.Scan(key_at(first - append_rows), end, add));
      if (!records.spans_.empty() && records.spans_[0].first_position <= first) return records;
    }
    records.spans_.clear();
    run = runs.begin();
    SOFTLOOKUP_RETURN_IF_ERROR(log.Scan(key_at(0), end, add));
    return records;
  }

  // Returns the records that have rows of `run`, and forgets them and those before. Assumes that
  // PutCompaction() then cuts the last of them at the end of the run. Call this for ascending runs.
  // DATA_LOSS if a row of the run is in no record, or in several.
  absl::StatusOr<std::vector<RowSpan>> Take(const BlockRun& run) {
    const std::uint64_t begin = PositionOf(run.begin), end = PositionOf(run.end);
    while (next_ < spans_.size() && spans_[next_].end() <= begin) ++next_;
    std::vector<RowSpan> taken;
    std::uint64_t covered = begin;
    while (next_ < spans_.size() && spans_[next_].first_position < end) {
      const RowSpan& span = spans_[next_];
      if (taken.empty() ? span.first_position > begin : span.first_position != covered) break;
      taken.push_back(span);
      covered = span.end();
      ++next_;
    }
    if (covered < end) {
      return MakeError(
          reasons::kDataLoss,
          absl::StrCat("the log has no whole record of the row at position ", covered));
    }
    // The records that PutCompaction() makes of the rows that the last record has behind the run.
    const std::vector<RowSpan> rest = SpansOf(end, covered, block_rows_);
    spans_.insert(spans_.begin() + static_cast<std::ptrdiff_t>(next_), rest.begin(), rest.end());
    return taken;
  }

 private:
  explicit RowRecords(std::int64_t block_rows) : block_rows_(block_rows) {}

  std::uint64_t PositionOf(std::int64_t block) const {
    return static_cast<std::uint64_t>(block * block_rows_);
  }

  std::int64_t block_rows_;
  std::vector<RowSpan> spans_;  // In order. Those before next_ are taken.
  std::size_t next_ = 0;
};

// Returns how many blocks have a row.
std::int64_t BlockCountOf(const Snapshot& snapshot) {
  const StoredBlocks& blocks = snapshot.stored_blocks();
  return (blocks.row_count() + blocks.block_rows() - 1) / blocks.block_rows();
}

absl::Status NeedsConsent(const StoredBlocks& blocks, const std::vector<BlockRun>& runs) {
  std::int64_t rows = 0;
  std::int64_t block_count = 0;
  for (const BlockRun& run : runs) {
    for (std::int64_t block = run.begin; block < run.end; ++block) {
      const std::int64_t dropped = blocks.RowsToDropOf(block);
      rows += dropped;
      block_count += dropped > 0 ? 1 : 0;
    }
  }
  return MakeError(
      reasons::kCompactionEndsMemories,
      absl::StrCat(
          "end_memories: compaction would drop ", rows,
          rows == 1 ? " deleted row of " : " deleted rows of ", block_count,
          block_count == 1 ? " block, from position " : " blocks, from position ",
          runs.front().begin * blocks.block_rows(), " to ", runs.back().end * blocks.block_rows(),
          "; memories as of an index inside such a block, and windows of memories that begin "
          "or end there, would be lost; set end_memories to allow it"),
      {{"field", "end_memories"}, {"rows", absl::StrCat(rows)}});
}

}  // namespace

bool MayDropMore(const Snapshot& before, const Snapshot& after) {
  if (after.deleted_row_count() == 0) return false;
  // The last block loses no rows until there is another one behind it.
  return after.deleted_row_count() > before.deleted_row_count() ||
         BlockCountOf(after) > BlockCountOf(before);
}

absl::StatusOr<CompactionResult> Compactor::Compact(const std::shared_ptr<Store>& store,
                                                    const CompactionRequest& request,
                                                    const CancelToken& cancel) {
  bool has_dropped_rows = false;
  const absl::Cleanup count = [&] {
    if (has_dropped_rows) stores_.totals.AddCompaction();
  };
  if (!Begin(store)) {
    return WithRetryAfter(MakeError(reasons::kCompactionInProgress, "The store is being compacted"),
                          kCompactionRetryDelay);
  }
  const absl::Cleanup end = [&] { End(store->number()); };
  const std::uint64_t replay_count = stores_.replay_count;
  std::vector<BlockRun> runs;
  std::optional<RowRecords> records;
  {
    // Nothing keeps this snapshot afterwards: it has the rows that the runs drop.
    const std::shared_ptr<const Snapshot> snapshot = store->snapshot();
    const StoredBlocks& blocks = snapshot->stored_blocks();
    runs = RunsToCompact(blocks);
    if (!runs.empty() && !request.end_memories) return NeedsConsent(blocks, runs);
    if (!runs.empty() && log_ != nullptr) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(records,
                                  RowRecords::Read(*log_, store->number(), blocks, runs, cancel));
    }
  }
  CompactionResult result;
  for (const BlockRun& run : runs) {
    SOFTLOOKUP_RETURN_IF_ERROR(cancel.Check());
    const absl::Time begin = clock_.Now();
    std::vector<RowSpan> spans;
    if (records) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(spans, records->Take(run));
    }
    SOFTLOOKUP_ASSIGN_OR_RETURN(const CompactOutcome outcome,
                                CompactRun(store, run, spans, replay_count, cancel));
    const auto dropped_rows = static_cast<std::uint64_t>(outcome.dropped_rows);
    result.block_count += outcome.compacted_blocks.size();
    result.dropped_rows += dropped_rows;
    if (request.dropped_rows != nullptr) *request.dropped_rows += dropped_rows;
    stores_.totals.AddDroppedRows(outcome.dropped_rows);
    has_dropped_rows = has_dropped_rows || outcome.dropped_rows > 0;
    if (&run != &runs.back()) RestAfterRun(begin);
  }
  result.store = store->info();
  return result;
}

bool Compactor::Begin(const std::shared_ptr<Store>& store) {
  absl::MutexLock lock(&mutex_);
  const auto [entry, is_new] = in_progress_.try_emplace(store->number());
  if (!is_new) entry->second = store;
  return is_new;
}

void Compactor::End(std::uint64_t number) {
  std::shared_ptr<Store> refused;
  {
    absl::MutexLock lock(&mutex_);
    refused = in_progress_.extract(number).mapped().lock();
  }
  if (refused != nullptr) stores_.compaction_queue.Add(refused);
}

absl::StatusOr<std::vector<StoreEditor::ReadBlock>> Compactor::ReadEvicted(
    const Store& store, absl::Span<const RowSpan> spans, const CancelToken& cancel) const {
  const std::shared_ptr<const Snapshot> snapshot = store.snapshot();
  const StoredBlocks& blocks = snapshot->stored_blocks();
  std::vector<StoreEditor::ReadBlock> read;
  if (blocks.evicted_count() == 0 || spans.empty()) return read;
  const auto block_of = [&](std::uint64_t position) {
    return static_cast<std::int64_t>(position) / blocks.block_rows();
  };
  const std::int64_t end = block_of(spans.back().end() - 1) + 1;
  for (std::int64_t index = block_of(spans.front().first_position); index < end; ++index) {
    if (blocks.IsResident(index)) continue;
    SOFTLOOKUP_ASSIGN_OR_RETURN(
        std::vector<StoreEditor::ReadBlock> block,
        ReadBlocks(*log_, store.number(), *snapshot, index, index + 1, cancel));
    read.push_back(std::move(block[0]));
  }
  return read;
}

absl::StatusOr<CompactOutcome> Compactor::CompactRun(const std::shared_ptr<Store>& store,
                                                     BlockRun run,
                                                     const std::vector<RowSpan>& spans,
                                                     std::uint64_t replay_count,
                                                     const CancelToken& cancel) {
  for (int reads = 1;; ++reads) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(std::vector<StoreEditor::ReadBlock> read,
                                ReadEvicted(*store, spans, cancel));
    absl::StatusOr<CompactOutcome> outcome =
        Commit(store, run, spans, std::move(read), replay_count);
    const bool was_evicted = ReasonOf(outcome.status()) == kRowsNotResident.name;
    if (!was_evicted || reads == kReadsMax) return outcome;
  }
}

absl::StatusOr<CompactOutcome> Compactor::Commit(const std::shared_ptr<Store>& store, BlockRun run,
                                                 std::vector<RowSpan> spans,
                                                 std::vector<StoreEditor::ReadBlock> read,
                                                 std::uint64_t replay_count) {
  absl::StatusOr<CompactOutcome> outcome;
  absl::Notification answered;
  auto write =
      std::make_unique<CompactWrite>(stores_, store, run, std::move(spans), std::move(read),
                                     replay_count, [&](absl::StatusOr<CompactOutcome> made) {
                                       outcome = std::move(made);
                                       answered.Notify();
                                     });
  if (!committer_.Post(std::move(write), Committer::MayBlock::kYes)) return WriteQueueFull();
  answered.WaitForNotification();
  if (outcome.ok()) outcome->snapshot = nullptr;  // It would keep the rows that later runs drop.
  return outcome;
}

void Compactor::RestAfterRun(absl::Time begin) const {
  const absl::Time end = clock_.Now();
  clock_.SleepUntil(end + std::min(end - begin, kRestMax));
}

}  // namespace softlookup
