#ifndef SOFTLOOKUP_CORE_STORE_STORE_WRITER_H_
#define SOFTLOOKUP_CORE_STORE_STORE_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/matrix_view.h"
#include "core/kernels/panel_rows.h"
#include "core/store/snapshot.h"

namespace softlookup {

// The rows of a block: a power of two, as many as keep it in a core's second-level cache, so that a
// batch of queries reads it from main memory once. Fixed by the shape, because the bits of an
// answer depend on it.
std::int64_t BlockRows(const kernels::PanelShape& shape);

// Rows to append: checked, and whole.
struct RowBatch {
  MatrixView keys;
  MatrixView values;
  absl::Span<const std::uint64_t> ids;                    // None, or one a row, all different.
  absl::Span<const std::vector<std::string>> row_labels;  // None, or one a row.
  OnConflict on_conflict = OnConflict::kFail;
  // Who appends, and which of their appends this is: a sequence not above the writer's last one is
  // a duplicate. No writer: never.
  absl::string_view writer;
  std::uint64_t sequence = 0;
};

// Where a writer stands.
struct WriterState {
  std::uint64_t last_sequence = 0;
  std::uint64_t last_position = 0;  // Of the last row it appended; 0 if all its rows were skipped.
};

struct AppendOutcome {
  std::shared_ptr<const Snapshot> snapshot;  // The first that shows the rows.
  std::uint64_t first_position = 0;
  std::uint64_t appended_count = 0;         // Less than the batch's where rows were skipped.
  bool duplicate = false;                   // Then nothing else was done.
  std::vector<std::int64_t> masked_blocks;  // Those that lost rows, by index, ascending.
};

struct DeleteOutcome {
  std::shared_ptr<const Snapshot> snapshot;
  std::uint64_t deleted_count = 0;
  std::vector<std::int64_t> masked_blocks;  // As above.
};

// Makes the snapshots of one store, each from the one before. A write is made whole or not at all.
// It can be rolled back until it is committed, because it may have to reach a disk first. Not
// thread-safe; its snapshots are. The caller checks arguments.
class StoreWriter {
 public:
  // Whether it feeds running memories. Without them, no memory may be read.
  enum class Memories { kKept, kNone };

  // With revision 1.
  explicit StoreWriter(StoreConfig config, Memories memories = Memories::kKept);

  StoreLease& lease() { return *lease_; }
  // What the next write builds on.
  const std::shared_ptr<const Snapshot>& newest() const { return state_.newest; }

  // Appends the rows as one revision; if all are skipped and there is no writer to remember, there
  // is none. ROW_EXISTS, and nothing changed, if a live row has one of the ids and on_conflict says
  // so; TOO_MANY_WRITERS likewise.
  absl::StatusOr<AppendOutcome> Append(const RowBatch& batch);

  // Deletes the live rows that `filter` leaves as one revision; if there are none, there is none.
  // Positions stay, and so do the memories. POSITION_OUT_OF_RANGE as in RowSelection.
  absl::StatusOr<DeleteOutcome> Delete(const RowFilter& filter);

  // Changes the configuration as one revision. Name and dimensions stay.
  std::shared_ptr<const Snapshot> Update(absl::FunctionRef<void(StoreConfig&)> change);

  // Where `writer` stands; null if it never appended.
  const WriterState* FindWriter(absl::string_view writer) const;

  // Memory `index`, as Snapshot numbers them, as of all rows.
  MemoryValue ReadMemory(std::size_t index) const;

  // Keeps the writes so far.
  void Commit();
  // Undoes the writes since the last Commit. Their snapshots must not be read any more.
  void Rollback();

  class Savepoint;
  // Only writes that come after it can be rolled back to it.
  Savepoint MakeSavepoint();
  // Undoes the writes since `savepoint`, which must have been made after the last Commit and the
  // last Rollback.
  void RollbackTo(const Savepoint& savepoint);

 private:
  friend class StoreLoader;

  const std::shared_ptr<StoreLease> lease_ = std::make_shared<StoreLease>();

  // All that a write changes but for live_ids_ and writers_. Copying it costs a few pointers.
  struct State {
    std::shared_ptr<const Snapshot> newest;
    std::shared_ptr<const StoreConfig> config;
    std::uint64_t revision = 0;
    SharedList<SealedBlock> sealed;
    std::shared_ptr<PanelBuffer> tail_panels;
    // Where the next blocks are put, behind what is used of it. Null: by themselves.
    std::shared_ptr<PanelRegion> region;
    std::int64_t region_used = 0;
    std::int64_t tail_rows = 0;
    RowBounds tail_bounds;
    // Null while no row of the tail has tags, or is deleted.
    std::shared_ptr<const RowTags> tail_tags;
    std::shared_ptr<const RowMask> tail_live;
    std::shared_ptr<LabelDictionary> labels;
    std::uint32_t label_count = 0;  // Of those, that a snapshot may show.
    std::int64_t config_bytes = 0;
    std::int64_t sealed_bytes = 0;  // Of sealed blocks.
    std::uint64_t deleted_count = 0;
    std::shared_ptr<const MemorySet> memories_before_tail;  // Null in block 0, as in SealedBlock.
    // The panel that is filling; copied behind the full ones when it is full.
    std::shared_ptr<PanelBuffer> partial_panel;
    // As of all rows. Like the two above, there is none before the first row: an empty store is
    // small.
    std::shared_ptr<MemorySet> memories;
  };

  // Which rows of a batch are to be appended, and which positions go for them, ascending.
  struct Admission {
    std::vector<bool> admitted;
    std::vector<std::uint64_t> replaced;
  };

  struct WriterChange {
    std::string writer;
    std::optional<WriterState> before;
  };
  struct IdChange {
    std::uint64_t id = 0;
    std::optional<std::uint64_t> position_before;
  };

  absl::StatusOr<Admission> Admit(const RowBatch& batch) const;
  void TagRow(const RowBatch& batch, std::int64_t row);
  // `reader` is of panels of this shape.
  void AppendRow(const float* key, const float* value, kernels::PanelRowReader& reader);
  void AddToMemories(const kernels::PanelRow& row);
  void StartTail();
  // Room for a block of panels.
  std::shared_ptr<PanelBuffer> NewBlock();
  void SealTail();
  void TakeGrowingTags();
  // Marks live rows, given by position in ascending order, as deleted. Returns their blocks.
  std::vector<std::int64_t> DeletePositions(absl::Span<const std::uint64_t> positions);
  // Packs the live rows of a sealed block that has few, so that the cost of a lookup follows them.
  // Called whenever one of its rows goes: the bits of an answer depend on which rows are live, not
  // on the order in which the others went.
  void PackIfFewAreLive(SealedBlock& block);
  void AddSealed(absl::Span<SealedBlock> blocks);
  void SetConfig(StoreConfig config);
  void SetWriter(const std::string& writer, WriterState state);
  // The live row of `id` is at `position`, or gone.
  void SetId(std::uint64_t id, std::optional<std::uint64_t> position);
  // Makes the state's snapshot, as the next revision.
  void MakeSnapshot();
  std::uint64_t RowCount() const {
    return static_cast<std::uint64_t>(state_.sealed.size() * block_rows_ + state_.tail_rows);
  }
  // See Snapshot::byte_size. Costs the same for a store of any size.
  std::int64_t ByteSize() const;
  std::int64_t TailBytes() const;

  const kernels::PanelShape shape_;
  const std::int64_t block_rows_;
  const bool keeps_memories_;

  State state_;
  State committed_;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> live_ids_;  // Id to position.
  std::vector<IdChange> id_changes_;                            // Since the last Commit.
  absl::flat_hash_map<std::string, WriterState> writers_;
  std::int64_t writer_name_bytes_ = 0;        // That the names in writers_ have allocated.
  std::vector<WriterChange> writer_changes_;  // Likewise.
  // Of the batch in progress; tail_tags from when its snapshot is made or the tail sealed.
  std::unique_ptr<RowTags> growing_tags_;
  // Whether a snapshot or the committed state has the partial panel, or the memories. The next row
  // then goes into a copy.
  bool partial_panel_shown_ = false;
  bool memories_shared_ = false;
};

// Costs a few pointers; so does holding it.
class StoreWriter::Savepoint {
 private:
  friend class StoreWriter;
  State state_;
  std::size_t id_change_count_ = 0;
  std::size_t writer_change_count_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_STORE_WRITER_H_
