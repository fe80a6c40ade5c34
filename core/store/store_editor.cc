#include "core/store/store_editor.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/base/status_macros.h"
#include "core/memory/heap_bytes.h"
#include "core/store/row_selection.h"
#include "core/store/store_bytes.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;

// A sealed block has its live rows packed if they are at most 1 / kPackedPart of all its rows.
constexpr std::int64_t kPackedPart = 4;

}  // namespace

StoreEditor::StoreEditor(StoreConfig config, Memories memories)
    : shape_(PanelShapeOf(config)),
      block_rows_(BlockRows(shape_)),
      keeps_memories_(memories == Memories::kKept) {
  SetConfig(std::move(config));
  MakeSnapshot();
  Commit();
}

void StoreEditor::Commit() {
  committed_ = state_;
  live_ids_.Commit();
  writers_.Commit();
  memories_shared_ = true;
  partial_panel_shared_ = true;
}

void StoreEditor::Rollback() {
  Savepoint committed;
  committed.state_ = committed_;
  RollbackTo(committed);
}

StoreEditor::Savepoint StoreEditor::MakeSavepoint() {
  // The savepoint shares the memories and the partial panel, so the next row must go into copies.
  memories_shared_ = true;
  partial_panel_shared_ = true;
  Savepoint savepoint;
  savepoint.state_ = state_;
  savepoint.id_change_count_ = live_ids_.change_count();
  savepoint.writer_change_count_ = writers_.change_count();
  return savepoint;
}

void StoreEditor::RollbackTo(const Savepoint& savepoint) {
  // A Commit since the savepoint would have emptied the lists of changes.
  SOFTLOOKUP_CHECK(savepoint.id_change_count_ <= live_ids_.change_count() &&
                   savepoint.writer_change_count_ <= writers_.change_count())
      << "the savepoint is older than the last commit";
  SOFTLOOKUP_CHECK(savepoint.state_.revision <= state_.revision)
      << "revision " << savepoint.state_.revision << " comes after " << state_.revision;
  state_ = savepoint.state_;
  growing_tags_ = nullptr;
  memories_shared_ = true;
  partial_panel_shared_ = true;
  if (state_.labels != nullptr) state_.labels->Truncate(state_.label_count);
  live_ids_.RollbackTo(savepoint.id_change_count_);
  live_ids_.FreeUnusedRoom();  // The writes that were undone may have made the table large.
  writers_.RollbackTo(savepoint.writer_change_count_);
}

const WriterState* StoreEditor::FindWriter(absl::string_view writer) const {
  return writers_.Find(writer);
}

void StoreEditor::SetWriter(const std::string& writer, WriterState state) {
  if (writers_.Find(writer) == nullptr) state_.writer_name_bytes += HeapBytes(writer);
  writers_.Set(writer, state);
}

MemoryValue StoreEditor::ReadMemory(std::size_t index) const {
  return state_.memories == nullptr ? MemorySetOf(*state_.config)[index].Read()
                                    : (*state_.memories)[index].Read();
}

absl::StatusOr<AppendOutcome> StoreEditor::Append(const RowBatch& batch) {
  AppendOutcome outcome{.snapshot = newest()};
  const bool has_writer = !batch.writer.empty();
  const WriterState* known = FindWriter(batch.writer);
  WriterState writer = known == nullptr ? WriterState{} : *known;
  if (known != nullptr && batch.sequence <= known->last_sequence) {
    outcome.duplicate = true;
    return outcome;
  }
  if (has_writer && known == nullptr &&
      static_cast<std::int64_t>(writers_.size()) >= kWriterCountMax) {
    return MakeError(reasons::kTooManyWriters,
                     absl::StrCat("The store knows its limit of ", kWriterCountMax, " writers"),
                     {{"limit", absl::StrCat(kWriterCountMax)}});
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const Admission admission, Admit(batch));
  outcome.masked_blocks = DeletePositions(admission.replaced);
  outcome.first_position = RowCount();
  kernels::PanelRowReader reader(shape_);
  for (std::int64_t row = 0; row < batch.keys.rows; ++row) {
    if (!admission.admitted[row]) continue;
    TagRow(batch, row);
    AppendRow(batch.keys.row(row), batch.values.row(row), reader);
    ++outcome.appended_count;
  }
  if (has_writer) {
    writer.last_sequence = batch.sequence;
    if (outcome.appended_count > 0) writer.last_position = RowCount() - 1;
    SetWriter(std::string(batch.writer), writer);
  }
  if (outcome.appended_count > 0 || has_writer) MakeSnapshot();
  outcome.snapshot = newest();
  return outcome;
}

absl::StatusOr<StoreEditor::Admission> StoreEditor::Admit(const RowBatch& batch) const {
  Admission admission{.admitted = std::vector<bool>(batch.keys.rows, true)};
  for (std::size_t row = 0; row < batch.ids.size(); ++row) {
    const std::uint64_t* position = live_ids_.Find(batch.ids[row]);
    if (position == nullptr) continue;
    if (batch.on_conflict == OnConflict::kSkip) {
      admission.admitted[row] = false;
    } else if (batch.on_conflict == OnConflict::kReplace) {
      admission.replaced.push_back(*position);
    } else {
      return MakeError(reasons::kRowExists,
                       absl::StrCat("ids: row ", row, ": a live row has the id ", batch.ids[row],
                                    ", at position ", *position),
                       {{"field", "ids"},
                        {"row", absl::StrCat(row)},
                        {"id", absl::StrCat(batch.ids[row])},
                        {"position", absl::StrCat(*position)}});
    }
  }
  std::sort(admission.replaced.begin(), admission.replaced.end());
  return admission;
}

void StoreEditor::TagRow(const RowBatch& batch, std::int64_t row) {
  const bool has_id = !batch.ids.empty();
  const bool has_labels = !batch.row_labels.empty() && !batch.row_labels[row].empty();
  if (!has_id && !has_labels) return;
  if (growing_tags_ == nullptr) {
    growing_tags_ = state_.tail_tags == nullptr ? std::make_unique<RowTags>()
                                                : std::make_unique<RowTags>(*state_.tail_tags);
  }
  std::vector<std::uint32_t> labels;
  if (has_labels) {
    if (state_.labels == nullptr) state_.labels = std::make_shared<LabelDictionary>();
    for (const std::string& label : batch.row_labels[row])
      labels.push_back(state_.labels->Intern(label));
  }
  std::optional<std::uint64_t> id;
  if (has_id) {
    id = batch.ids[row];
    live_ids_.Set(*id, RowCount());
  }
  growing_tags_->Add(state_.tail_rows, id, labels);
}

absl::StatusOr<DeleteOutcome> StoreEditor::Delete(const RowFilter& filter) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const RowSelection selection,
                              RowSelection::Make(*newest(), filter, "filter."));
  std::vector<std::uint64_t> positions;
  for (const PositionedBlock& block : selection.blocks()) {
    for (std::int64_t row = 0; row < block.view.row_count; ++row) {
      if (selection.Contains(block, row)) positions.push_back(block.PositionOf(row));
    }
  }
  DeleteOutcome outcome{.deleted_count = positions.size(),
                        .masked_blocks = DeletePositions(positions)};
  if (!positions.empty()) MakeSnapshot();
  outcome.snapshot = newest();
  return outcome;
}

std::vector<std::int64_t> StoreEditor::DeletePositions(absl::Span<const std::uint64_t> positions) {
  std::vector<std::int64_t> masked_blocks;
  if (positions.empty()) return masked_blocks;
  SOFTLOOKUP_CHECK(positions.back() < RowCount())
      << "position " << positions.back() << " of " << RowCount() << " rows";
  SOFTLOOKUP_DCHECK(std::adjacent_find(positions.begin(), positions.end(),
                                       std::greater_equal<>()) == positions.end())
      << "positions must ascend";
  state_.deleted_count += positions.size();
  auto next = positions.begin();
  const auto block_of = [&](std::uint64_t position) {
    return static_cast<std::int64_t>(position) / block_rows_;
  };
  // Replaces `live` by a copy in which the rows of `positions` in block `index` are cleared.
  // Removes these rows' ids from live_ids_.
  const auto clear = [&](std::int64_t index, const RowTags* tags,
                         std::shared_ptr<const RowMask>& live) {
    masked_blocks.push_back(index);
    RowMask mask = live == nullptr ? RowMask::All() : *live;
    for (; next != positions.end() && block_of(*next) == index; ++next) {
      const std::int64_t row = static_cast<std::int64_t>(*next) - index * block_rows_;
      mask.Clear(row);
      const auto id = tags == nullptr ? std::nullopt : tags->id(row);
      if (id) live_ids_.Set(*id, std::nullopt);
    }
    live = std::make_shared<const RowMask>(mask);
  };
  const auto clear_sealed = [&](std::int64_t index, SealedBlock& block) {
    state_.sealed_bytes -= block.bytes();
    clear(index, block.tags.get(), block.live);
    PackIfFewAreLive(block);
    SetLiveRows(shape_, index, block);
    state_.sealed_bytes += block.bytes();
  };
  // For one block, Set is cheap: it copies only a part of the list. For several blocks, Transform
  // copies the whole list once.
  if (block_of(positions.front()) == block_of(positions.back())) {
    const std::int64_t index = block_of(positions.front());
    if (index < state_.sealed.size()) {
      SealedBlock block = state_.sealed[index];
      clear_sealed(index, block);
      state_.sealed.Set(index, std::move(block));
    }
  } else {
    state_.sealed.Transform([&](std::int64_t index, SealedBlock& block) {
      if (next != positions.end() && block_of(*next) == index) {
        clear_sealed(index, block);
      }
    });
  }
  if (next != positions.end()) {
    clear(state_.sealed.size(), state_.tail_tags.get(), state_.tail_live);
  }
  SOFTLOOKUP_CHECK(next == positions.end()) << "position " << *next << " has no block";
  return masked_blocks;
}

void StoreEditor::PackIfFewAreLive(SealedBlock& block) {
  if (block.live == nullptr) return;
  if (block.live->CountFirst(block_rows_) > block_rows_ / kPackedPart) return;
  block.packed = PackLiveRows(*block.panels, shape_, block_rows_, *block.live);
  block.sketch = nullptr;
}

void StoreEditor::AddSealed(absl::Span<SealedBlock> blocks) {
  const auto block_count = state_.sealed.size() + static_cast<std::int64_t>(blocks.size());
  std::int64_t index = state_.sealed.size();
  for (SealedBlock& block : blocks) {
    SOFTLOOKUP_CHECK(block.panels != nullptr && block.bounds != nullptr);
    SOFTLOOKUP_CHECK(block.panels->panel_count() * kPanelRows == block_rows_)
        << block.panels->panel_count() << " panels in a block of " << block_rows_ << " rows";
    PackIfFewAreLive(block);
    if (block.packed == nullptr) block.sketch = NewSketch(block, block_count);
    SetLiveRows(shape_, index++, block);
    state_.sealed_bytes += block.bytes();
  }
  state_.sealed.Append(blocks);
}

void StoreEditor::SetConfig(StoreConfig config) {
  state_.config_bytes = ConfigBytes(config);
  state_.config = std::make_shared<const StoreConfig>(std::move(config));
}

std::shared_ptr<const Snapshot> StoreEditor::Update(absl::FunctionRef<void(StoreConfig&)> change) {
  StoreConfig config = *state_.config;
  change(config);
  SetConfig(std::move(config));
  MakeSnapshot();
  return newest();
}

void StoreEditor::MakeRoomInTail() {
  const std::int64_t panels = state_.tail_rows / kPanelRows;
  if (state_.tail_panels != nullptr && panels < state_.tail_panels->panel_count()) return;
  const std::int64_t block_panels = block_rows_ / kPanelRows;
  std::int64_t capacity = std::clamp<std::int64_t>(2 * panels, 1, block_panels);
  // In a small store, the room doubles. A store with sealed blocks gets room for a whole block at
  // once. So does a store whose pages are committed only as they are written to.
  if (state_.sealed.size() > 0 || PanelBuffer::CommitsAsWritten(shape_, capacity)) {
    capacity = block_panels;
  }
  auto larger = capacity == block_panels ? NewPanels(shape_, state_.sealed.size())
                                         : std::make_shared<PanelBuffer>(shape_, capacity);
  if (panels > 0) {
    std::memcpy(larger->panel(0), state_.tail_panels->panel(0), panels * shape_.bytes());
  }
  state_.tail_panels = std::move(larger);
}

std::shared_ptr<PanelBuffer> StoreEditor::NewPanels(const kernels::PanelShape& shape,
                                                    std::int64_t block_count) {
  return state_.panel_allocator.Allocate(shape, block_rows_ / kPanelRows, block_count);
}

std::shared_ptr<const BlockSketch> StoreEditor::NewSketch(const SealedBlock& block,
                                                          std::int64_t block_count) {
  if (!HasSketch(*state_.config, *block.bounds)) return nullptr;
  return std::make_shared<const BlockSketch>(
      *block.panels, shape_, NewPanels(kernels::SketchShape(shape_.key_dim), block_count));
}

// Call this before `row` is counted in tail_rows. If tail_rows is 0, `row` is then the tail's first
// row.
void StoreEditor::AddToMemories(const kernels::PanelRow& row) {
  if (state_.memories == nullptr) {
    state_.memories = std::make_shared<MemorySet>(MemorySetOf(*state_.config));
  } else if (memories_shared_) {
    state_.memories = std::make_shared<MemorySet>(*state_.memories);
  }
  memories_shared_ = false;
  if (state_.tail_rows == 0 && state_.sealed.size() > 0) {
    state_.memories_before_tail = std::make_shared<const MemorySet>(*state_.memories);
  }
  state_.memories->Add(row.key, row.key_stride, row.value);
}

void StoreEditor::AppendRow(const float* key, const float* value, kernels::PanelRowReader& reader) {
  if (state_.partial_panel == nullptr) {
    state_.partial_panel = std::make_shared<PanelBuffer>(shape_, 1);
  } else if (partial_panel_shared_) {
    state_.partial_panel = std::make_shared<PanelBuffer>(*state_.partial_panel);
    partial_panel_shared_ = false;
  }

  std::byte* panel = state_.partial_panel->panel(0);
  const std::int64_t lane = state_.tail_rows % kPanelRows;
  kernels::PutRow(shape_, key, value, lane, panel);
  // Memories and bounds take the row as it is stored. For FLOAT32 the input has the same bits and
  // is faster to read.
  const kernels::PanelRow row = shape_.storage == StorageType::kFloat32
                                    ? kernels::PanelRow{.key = key, .value = value}
                                    : reader.Read(panel, lane);
  if (keeps_memories_) AddToMemories(row);
  state_.tail_bounds.Add(row, *state_.config);
  if (lane == kPanelRows - 1) {
    MakeRoomInTail();
    std::memcpy(state_.tail_panels->panel(state_.tail_rows / kPanelRows), panel, shape_.bytes());
    // Nothing else shares this panel, because a shared panel was copied above.
    std::memset(panel, 0, shape_.bytes());
  }
  ++state_.tail_rows;
  if (state_.tail_rows == block_rows_) SealTail();
}

void StoreEditor::SealTail() {
  SOFTLOOKUP_CHECK(state_.tail_rows == block_rows_)
      << state_.tail_rows << " rows in a block of " << block_rows_;
  TakeGrowingTags();
  SealedBlock block{.panels = std::move(state_.tail_panels),
                    .bounds = std::make_shared<const RowBounds>(std::move(state_.tail_bounds)),
                    .memories_before = std::move(state_.memories_before_tail),
                    .tags = std::move(state_.tail_tags),
                    .live = std::move(state_.tail_live)};
  AddSealed(absl::MakeSpan(&block, 1));
  state_.tail_panels = nullptr;
  state_.memories_before_tail = nullptr;
  state_.tail_tags = nullptr;
  state_.tail_live = nullptr;
  state_.tail_bounds = {};
  state_.tail_rows = 0;
}

void StoreEditor::TakeGrowingTags() {
  if (growing_tags_ == nullptr) return;
  growing_tags_->ShrinkToFit();
  state_.tail_tags = std::move(growing_tags_);
}

void StoreEditor::MakeSnapshot() {
  TakeGrowingTags();
  SOFTLOOKUP_CHECK(state_.deleted_count <= RowCount())
      << state_.deleted_count << " of " << RowCount() << " rows deleted";
  SOFTLOOKUP_CHECK(state_.tail_rows < block_rows_)
      << state_.tail_rows << " rows behind blocks of " << block_rows_;
  if (state_.labels != nullptr) state_.label_count = state_.labels->size();
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->lease_ = lease_;
  snapshot->config_ = state_.config;
  snapshot->revision_ = ++state_.revision;
  snapshot->deleted_count_ = state_.deleted_count;
  snapshot->labels_ = state_.labels;
  snapshot->stored_blocks_ = StoredBlocks(shape_, block_rows_, state_.sealed, ViewTail());
  snapshot->byte_size_ = static_cast<std::uint64_t>(ByteSize());
  state_.newest = std::move(snapshot);
}

TailView StoreEditor::ViewTail() {
  TailView tail{.full_panels = state_.tail_panels,
                .full_panel_count = state_.tail_rows / kPanelRows,
                .row_count = state_.tail_rows,
                .memories_before = state_.memories_before_tail,
                .tags = state_.tail_tags,
                .live = state_.tail_live};
  if (state_.tail_rows > 0) tail.bounds = std::make_shared<const RowBounds>(state_.tail_bounds);
  if (state_.tail_rows % kPanelRows != 0) {
    tail.partial_panel = state_.partial_panel;
    partial_panel_shared_ = true;
  }
  return tail;
}

std::int64_t StoreEditor::ByteSize() const {
  return FixedStoreBytes() + state_.config_bytes + state_.sealed_bytes + state_.sealed.bytes() +
         state_.panel_allocator.unused_bytes() + TailBytes() + live_ids_.bytes() +
         writers_.bytes() + state_.writer_name_bytes +
         (state_.labels == nullptr ? 0 : state_.labels->bytes()) +
         (state_.memories == nullptr ? 0 : state_.memories->bytes());
}

std::int64_t StoreEditor::TailBytes() const {
  std::int64_t bytes = 0;
  if (state_.tail_panels != nullptr)
    bytes += state_.tail_panels->bytes(state_.tail_rows / kPanelRows);
  if (state_.partial_panel != nullptr) bytes += state_.partial_panel->bytes();
  if (state_.tail_rows == 0) return bytes;
  // state_, committed_ and the snapshot each have a copy of the bounds.
  bytes += 3 * state_.tail_bounds.bytes();
  if (state_.memories_before_tail != nullptr) bytes += state_.memories_before_tail->bytes();
  if (state_.tail_tags != nullptr) bytes += state_.tail_tags->bytes();
  if (state_.tail_live != nullptr) bytes += SharedBytes<RowMask>();
  return bytes;
}

}  // namespace softlookup
