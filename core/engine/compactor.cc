#include "core/engine/compactor.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/appender.h"
#include "core/engine/put_records.h"
#include "core/engine/store_write.h"
#include "core/storage/records.h"
#include "core/store/snapshot.h"
#include "core/store/stored_blocks.h"

namespace softlookup {
namespace {

// Most blocks that one write compacts. Other writes wait for it, and the log rewrites what is left
// of these blocks in one batch.
constexpr std::int64_t kBlocksPerWrite = 16;

// Blocks [begin, end) of a store.
struct BlockRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Returns the blocks that have rows to drop, in order, as runs of at most kBlocksPerWrite.
std::vector<BlockRun> RunsToCompact(const StoredBlocks& blocks) {
  std::vector<BlockRun> runs;
  const std::int64_t block_count = blocks.row_count() / blocks.block_rows();
  for (std::int64_t block = 0; block < block_count; ++block) {
    if (blocks.RowsToDropOf(block) == 0) continue;
    if (runs.empty() || runs.back().end != block || block - runs.back().begin == kBlocksPerWrite) {
      runs.push_back({.begin = block, .end = block});
    }
    runs.back().end = block + 1;
  }
  return runs;
}

// Compacts one run.
class CompactWrite final : public StoreWrite<CompactOutcome> {
 public:
  // `spans` are the records of the log that have the rows of the run.
  CompactWrite(CountedStores& stores, std::shared_ptr<Store> store, BlockRun run,
               std::vector<RowSpan> spans, WriteCallback<CompactOutcome> callback)
      : StoreWrite(stores, std::move(store), std::move(callback)),
        run_(run),
        spans_(std::move(spans)) {}

 protected:
  absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreEditor& editor) override {
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
  const BlockRun run_;
  const std::vector<RowSpan> spans_;
  CompactOutcome outcome_;
};

// The kRows records of one store in the log. Only compactions change those of full blocks.
class RowRecords {
 public:
  // Reads the records of the rows of `run` and of all blocks before it.
  static absl::StatusOr<RowRecords> Read(const CommitLog& log, std::uint64_t store,
                                         const StoredBlocks& blocks, const BlockRun& run,
                                         const CancelToken& cancel) {
    RowRecords records(blocks.block_rows());
    const auto key_at = [&](std::int64_t block) {
      return EncodeKey({.store = store,
                        .kind = RecordKind::kRows,
                        .number = static_cast<std::uint64_t>(block * blocks.block_rows())});
    };
    SOFTLOOKUP_RETURN_IF_ERROR(
        log.Scan(key_at(0), key_at(run.end), [&](absl::string_view key, absl::string_view value) {
          SOFTLOOKUP_RETURN_IF_ERROR(cancel.Check());
          SOFTLOOKUP_ASSIGN_OR_RETURN(const RecordKey parsed, ParseKey(key));
          SOFTLOOKUP_ASSIGN_OR_RETURN(std::uint64_t row_count, ParseRowCount(value));
          // The record of a compacted block has fewer rows than positions.
          const auto block = static_cast<std::int64_t>(parsed.number) / blocks.block_rows();
          if (blocks.IsCompacted(block)) {
            row_count = static_cast<std::uint64_t>(blocks.block_rows());
          }
          records.spans_.push_back({.first_position = parsed.number, .row_count = row_count});
          return absl::OkStatus();
        }));
    return records;
  }

  // Returns the records that have a row of `run`, and forgets them and those before.
  // PutCompaction() must cut the last of them at the end of the run. Call this for ascending runs.
  // DATA_LOSS if no record has a row of the run, or several have it.
  absl::StatusOr<std::vector<RowSpan>> Take(const BlockRun& run) {
    const auto begin = static_cast<std::uint64_t>(run.begin * block_rows_);
    const auto end = static_cast<std::uint64_t>(run.end * block_rows_);
    while (next_ < spans_.size() && spans_[next_].end() <= begin) ++next_;
    std::vector<RowSpan> taken;
    std::uint64_t covered = begin;
    while (next_ < spans_.size() && spans_[next_].first_position < end) {
      const RowSpan& span = spans_[next_];
      if (taken.empty() ? span.first_position > begin : span.first_position != covered) break;
      taken.push_back(span);
      covered = span.end();
      if (spans_[next_].end() > end) {
        spans_[next_] = {.first_position = end, .row_count = spans_[next_].end() - end};
        break;
      }
      ++next_;
    }
    if (covered < end) {
      return MakeError(
          reasons::kDataLoss,
          absl::StrCat("the log has no whole record of the row at position ", covered));
    }
    return taken;
  }

 private:
  explicit RowRecords(std::int64_t block_rows) : block_rows_(block_rows) {}

  std::int64_t block_rows_;
  std::vector<RowSpan> spans_;  // In order.
  std::size_t next_ = 0;
};

absl::Status NeedsConsent(const StoredBlocks& blocks, const std::vector<BlockRun>& runs) {
  std::int64_t rows = 0;
  std::int64_t block_count = 0;
  for (const BlockRun& run : runs) {
    for (std::int64_t block = run.begin; block < run.end; ++block) {
      rows += blocks.RowsToDropOf(block);
      ++block_count;
    }
  }
  return MakeError(
      reasons::kCompactionEndsMemories,
      absl::StrCat(
          "end_memories: compaction would drop ", rows, " deleted rows of ", block_count,
          " blocks, from position ", runs.front().begin * blocks.block_rows(), " to ",
          runs.back().end * blocks.block_rows(),
          "; memories as of an index inside such a block, and windows of memories that begin "
          "or end there, would be lost; set end_memories to allow it"),
      {{"field", "end_memories"}, {"rows", absl::StrCat(rows)}});
}

}  // namespace

absl::StatusOr<CompactionResult> Compactor::Compact(const std::shared_ptr<Store>& store,
                                                    bool end_memories, const CancelToken& cancel) {
  bool has_dropped_rows = false;
  const absl::Cleanup count = [&] {
    if (has_dropped_rows) stores_.totals.AddCompaction();
  };
  {
    absl::MutexLock lock(&mutex_);
    if (!in_progress_.insert(store->number()).second) {
      return MakeError(reasons::kCompactionInProgress, "The store is being compacted");
    }
  }
  const absl::Cleanup end = [&] {
    absl::MutexLock lock(&mutex_);
    in_progress_.erase(store->number());
  };
  const std::shared_ptr<const Snapshot> snapshot = store->snapshot();
  const StoredBlocks& blocks = snapshot->stored_blocks();
  const std::vector<BlockRun> runs = RunsToCompact(blocks);
  CompactionResult result;
  if (!runs.empty()) {
    if (!end_memories) return NeedsConsent(blocks, runs);
    std::optional<RowRecords> records;
    if (log_ != nullptr) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(
          records, RowRecords::Read(*log_, store->number(), blocks, runs.back(), cancel));
    }
    for (const BlockRun& run : runs) {
      SOFTLOOKUP_RETURN_IF_ERROR(cancel.Check());
      std::vector<RowSpan> spans;
      if (records) {
        SOFTLOOKUP_ASSIGN_OR_RETURN(spans, records->Take(run));
      }
      absl::StatusOr<CompactOutcome> outcome;
      absl::Notification answered;
      auto write = std::make_unique<CompactWrite>(stores_, store, run, std::move(spans),
                                                  [&](absl::StatusOr<CompactOutcome> made) {
                                                    outcome = std::move(made);
                                                    answered.Notify();
                                                  });
      if (!committer_.Post(std::move(write), Committer::MayBlock::kYes)) return WriteQueueFull();
      answered.WaitForNotification();
      SOFTLOOKUP_RETURN_IF_ERROR(outcome.status());
      result.block_count += outcome->compacted_blocks.size();
      stores_.totals.AddDroppedRows(outcome->dropped_rows);
      has_dropped_rows = has_dropped_rows || outcome->dropped_rows > 0;
      result.dropped_rows += static_cast<std::uint64_t>(outcome->dropped_rows);
    }
  }
  result.store = store->info();
  return result;
}

}  // namespace softlookup
