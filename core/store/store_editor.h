#ifndef SOFTLOOKUP_CORE_STORE_STORE_EDITOR_H_
#define SOFTLOOKUP_CORE_STORE_STORE_EDITOR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/matrix_view.h"
#include "core/store/growing_blocks.h"
#include "core/store/growing_memories.h"
#include "core/store/recorded_write.h"
#include "core/store/rollback_map.h"
#include "core/store/row_tags.h"
#include "core/store/snapshot.h"
#include "core/store/store_lease.h"
#include "core/store/writer_table.h"
#include "softlookup/memory.h"
#include "softlookup/row.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Rows to append. The caller must have checked them.
struct RowBatch {
  MatrixView keys;
  MatrixView values;
  absl::Span<const std::uint64_t> ids;                    // Empty, or one per row, all different.
  absl::Span<const std::vector<std::string>> row_labels;  // Empty, or one element per row.
  OnConflict on_conflict = OnConflict::kFail;
  // The writer's name and the number of its append. The batch is a duplicate if `sequence` is not
  // above that of the writer's last append. A batch without a writer's name is never a duplicate.
  absl::string_view writer;
  std::uint64_t sequence = 0;
};

struct AppendOutcome {
  // The snapshot that the append made. The newest one if nothing was changed.
  std::shared_ptr<const Snapshot> snapshot;
  std::uint64_t first_position = 0;
  std::uint64_t appended_count = 0;         // Below the batch's row count if rows were skipped.
  bool duplicate = false;                   // If the batch is a duplicate, nothing was changed.
  std::vector<std::int64_t> masked_blocks;  // Blocks in which the write deleted rows, ascending.
};

struct DeleteOutcome {
  std::shared_ptr<const Snapshot> snapshot;
  std::uint64_t deleted_count = 0;
  std::vector<std::int64_t> masked_blocks;  // Blocks in which the write deleted rows, ascending.
};

struct CompactOutcome {
  std::shared_ptr<const Snapshot> snapshot;
  std::int64_t dropped_rows = 0;
  std::vector<std::int64_t> compacted_blocks;  // Blocks that lost rows, ascending.
};

// Makes the writes of one store, each whole or not at all. Each write makes a snapshot from the
// snapshot before. A write can be rolled back until it is committed, because the log may refuse it.
// The caller must check arguments. Not thread-safe, but its snapshots are.
class StoreEditor {
 public:
  using LiveIds = RollbackMap<std::uint64_t, std::uint64_t>;  // Positions of live rows, by id.
  // What a store that was read from the log is made of.
  struct Parts {
    StoreConfig config;
    std::uint64_t revision = 0;
    GrowingBlocks blocks;
    GrowingMemories memories;
    std::shared_ptr<LabelDictionary> labels;  // Null if no row ever had a label.
    LiveIds live_ids;
    WriterTable writers;
  };

  // Makes an empty store at revision 1.
  explicit StoreEditor(StoreConfig config);
  explicit StoreEditor(Parts parts);

  StoreLease& lease() { return *lease_; }
  // The snapshot after the last write, committed or not.
  const std::shared_ptr<const Snapshot>& newest() const { return state_.newest; }

  // Appends the rows as one revision. Makes no revision for a duplicate, or if all rows are skipped
  // and the batch names no writer. Changes nothing on an error. ROW_EXISTS if a live row has one of
  // the ids, unless on_conflict is kReplace or kSkip. TOO_MANY_WRITERS if the batch names a new
  // writer and the store has kWriterCountMax already.
  absl::StatusOr<AppendOutcome> Append(const RowBatch& batch);

  // Deletes the live rows that pass `filter` as one revision. Makes no revision if no row passes.
  // Positions and memories do not change. POSITION_OUT_OF_RANGE if the filter's begin and end are
  // not a range within the store's positions.
  absl::StatusOr<DeleteOutcome> Delete(const RowFilter& filter);

  // Drops deleted rows of the blocks [begin, end) as one revision, as GrowingBlocks::Compact()
  // does. Makes no revision if no block loses rows. Lookups keep their bits. The memories as of a
  // position within a block that lost rows can no longer be computed.
  CompactOutcome Compact(std::int64_t begin, std::int64_t end);
  // Changes the configuration as one revision. `change` may change only the name and what a
  // StoreUpdate can.
  std::shared_ptr<const Snapshot> Update(absl::FunctionRef<void(StoreConfig&)> change);

  // The rows of a block that is not resident, read from the log.
  struct ReadBlock {
    std::int64_t index = 0;
    std::shared_ptr<const RowMask> kept;  // SealedBlock::kept when the log was read.
    RowsOfBlock rows;
  };
  // These two change which full blocks are resident. The revision stays. All writes must be
  // committed. Evict() evicts each resident block for which should_evict(index) is true.
  std::shared_ptr<const Snapshot> Evict(absl::FunctionRef<bool(std::int64_t)> should_evict);
  // Leaves out blocks that are resident by now, or were compacted after the log was read.
  std::shared_ptr<const Snapshot> Load(std::vector<ReadBlock> blocks);

  // Makes a write that another replica has made, from its records. The store then has the same bits
  // as there. DATA_LOSS if the write does not follow this store's newest revision: Rollback() must
  // be called then.
  absl::StatusOr<std::shared_ptr<const Snapshot>> Replay(const RecordedWrite& write);

  // Returns the last append of `writer`, or null if it never appended.
  const WriterState* FindWriter(absl::string_view writer) const { return writers_.Find(writer); }

  // Returns memory `index` (0: average; then those of the configuration) as it is after the last
  // row.
  MemoryValue ReadMemory(std::size_t index) const;

  // Makes the writes so far final. They cannot be rolled back any more.
  void Commit();
  // Undoes the writes since the last Commit. Snapshots of these writes must not be read afterwards.
  void Rollback();

  class Savepoint;
  // Returns a savepoint, to which RollbackTo() can return after later writes.
  Savepoint MakeSavepoint();
  // Undoes the writes since `savepoint` was made. There must have been no Commit and no Rollback
  // since then. Snapshots of these writes must not be read afterwards.
  void RollbackTo(const Savepoint& savepoint);

 private:
  // Everything that a write changes, except live_ids_ and writers_. Those two keep a list of their
  // changes instead, to roll them back. Copying a State copies a few pointers, and no rows.
  struct State {
    std::shared_ptr<const Snapshot> newest;
    GrowingBlocks blocks;
    GrowingMemories memories;
    std::shared_ptr<LabelDictionary> labels;  // Null before the first row with a label.
    std::uint32_t label_count = 0;            // Size of `labels` when `newest` was made.
    std::int64_t config_bytes = 0;
  };

  // Which rows of a batch to append, and the positions of the rows that they replace, ascending.
  struct RowChoice {
    std::vector<bool> appended;  // By row of the batch.
    std::vector<std::uint64_t> replaced;
  };

  // Chooses by ids and batch.on_conflict. ROW_EXISTS as Append() says.
  absl::StatusOr<RowChoice> ChooseRows(const RowBatch& batch) const;
  // Appends a row to the blocks, and adds it to the memories. `reader` must read panels of the
  // blocks' shape.
  void AppendRow(const NewRow& row, kernels::PanelRowReader& reader);
  // Returns the numbers of `labels`, new ones for new labels.
  std::vector<std::uint32_t> Intern(absl::Span<const std::string> labels);
  // The parts of Replay().
  absl::Status ReplayMasks(const std::map<std::uint64_t, RecordedWrite::Masks>& masks);
  absl::Status ReplayRows(const RecordedWrite::Rows& rows,
                          const std::map<std::uint64_t, std::vector<double>>& memories);
  // Makes the memories those that a replica recorded before the first row of a block.
  absl::Status ReplayMemories(absl::Span<const double> memories);

  // Deletes the rows at `positions`, which must ascend. All of these rows must be live. Returns the
  // indexes of their blocks.
  std::vector<std::int64_t> DeletePositions(absl::Span<const std::uint64_t> positions);
  // Makes state_.newest a snapshot of state_, as the next revision.
  void MakeNextSnapshot() { MakeSnapshot(newest()->config_, newest()->revision_ + 1); }
  void MakeSnapshot(std::shared_ptr<const StoreConfig> config, std::uint64_t revision);
  // Returns the store's bytes, for Snapshot::byte_size(). Takes the same time for a store of any
  // size.
  std::int64_t ByteSize() const;

  const std::shared_ptr<StoreLease> lease_ = std::make_shared<StoreLease>();
  State state_;
  State committed_;
  LiveIds live_ids_;
  WriterTable writers_;
};

// A state to roll back to. Making and holding one costs a few pointers. The first row that is
// appended afterwards costs a copy of the memories and of the partial panel. The editor and the
// savepoint then share neither any more.
class StoreEditor::Savepoint {
 private:
  friend class StoreEditor;
  Savepoint(const State& state, std::size_t id_change_count, WriterTable::Savepoint writers)
      : state_(state), id_change_count_(id_change_count), writers_(writers) {}

  State state_;
  std::size_t id_change_count_;
  WriterTable::Savepoint writers_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_STORE_EDITOR_H_
