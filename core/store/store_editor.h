#ifndef SOFTLOOKUP_CORE_STORE_STORE_EDITOR_H_
#define SOFTLOOKUP_CORE_STORE_STORE_EDITOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/matrix_view.h"
#include "core/kernels/panel.h"
#include "core/kernels/panel_rows.h"
#include "core/memory/running_memory.h"
#include "core/store/panel_allocator.h"
#include "core/store/panel_buffer.h"
#include "core/store/rollback_map.h"
#include "core/store/row_bounds.h"
#include "core/store/row_tags.h"
#include "core/store/sealed_block.h"
#include "core/store/shared_list.h"
#include "core/store/snapshot.h"
#include "core/store/store_lease.h"
#include "core/store/stored_blocks.h"
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
  // above that of the writer's last append. A batch without a name is never a duplicate.
  absl::string_view writer;
  std::uint64_t sequence = 0;
};

// The last append of a writer.
struct WriterState {
  std::uint64_t last_sequence = 0;
  std::uint64_t last_position = 0;  // Position of the writer's last row. 0: it has appended none.
};

struct AppendOutcome {
  // The first snapshot that shows the rows. The newest one if nothing was changed.
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

// Makes the snapshots of one store, each from the snapshot before. A write is made whole or not at
// all. A write can be rolled back until it is committed, because the log may refuse it. The caller
// must check arguments. Not thread-safe, but its snapshots are.
class StoreEditor {
 public:
  // Whether the editor adds rows to the running memories. With kNone, no memory may be read.
  enum class Memories { kKept, kNone };

  // Makes an empty store at revision 1.
  explicit StoreEditor(StoreConfig config, Memories memories = Memories::kKept);

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

  // Changes the configuration as one revision. `change` may change only what a StoreUpdate can.
  std::shared_ptr<const Snapshot> Update(absl::FunctionRef<void(StoreConfig&)> change);

  // Returns the last append of `writer`, or null if it never appended.
  const WriterState* FindWriter(absl::string_view writer) const;

  // Returns memory `index` (0: average; then those of the configuration) after the last row.
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
  friend class StoreLoader;

  const std::shared_ptr<StoreLease> lease_ = std::make_shared<StoreLease>();

  // Everything that a write changes, except live_ids_ and writers_, which list their changes.
  // Copying a State copies a few pointers, and no rows.
  struct State {
    std::shared_ptr<const Snapshot> newest;
    std::shared_ptr<const StoreConfig> config;
    std::uint64_t revision = 0;
    SharedList<SealedBlock> sealed;
    // The full panels of the tail, with room for more. Null while no panel of the tail is full.
    std::shared_ptr<PanelBuffer> tail_panels;
    PanelAllocator panel_allocator;  // Allocates the blocks and their sketches.
    std::int64_t tail_rows = 0;
    RowBounds tail_bounds;
    std::shared_ptr<const RowTags> tail_tags;  // Null while no row of the tail has tags.
    std::shared_ptr<const RowMask> tail_live;  // Null while no row of the tail is deleted.
    std::shared_ptr<LabelDictionary> labels;   // Null before the first row with a label.
    std::uint32_t label_count = 0;             // Labels that `newest` may show.
    std::int64_t config_bytes = 0;
    std::int64_t sealed_bytes = 0;       // Sum of SealedBlock::bytes() over `sealed`.
    std::int64_t writer_name_bytes = 0;  // Heap bytes of the names in writers_.
    std::uint64_t deleted_count = 0;
    // The state of the memories before the tail's first row. Null while the tail has no row, for
    // block 0, or if the editor keeps no memories.
    std::shared_ptr<const MemorySet> memories_before_tail;
    // The panel that is filling. When it is full, it is copied behind the full panels of
    // tail_panels. Null until a row is put into it, so that an empty store is small.
    std::shared_ptr<PanelBuffer> partial_panel;
    // The state of the memories after the last row. Null before the first row, so that an empty
    // store is small. Also null if the editor keeps no memories.
    std::shared_ptr<MemorySet> memories;
  };

  // Which rows of a batch to append, and the positions of the rows that they replace, ascending.
  struct Admission {
    std::vector<bool> admitted;
    std::vector<std::uint64_t> replaced;
  };

  absl::StatusOr<Admission> Admit(const RowBatch& batch) const;
  void TagRow(const RowBatch& batch, std::int64_t row);
  // `reader` must read panels of shape_.
  void AppendRow(const float* key, const float* value, kernels::PanelRowReader& reader);
  void AddToMemories(const kernels::PanelRow& row);
  // Makes room in tail_panels for one more panel. Snapshots that show the old buffer keep it.
  void MakeRoomInTail();
  // Allocates the panels of one block, or of its sketch, for a store of `block_count` blocks.
  std::shared_ptr<PanelBuffer> NewPanels(const kernels::PanelShape& shape,
                                         std::int64_t block_count);
  // Makes the sketch of a full block. Returns null if HasSketch() is false.
  std::shared_ptr<const BlockSketch> NewSketch(const SealedBlock& block, std::int64_t block_count);
  void SealTail();
  // Makes growing_tags_ the tags of the tail. Does nothing if growing_tags_ is null.
  void TakeGrowingTags();
  // Deletes the live rows at `positions`, which must ascend. Returns the indexes of their blocks.
  std::vector<std::int64_t> DeletePositions(absl::Span<const std::uint64_t> positions);
  // Packs the live rows of a sealed block if they are few. A lookup then costs only as much as the
  // live rows. Call this whenever rows of the block are deleted. Which blocks are packed then
  // depends on which rows are live, not on the order of the deletions. That matters because the
  // bits of an answer depend on which blocks are packed.
  void PackIfFewAreLive(SealedBlock& block);
  // Moves the full blocks `blocks` behind the sealed blocks. Makes their packed rows or sketches,
  // which must be unset.
  void AddSealed(absl::Span<SealedBlock> blocks);
  void SetConfig(StoreConfig config);
  void SetWriter(const std::string& writer, WriterState state);
  // Makes a snapshot of state_ as the next revision.
  void MakeSnapshot();
  // Returns the tail as a snapshot of state_ sees it. The snapshot then shares the partial panel.
  TailView ViewTail();
  std::uint64_t RowCount() const {
    return static_cast<std::uint64_t>(state_.sealed.size() * block_rows_ + state_.tail_rows);
  }
  // Returns the store's bytes, for Snapshot::byte_size(). Takes the same time for a store of any
  // size.
  std::int64_t ByteSize() const;
  std::int64_t TailBytes() const;

  const kernels::PanelShape shape_;
  const std::int64_t block_rows_;

  State state_;
  State committed_;
  RollbackMap<std::uint64_t, std::uint64_t> live_ids_;  // Positions of live rows, by id.
  RollbackMap<std::string, WriterState> writers_;       // By name.
  // A copy of state_.tail_tags with the tags of the batch in progress added. Null until that batch
  // adds a row with tags. Becomes state_.tail_tags when a snapshot is made or the tail is sealed.
  std::unique_ptr<RowTags> growing_tags_;
  const bool keeps_memories_;
  // partial_panel_shared_: a snapshot, a savepoint or the committed state may share the partial
  // panel. memories_shared_: a savepoint or the committed state may share the memories. While a
  // flag is set, the next row goes into a copy.
  bool partial_panel_shared_ = false;
  bool memories_shared_ = false;
};

// A state to roll back to. Making and holding one costs a few pointers. The first row that is
// appended afterwards costs a copy of the memories and of the partial panel. The editor and the
// savepoint then share neither any more.
class StoreEditor::Savepoint {
 private:
  friend class StoreEditor;
  State state_;
  std::size_t id_change_count_ = 0;
  std::size_t writer_change_count_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_STORE_EDITOR_H_
