#include "core/store/store_loader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/store/row_codec.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;

absl::Status Incomplete(absl::string_view what, std::uint64_t position) {
  return MakeError(reasons::kDataLoss, absl::StrCat(what, " at position ", position),
                   {{"position", absl::StrCat(position)}});
}

}  // namespace

std::vector<float> SaveBounds(const RowBounds& bounds) {
  std::vector<float> floats = {bounds.key_magnitude, bounds.value_magnitude};
  floats.insert(floats.end(), bounds.key_norms_max.begin(), bounds.key_norms_max.end());
  return floats;
}

StoreLoader::StoreLoader(StoreConfig config, std::uint64_t revision, std::uint64_t row_count)
    : editor_(std::make_unique<StoreEditor>(std::move(config))), row_count_(row_count) {
  editor_->state_.revision = revision - 1;  // Finish makes a snapshot with the next revision.
}

absl::Status StoreLoader::AddBlockStart(std::uint64_t index, absl::Span<const double> memories,
                                        absl::Span<const float> bounds_before) {
  const StoreConfig& config = *editor_->state_.config;
  const std::uint64_t position = index * static_cast<std::uint64_t>(editor_->block_rows_);
  // All sets are copies of `no_rows_`, so that they share their constant parts, such as the gates.
  if (no_rows_ == nullptr) no_rows_ = std::make_shared<const MemorySet>(MemorySetOf(config));
  BlockStart start{.memories = std::make_shared<MemorySet>(*no_rows_)};
  if (!start.memories->Restore(memories)) return Incomplete("memories of another shape", position);
  if (index > 0) {
    if (bounds_before.size() != 2 + static_cast<std::size_t>(config.num_heads)) {
      return Incomplete("bounds of another shape", position);
    }
    start.bounds_before = {.key_magnitude = bounds_before[0],
                           .value_magnitude = bounds_before[1],
                           .key_norms_max = {bounds_before.begin() + 2, bounds_before.end()}};
  }
  starts_[index] = std::move(start);
  return absl::OkStatus();
}

void StoreLoader::AddLiveRows(std::uint64_t index, const RowMask& live) {
  live_[index] = std::make_shared<const RowMask>(live);
}

void StoreLoader::AddWriter(const std::string& writer, WriterState state) {
  editor_->SetWriter(writer, state);
}

absl::Status StoreLoader::MakeRoom() {
  // The row count can be damaged, so it is checked before room is allocated for it.
  if (starts_.size() < row_count_ / block_rows() + (row_count_ % block_rows() != 0 ? 1 : 0)) {
    return Incomplete("the start of a block is missing", starts_.size() * block_rows());
  }
  for (std::uint64_t begin = 0; begin < row_count_; begin += block_rows()) {
    // The last block gets room for no more rows than it has.
    const auto rows = static_cast<std::int64_t>(std::min(block_rows(), row_count_ - begin));
    panels_.push_back(
        std::make_shared<PanelBuffer>(editor_->shape_, (rows + kPanelRows - 1) / kPanelRows));
    if (rows == editor_->block_rows_) panels_.back()->UseLargePages();
  }
  return absl::OkStatus();
}

absl::Status StoreLoader::PutComponents(std::uint64_t first_position, std::uint64_t count,
                                        absl::string_view components) {
  const kernels::PanelShape& shape = editor_->shape_;
  const auto row_bytes = static_cast<std::uint64_t>(shape.row_bytes());
  if (!AreRows(first_position, count) || components.size() != count * row_bytes) {
    return Incomplete("rows of another shape", first_position);
  }
  const std::int64_t block_panels = editor_->block_rows_ / kPanelRows;
  DecodeComponents(
      components, shape, first_position, first_position + count, [&](std::int64_t panel) {
        return panels_[static_cast<std::size_t>(panel / block_panels)]->panel(panel % block_panels);
      });
  return absl::OkStatus();
}

absl::Status StoreLoader::AddRows(std::uint64_t first_position, std::uint64_t count,
                                  absl::Span<const std::uint64_t> ids,
                                  absl::Span<const std::vector<std::string>> row_labels) {
  if (first_position != loaded_) return Incomplete("rows are missing", loaded_);
  if (!AreRows(first_position, count)) return Incomplete("rows of another shape", loaded_);
  const std::uint64_t end = loaded_ + count;
  while (loaded_ < end) {
    // Each step adds rows of one block only.
    const std::uint64_t begin = loaded_;
    loaded_ = std::min(end, (begin / block_rows() + 1) * block_rows());
    for (std::uint64_t position = begin; position < loaded_; ++position) {
      if (ids.empty() && row_labels.empty()) break;
      const std::uint64_t row = position - first_position;
      TagRow(position, ids.empty() ? std::nullopt : std::optional<std::uint64_t>(ids[row]),
             row_labels.empty() ? absl::Span<const std::string>() : row_labels[row]);
    }
    if (loaded_ % block_rows() != 0 || loaded_ == row_count_) continue;
    const std::uint64_t block = loaded_ / block_rows() - 1;
    const auto next = starts_.find(block + 1);
    if (next == starts_.end() || !starts_.contains(block)) {
      return Incomplete("the start of a block is missing", loaded_);
    }
    sealed_.push_back(TakeBlock(block, std::move(next->second.bounds_before)));
  }
  return absl::OkStatus();
}

void StoreLoader::TagRow(std::uint64_t position, std::optional<std::uint64_t> id,
                         absl::Span<const std::string> labels) {
  if (!id && labels.empty()) return;
  if (tags_ == nullptr) tags_ = std::make_unique<RowTags>();
  auto& dictionary = editor_->state_.labels;
  std::vector<std::uint32_t> numbers;
  for (const std::string& label : labels) {
    if (dictionary == nullptr) dictionary = std::make_shared<LabelDictionary>();
    numbers.push_back(dictionary->Intern(label));
  }
  tags_->Add(static_cast<std::int64_t>(position % block_rows()), id, numbers);
}

SealedBlock StoreLoader::TakeBlock(std::uint64_t index, RowBounds bounds) {
  if (tags_ != nullptr) tags_->ShrinkToFit();
  SealedBlock block{.panels = std::move(panels_[index]),
                    .bounds = std::make_shared<const RowBounds>(std::move(bounds)),
                    .memories_before = index == 0 ? nullptr : starts_[index].memories,
                    .tags = std::move(tags_)};
  const std::uint64_t begin = index * block_rows();
  const std::int64_t rows = static_cast<std::int64_t>(loaded_ - begin);
  if (const auto live = live_.find(index); live != live_.end()) {
    block.live = live->second;
    editor_->state_.deleted_count +=
        static_cast<std::uint64_t>(rows - block.live->CountFirst(rows));
  }
  for (std::int64_t row = 0; block.tags != nullptr && row < rows; ++row) {
    const std::optional<std::uint64_t> id = block.tags->id(row);
    if (id && (block.live == nullptr || (*block.live)[row])) {
      editor_->live_ids_.SetCommitted(*id, begin + static_cast<std::uint64_t>(row));
    }
  }
  return block;
}

absl::StatusOr<std::unique_ptr<StoreEditor>> StoreLoader::Finish() {
  if (loaded_ != row_count_) return Incomplete("rows are missing", loaded_);
  StoreEditor::State& state = editor_->state_;
  if (row_count_ > 0) {
    const std::uint64_t last = (row_count_ - 1) / block_rows();
    const auto start = starts_.find(last);
    if (start == starts_.end()) {
      return Incomplete("the start of a block is missing", last * block_rows());
    }
    // No record has the bounds of the last block, nor the memories after its last row. Both are
    // computed here.
    auto memories = std::make_shared<MemorySet>(*start->second.memories);
    RowBounds bounds;
    const kernels::PanelShape& shape = editor_->shape_;
    const std::int64_t rows = static_cast<std::int64_t>(row_count_ - last * block_rows());
    const std::shared_ptr<PanelBuffer> panels = panels_[last];
    kernels::PanelRowReader reader(shape);
    for (std::int64_t i = 0; i < rows; ++i) {
      const kernels::PanelRow row = reader.Read(panels->panel(i / kPanelRows), i % kPanelRows);
      memories->Add(row.key, row.key_stride, row.value);
      bounds.Add(row, *state.config);
    }
    state.memories = std::move(memories);
    SealedBlock block = TakeBlock(last, std::move(bounds));
    if (rows == editor_->block_rows_) {
      sealed_.push_back(std::move(block));
    } else {
      state.tail_rows = rows;
      state.tail_panels = rows < kPanelRows ? nullptr : panels;
      state.tail_bounds = *block.bounds;
      state.tail_tags = block.tags;
      state.tail_live = block.live;
      state.memories_before_tail = block.memories_before;
      if (rows % kPanelRows != 0) {
        state.partial_panel = std::make_shared<PanelBuffer>(shape, 1);
        std::memcpy(state.partial_panel->panel(0), panels->panel(rows / kPanelRows), shape.bytes());
      }
    }
  }
  editor_->AddSealed(absl::MakeSpan(sealed_));
  editor_->MakeSnapshot();
  editor_->Commit();
  // The row count of the revision record must be that of the snapshot made from the other records.
  SOFTLOOKUP_CHECK(editor_->newest()->row_count() == row_count_)
      << editor_->newest()->row_count() << " rows loaded of " << row_count_;
  return std::move(editor_);
}

}  // namespace softlookup
