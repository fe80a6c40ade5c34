#include "core/store/store_editor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/base/status_macros.h"
#include "core/store/panel_buffer.h"
#include "core/store/row_codec.h"
#include "core/store/row_selection.h"
#include "core/store/store_bytes.h"
#include "core/store/store_memories.h"

namespace softlookup {
namespace {

// The error of a recorded write that another replica cannot have made to this store.
absl::Status DoesNotFollow(absl::string_view what) {
  return MakeError(reasons::kDataLoss,
                   absl::StrCat("a recorded write does not fit the store: ", what));
}

}  // namespace

StoreEditor::StoreEditor(StoreConfig config)
    : state_{.blocks = GrowingBlocks(config), .config_bytes = ConfigBytes(config)},
      committed_(state_) {
  MakeSnapshot(std::make_shared<const StoreConfig>(std::move(config)), /*revision=*/1);
  Commit();
}

StoreEditor::StoreEditor(Parts parts)
    : state_{.blocks = std::move(parts.blocks),
             .memories = std::move(parts.memories),
             .labels = std::move(parts.labels),
             .config_bytes = ConfigBytes(parts.config)},
      committed_(state_),
      live_ids_(std::move(parts.live_ids)),
      writers_(std::move(parts.writers)) {
  MakeSnapshot(std::make_shared<const StoreConfig>(std::move(parts.config)), parts.revision);
  Commit();
}

void StoreEditor::Commit() {
  committed_ = state_;
  live_ids_.Commit();
  writers_.Commit();
}

void StoreEditor::Rollback() { RollbackTo(Savepoint(committed_, 0, writers_.LastCommit())); }

StoreEditor::Savepoint StoreEditor::MakeSavepoint() {
  return Savepoint(state_, live_ids_.change_count(), writers_.MakeSavepoint());
}

void StoreEditor::RollbackTo(const Savepoint& savepoint) {
  // A Commit since the savepoint would have emptied the list of changes.
  SOFTLOOKUP_CHECK(savepoint.id_change_count_ <= live_ids_.change_count())
      << "the savepoint is older than the last commit";
  SOFTLOOKUP_CHECK(savepoint.state_.newest->revision() <= newest()->revision())
      << "revision " << savepoint.state_.newest->revision() << " comes after "
      << newest()->revision();
  state_ = savepoint.state_;
  if (state_.labels != nullptr) state_.labels->Truncate(state_.label_count);
  live_ids_.RollbackTo(savepoint.id_change_count_);
  live_ids_.FreeUnusedRoom();  // The writes that were undone may have made the table large.
  writers_.RollbackTo(savepoint.writers_);
}

MemoryValue StoreEditor::ReadMemory(std::size_t index) const {
  return MemoriesView(state_.memories.state(), newest()->config()).Read(index);
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
  SOFTLOOKUP_ASSIGN_OR_RETURN(const RowChoice choice, ChooseRows(batch));
  outcome.masked_blocks = DeletePositions(choice.replaced);
  outcome.first_position = state_.blocks.row_count();
  kernels::PanelRowReader reader(state_.blocks.shape());
  for (std::int64_t row = 0; row < batch.keys.rows; ++row) {
    if (!choice.appended[row]) continue;
    NewRow added{.key = batch.keys.row(row), .value = batch.values.row(row)};
    if (!batch.ids.empty()) {
      added.id = batch.ids[row];
      live_ids_.Set(*added.id, state_.blocks.row_count());
    }
    std::vector<std::uint32_t> labels;
    if (!batch.row_labels.empty()) labels = Intern(batch.row_labels[row]);
    added.labels = labels;
    AppendRow(added, reader);
    ++outcome.appended_count;
  }
  if (has_writer) {
    writer.last_sequence = batch.sequence;
    if (outcome.appended_count > 0) writer.last_position = state_.blocks.row_count() - 1;
    writers_.Set(std::string(batch.writer), writer);
  }
  if (outcome.appended_count > 0 || has_writer) MakeNextSnapshot();
  outcome.snapshot = newest();
  return outcome;
}

absl::StatusOr<StoreEditor::RowChoice> StoreEditor::ChooseRows(const RowBatch& batch) const {
  RowChoice choice{.appended = std::vector<bool>(batch.keys.rows, true)};
  for (std::size_t row = 0; row < batch.ids.size(); ++row) {
    const std::uint64_t* position = live_ids_.Find(batch.ids[row]);
    if (position == nullptr) continue;
    if (batch.on_conflict == OnConflict::kSkip) {
      choice.appended[row] = false;
    } else if (batch.on_conflict == OnConflict::kReplace) {
      choice.replaced.push_back(*position);
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
  std::sort(choice.replaced.begin(), choice.replaced.end());
  return choice;
}

void StoreEditor::AppendRow(const NewRow& row, kernels::PanelRowReader& reader) {
  if (state_.blocks.next_row_begins_block()) {
    state_.blocks.SetMemoriesBefore(state_.memories.CopyState());
  }
  const StoreConfig& config = newest()->config();
  state_.memories.Add(state_.blocks.Append(row, config, reader), config);
}

std::vector<std::uint32_t> StoreEditor::Intern(absl::Span<const std::string> labels) {
  std::vector<std::uint32_t> numbers;
  if (labels.empty()) return numbers;
  if (state_.labels == nullptr) state_.labels = std::make_shared<LabelDictionary>();
  for (const std::string& label : labels) numbers.push_back(state_.labels->Intern(label));
  return numbers;
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
  if (!positions.empty()) MakeNextSnapshot();
  outcome.snapshot = newest();
  return outcome;
}

std::vector<std::int64_t> StoreEditor::DeletePositions(absl::Span<const std::uint64_t> positions) {
  for (const std::uint64_t position : positions) {
    const std::optional<std::uint64_t> id = newest()->IdAt(position);
    if (id) live_ids_.Set(*id, std::nullopt);
  }
  return state_.blocks.Delete(positions);
}

CompactOutcome StoreEditor::Compact(std::int64_t begin, std::int64_t end) {
  const std::shared_ptr<const Snapshot> before = newest();
  CompactOutcome outcome{.compacted_blocks = state_.blocks.Compact(begin, end)};
  for (const std::int64_t block : outcome.compacted_blocks) {
    outcome.dropped_rows += before->stored_blocks().RowsToDropOf(block);
  }
  if (!outcome.compacted_blocks.empty()) MakeNextSnapshot();
  outcome.snapshot = newest();
  return outcome;
}

std::shared_ptr<const Snapshot> StoreEditor::Update(absl::FunctionRef<void(StoreConfig&)> change) {
  StoreConfig config = newest()->config();
  change(config);
  state_.config_bytes = ConfigBytes(config);
  MakeSnapshot(std::make_shared<const StoreConfig>(std::move(config)), newest()->revision() + 1);
  return newest();
}

std::shared_ptr<const Snapshot> StoreEditor::Evict(
    absl::FunctionRef<bool(std::int64_t)> should_evict) {
  state_.blocks.Evict(should_evict);
  MakeSnapshot(newest()->config_, newest()->revision_);
  return newest();
}

std::shared_ptr<const Snapshot> StoreEditor::Load(std::vector<ReadBlock> blocks) {
  const StoredBlocks& before = newest()->stored_blocks();
  for (ReadBlock& block : blocks) {
    const RowMask* kept = before.KeptMaskOf(block.index);
    const bool is_same =
        kept == nullptr ? block.kept == nullptr : block.kept != nullptr && *kept == *block.kept;
    if (before.IsResident(block.index) || !is_same) continue;
    state_.blocks.Load(block.index, std::move(block.rows), newest()->config());
  }
  MakeSnapshot(newest()->config_, newest()->revision_);
  return newest();
}

absl::StatusOr<std::shared_ptr<const Snapshot>> StoreEditor::Replay(const RecordedWrite& write) {
  if (write.revision != newest()->revision() + 1) {
    return DoesNotFollow(
        absl::StrCat("revision ", write.revision, " after ", newest()->revision()));
  }
  SOFTLOOKUP_RETURN_IF_ERROR(ReplayMasks(write.masks));
  for (const RecordedWrite::Rows& rows : write.rows) {
    SOFTLOOKUP_RETURN_IF_ERROR(ReplayRows(rows, write.memories));
  }
  for (const auto& [writer, state] : write.writers) writers_.Set(writer, state);
  if (state_.blocks.row_count() != write.row_count) {
    return DoesNotFollow(absl::StrCat(state_.blocks.row_count(), " rows instead of ",
                                      write.row_count, " at revision ", write.revision));
  }
  std::shared_ptr<const StoreConfig> config = newest()->config_;
  if (write.config) {
    state_.config_bytes = ConfigBytes(*write.config);
    config = std::make_shared<const StoreConfig>(*write.config);
  }
  MakeSnapshot(std::move(config), write.revision);
  return newest();
}

absl::Status StoreEditor::ReplayMasks(const std::map<std::uint64_t, RecordedWrite::Masks>& masks) {
  const StoredBlocks& blocks = newest()->stored_blocks();
  const std::uint64_t row_count = newest()->row_count();
  const auto block_rows = static_cast<std::uint64_t>(blocks.block_rows());
  std::vector<std::uint64_t> deleted;
  std::vector<std::int64_t> compacted;
  for (const auto& [index, mask] : masks) {
    const auto block = static_cast<std::int64_t>(index);
    if (index >= row_count / block_rows + (row_count % block_rows != 0 ? 1 : 0)) {
      return DoesNotFollow(absl::StrCat("a mask of block ", index, ", which has no row"));
    }
    const RowMask* live = blocks.LiveMaskOf(block);
    const RowMask* kept = blocks.KeptMaskOf(block);
    if (mask.kept && (kept == nullptr || *mask.kept != *kept)) compacted.push_back(block);
    const std::uint64_t first = index * block_rows;
    for (std::uint64_t position = first; position < std::min(first + block_rows, row_count);
         ++position) {
      const auto row = static_cast<std::int64_t>(position - first);
      const bool was_live = live == nullptr || (*live)[row];
      if (!was_live && mask.live[row]) {
        return DoesNotFollow(absl::StrCat("a row that was deleted before, at ", position));
      }
      if (was_live && !mask.live[row]) deleted.push_back(position);
    }
  }
  DeletePositions(deleted);
  if (compacted.empty()) return absl::OkStatus();
  // The same deleted rows were dropped there, because both have the same masks.
  if (state_.blocks.Compact(compacted.front(), compacted.back() + 1) != compacted) {
    return DoesNotFollow(absl::StrCat("a compaction of other blocks from ", compacted.front(),
                                      " to ", compacted.back()));
  }
  return absl::OkStatus();
}

absl::Status StoreEditor::ReplayRows(const RecordedWrite::Rows& rows,
                                     const std::map<std::uint64_t, std::vector<double>>& memories) {
  const std::uint64_t begin = state_.blocks.row_count();
  // A compaction writes records of older rows anew.
  if (rows.first_position < begin) return absl::OkStatus();
  const kernels::PanelShape& shape = state_.blocks.shape();
  const auto row_bytes = static_cast<std::size_t>(shape.row_bytes());
  if (rows.first_position != begin || rows.components.size() / row_bytes != rows.row_count ||
      rows.components.size() % row_bytes != 0 ||
      (!rows.ids.empty() && rows.ids.size() != rows.row_count) ||
      (!rows.row_labels.empty() && rows.row_labels.size() != rows.row_count)) {
    return DoesNotFollow(absl::StrCat("rows of another shape at position ", rows.first_position));
  }
  // The components of 16 rows may be in one piece, so they are read as the panels that they were.
  const std::int64_t first_panel = static_cast<std::int64_t>(begin) / kernels::kPanelRows;
  const auto end = static_cast<std::int64_t>(begin + rows.row_count);
  PanelBuffer panels(shape, (end + kernels::kPanelRows - 1) / kernels::kPanelRows - first_panel);
  DecodeComponents(rows.components, shape, begin, begin + rows.row_count,
                   [&](std::int64_t panel) { return panels.panel(panel - first_panel); });
  const auto block_rows = static_cast<std::uint64_t>(newest()->stored_blocks().block_rows());
  kernels::PanelRowReader reader(shape);
  std::vector<std::byte> stored(row_bytes);
  for (std::uint64_t row = 0; row < rows.row_count; ++row) {
    const std::uint64_t position = begin + row;
    if (position > 0 && position % block_rows == 0) {
      const auto before = memories.find(position / block_rows);
      if (before == memories.end()) {
        return DoesNotFollow(absl::StrCat("no start of the block at position ", position));
      }
      SOFTLOOKUP_RETURN_IF_ERROR(ReplayMemories(before->second));
    }
    const auto lane = static_cast<std::int64_t>(position) % kernels::kPanelRows;
    kernels::PackRow(
        shape,
        panels.panel(static_cast<std::int64_t>(position) / kernels::kPanelRows - first_panel), lane,
        stored.data());
    NewRow added{.stored = stored.data()};
    if (!rows.ids.empty() && rows.ids[row]) {
      added.id = rows.ids[row];
      live_ids_.Set(*added.id, position);
    }
    std::vector<std::uint32_t> labels;
    if (!rows.row_labels.empty()) labels = Intern(rows.row_labels[row]);
    added.labels = labels;
    AppendRow(added, reader);
  }
  return absl::OkStatus();
}

absl::Status StoreEditor::ReplayMemories(absl::Span<const double> memories) {
  // The copy shares its constant parts with the memories before.
  MemorySet restored(*state_.memories.state());
  if (!restored.Restore(memories)) return DoesNotFollow("memories of another shape");
  state_.memories = GrowingMemories(restored);
  return absl::OkStatus();
}

void StoreEditor::MakeSnapshot(std::shared_ptr<const StoreConfig> config, std::uint64_t revision) {
  if (state_.labels != nullptr) state_.label_count = state_.labels->size();
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->lease_ = lease_;
  snapshot->config_ = std::move(config);
  snapshot->revision_ = revision;
  snapshot->deleted_count_ = state_.blocks.deleted_count();
  snapshot->labels_ = state_.labels;
  snapshot->stored_blocks_ = state_.blocks.View();
  snapshot->byte_size_ = static_cast<std::uint64_t>(ByteSize());
  state_.newest = std::move(snapshot);
}

std::int64_t StoreEditor::ByteSize() const {
  return FixedStoreBytes() + state_.config_bytes + state_.blocks.bytes() + state_.memories.bytes() +
         live_ids_.bytes() + writers_.bytes() +
         (state_.labels == nullptr ? 0 : state_.labels->bytes());
}

}  // namespace softlookup
