#include "core/store/store_loader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/store/block_shape.h"
#include "core/store/row_codec.h"
#include "core/store/store_memories.h"

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

StoreLoader::StoreLoader(StoreConfig config, std::uint64_t revision, std::uint64_t row_count,
                         KeptRanges kept)
    : config_(std::move(config)),
      shape_(PanelShapeOf(config_)),
      block_rows_(static_cast<std::uint64_t>(BlockRows(shape_))),
      revision_(revision),
      row_count_(row_count),
      kept_ranges_(std::move(kept)) {}

absl::Status StoreLoader::AddBlockStart(std::uint64_t index, absl::Span<const double> memories,
                                        absl::Span<const float> bounds_before) {
  const std::uint64_t position = index * block_rows_;
  // All sets are copies of `no_rows_`, so that they share their constant parts, such as the gates.
  if (no_rows_ == nullptr) no_rows_ = std::make_shared<const MemorySet>(MemorySetOf(config_));
  BlockStart start{.memories = std::make_shared<MemorySet>(*no_rows_)};
  if (!start.memories->Restore(memories)) return Incomplete("memories of another shape", position);
  if (index > 0) {
    if (bounds_before.size() != 2 + static_cast<std::size_t>(config_.num_heads)) {
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

void StoreLoader::AddKeptRows(std::uint64_t index, const RowMask& kept) {
  kept_[index] = std::make_shared<const RowMask>(kept);
}

std::int64_t StoreLoader::RowBytes() const {
  std::int64_t panels = 0;
  // The row count can be damaged, so only blocks count whose start was found.
  for (const auto& [block, start] : starts_) {
    const std::uint64_t begin = block * block_rows_;
    if (begin >= row_count_) break;
    if (!IsResident(block)) continue;
    const auto kept = kept_.find(block);
    const std::int64_t rows =
        kept == kept_.end() ? static_cast<std::int64_t>(std::min(block_rows_, row_count_ - begin))
                            : kept->second->CountFirst(static_cast<std::int64_t>(block_rows_));
    panels += (rows + kPanelRows - 1) / kPanelRows;
  }
  return panels * kPanelRows * shape_.row_bytes();
}

absl::Status StoreLoader::MakeRoom() {
  // The row count can be damaged, so it is checked before room is allocated for it.
  if (starts_.size() < row_count_ / block_rows_ + (row_count_ % block_rows_ != 0 ? 1 : 0)) {
    return Incomplete("the start of a block is missing", starts_.size() * block_rows_);
  }
  for (std::uint64_t begin = 0; begin < row_count_; begin += block_rows_) {
    // The last block gets room for no more rows than it has.
    const auto rows = static_cast<std::int64_t>(std::min(block_rows_, row_count_ - begin));
    packed_.emplace_back();
    if (BeginsCompactedBlock(begin) || !IsResident(begin / block_rows_)) {
      panels_.emplace_back();
      continue;
    }
    panels_.push_back(std::make_shared<PanelBuffer>(shape_, (rows + kPanelRows - 1) / kPanelRows));
    if (rows == static_cast<std::int64_t>(block_rows_)) panels_.back()->UseLargePages();
  }
  return absl::OkStatus();
}

absl::Status StoreLoader::PutComponents(std::uint64_t first_position, std::uint64_t count,
                                        absl::string_view components) {
  const auto row_bytes = static_cast<std::uint64_t>(shape_.row_bytes());
  if (!AreRows(first_position, count) || components.size() != count * row_bytes) {
    return Incomplete("rows of another shape", first_position);
  }
  const std::uint64_t end = first_position + count;
  for (std::uint64_t block = first_position / block_rows_; block * block_rows_ < end; ++block) {
    if (BeginsCompactedBlock(block * block_rows_)) {
      return Incomplete("rows of a compacted block", block * block_rows_);
    }
    if (panels_[block] == nullptr) continue;
    DecodeRowsOfBlock(components, shape_, first_position, end,
                      static_cast<std::int64_t>(block_rows_), static_cast<std::int64_t>(block),
                      *panels_[block]);
  }
  return absl::OkStatus();
}

bool StoreLoader::AreMasksOfCompacted(std::uint64_t index) const {
  const auto live = live_.find(index);
  if (live == live_.end()) return false;
  const RowMask& kept = *kept_.at(index);
  const auto block_rows = static_cast<std::int64_t>(block_rows_);
  for (std::int64_t row = 0; row < block_rows; ++row) {
    if ((*live->second)[row] && !kept[row]) return false;
  }
  return kept.CountFirst(block_rows) <= block_rows / kPackedPart;
}

absl::Status StoreLoader::PutKeptComponents(std::uint64_t first_position,
                                            absl::string_view components) {
  SOFTLOOKUP_CHECK(BeginsCompactedBlock(first_position)) << first_position;
  const std::uint64_t block = first_position / block_rows_;
  const RowMask& kept = *kept_.at(block);
  const std::int64_t count = kept.CountFirst(static_cast<std::int64_t>(block_rows_));
  const std::int64_t row_bytes = shape_.row_bytes();
  if (block >= packed_.size() || !AreMasksOfCompacted(block) ||
      static_cast<std::int64_t>(components.size()) != count * row_bytes) {
    return Incomplete("rows of another shape", first_position);
  }
  packed_[block] = DecodeKeptRows(IsResident(block) ? components : absl::string_view(), shape_,
                                  static_cast<std::int64_t>(block_rows_), kept);
  return absl::OkStatus();
}

absl::Status StoreLoader::AddCompactedBlock(std::uint64_t first_position,
                                            absl::Span<const std::optional<std::uint64_t>> ids,
                                            absl::Span<const std::vector<std::string>> row_labels) {
  if (first_position != loaded_) return Incomplete("rows are missing", loaded_);
  if (!AreRows(first_position, block_rows_) || packed_[first_position / block_rows_] == nullptr) {
    return Incomplete("rows of another shape", loaded_);
  }
  const std::vector<std::uint16_t>& offsets = packed_[first_position / block_rows_]->offsets;
  if ((!ids.empty() && ids.size() != offsets.size()) ||
      (!row_labels.empty() && row_labels.size() != offsets.size())) {
    return Incomplete("rows of another shape", loaded_);
  }
  std::size_t row = 0;
  for (const std::uint16_t offset : offsets) {
    TagRow(first_position + offset, ids.empty() ? std::nullopt : ids[row],
           row_labels.empty() ? absl::Span<const std::string>() : row_labels[row]);
    ++row;
  }
  loaded_ += block_rows_;
  return EndBlock();
}

absl::Status StoreLoader::EndBlock() {
  if (loaded_ == row_count_) return absl::OkStatus();
  const std::uint64_t block = loaded_ / block_rows_ - 1;
  const auto next = starts_.find(block + 1);
  if (next == starts_.end() || !starts_.contains(block)) {
    return Incomplete("the start of a block is missing", loaded_);
  }
  sealed_.push_back(TakeBlock(block, std::move(next->second.bounds_before)));
  return absl::OkStatus();
}

absl::Status StoreLoader::AddRows(std::uint64_t first_position, std::uint64_t count,
                                  absl::Span<const std::optional<std::uint64_t>> ids,
                                  absl::Span<const std::vector<std::string>> row_labels) {
  if (first_position != loaded_) return Incomplete("rows are missing", loaded_);
  if (!AreRows(first_position, count) || (!ids.empty() && ids.size() != count) ||
      (!row_labels.empty() && row_labels.size() != count)) {
    return Incomplete("rows of another shape", loaded_);
  }
  const std::uint64_t end = loaded_ + count;
  while (loaded_ < end) {
    // Each step adds rows of one block only.
    const std::uint64_t begin = loaded_;
    loaded_ = std::min(end, (begin / block_rows_ + 1) * block_rows_);
    for (std::uint64_t position = begin; position < loaded_; ++position) {
      if (ids.empty() && row_labels.empty()) break;
      const std::uint64_t row = position - first_position;
      TagRow(position, ids.empty() ? std::nullopt : ids[row],
             row_labels.empty() ? absl::Span<const std::string>() : row_labels[row]);
    }
    if (loaded_ % block_rows_ == 0) SOFTLOOKUP_RETURN_IF_ERROR(EndBlock());
  }
  return absl::OkStatus();
}

void StoreLoader::TagRow(std::uint64_t position, std::optional<std::uint64_t> id,
                         absl::Span<const std::string> labels) {
  if (!id && labels.empty()) return;
  if (tags_ == nullptr) tags_ = std::make_shared<RowTags>();
  std::vector<std::uint32_t> numbers;
  for (const std::string& label : labels) {
    if (labels_ == nullptr) labels_ = std::make_shared<LabelDictionary>();
    numbers.push_back(labels_->Intern(label));
  }
  tags_->Add(static_cast<std::int64_t>(position % block_rows_), id, numbers);
}

SealedBlock StoreLoader::TakeBlock(std::uint64_t index, RowBounds bounds) {
  if (tags_ != nullptr) tags_->ShrinkToFit();
  SealedBlock block{.is_resident = IsResident(index),
                    .panels = std::move(panels_[index]),
                    .packed = std::move(packed_[index]),
                    .bounds = std::make_shared<const RowBounds>(std::move(bounds)),
                    .memories_before = index == 0 ? nullptr : starts_[index].memories,
                    .tags = std::move(tags_)};
  const std::uint64_t begin = index * block_rows_;
  const std::int64_t rows = static_cast<std::int64_t>(loaded_ - begin);
  if (const auto live = live_.find(index); live != live_.end()) {
    block.live = live->second;
    deleted_count_ += static_cast<std::uint64_t>(rows - block.live->CountFirst(rows));
  }
  if (const auto kept = kept_.find(index); kept != kept_.end()) {
    const bool is_live = block.live != nullptr && *block.live == *kept->second;
    block.kept = is_live ? block.live : kept->second;
  }
  for (std::int64_t row = 0; block.tags != nullptr && row < rows; ++row) {
    const std::optional<std::uint64_t> id = block.tags->id(row);
    if (id && (block.live == nullptr || (*block.live)[row])) {
      live_ids_.SetCommitted(*id, begin + static_cast<std::uint64_t>(row));
    }
  }
  return block;
}

absl::Status StoreLoader::AddLastBlock(std::uint64_t index, GrowingBlocks::Parts& blocks,
                                       GrowingMemories& memories) {
  const auto start = starts_.find(index);
  if (start == starts_.end()) {
    return Incomplete("the start of a block is missing", index * block_rows_);
  }
  // The memories after the last row are computed from all rows of its block.
  if (BeginsCompactedBlock(index * block_rows_))
    return Incomplete("a compacted last block", index * block_rows_);
  memories = GrowingMemories(*start->second.memories);
  RowBounds bounds;
  const std::int64_t rows = static_cast<std::int64_t>(row_count_ - index * block_rows_);
  const std::shared_ptr<PanelBuffer> panels = panels_[index];
  kernels::PanelRowReader reader(shape_);
  for (std::int64_t i = 0; i < rows; ++i) {
    const kernels::PanelRow row = reader.Read(panels->panel(i / kPanelRows), i % kPanelRows);
    memories.Add(row, config_);
    bounds.Add(row, config_);
  }
  const std::shared_ptr<RowTags> tags = tags_;
  SealedBlock block = TakeBlock(index, std::move(bounds));
  if (rows == static_cast<std::int64_t>(block_rows_)) {
    sealed_.push_back(std::move(block));
  } else {
    blocks.tail = {.panels = panels,
                   .row_count = rows,
                   .bounds = *block.bounds,
                   .memories_before = block.memories_before,
                   .tags = tags,
                   .live = block.live};
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StoreEditor>> StoreLoader::Finish() {
  if (loaded_ != row_count_) return Incomplete("rows are missing", loaded_);
  GrowingBlocks::Parts blocks;
  GrowingMemories memories;
  if (row_count_ > 0) {
    SOFTLOOKUP_RETURN_IF_ERROR(AddLastBlock((row_count_ - 1) / block_rows_, blocks, memories));
  }
  blocks.sealed = std::move(sealed_);
  blocks.deleted_count = deleted_count_;
  GrowingBlocks growing(config_, std::move(blocks));
  auto editor = std::make_unique<StoreEditor>(StoreEditor::Parts{.config = std::move(config_),
                                                                 .revision = revision_,
                                                                 .blocks = std::move(growing),
                                                                 .memories = std::move(memories),
                                                                 .labels = std::move(labels_),
                                                                 .live_ids = std::move(live_ids_),
                                                                 .writers = std::move(writers_)});
  // The row count of the revision record must be that of the snapshot made from the other records.
  SOFTLOOKUP_CHECK(editor->newest()->row_count() == row_count_)
      << editor->newest()->row_count() << " rows loaded of " << row_count_;
  return editor;
}

}  // namespace softlookup
