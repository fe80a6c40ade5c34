#include "core/store/snapshot.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/error.h"
#include "core/kernels/panel_rows.h"
#include "core/memory/heap_bytes.h"
#include "core/store/kept_ranges.h"
#include "core/store/store_bytes.h"

namespace softlookup {
namespace {

absl::Status RowsCompacted(std::uint64_t position, std::uint64_t begin, std::uint64_t end) {
  return MakeError(
      reasons::kRowsCompacted,
      absl::StrCat("There is no memory as of append index ", position,
                   " any more, because rows before it were compacted; the nearest are those as of ",
                   begin, " and ", end),
      {{"position", absl::StrCat(position)},
       {"begin", absl::StrCat(begin)},
       {"end", absl::StrCat(end)}});
}

}  // namespace

std::int64_t Snapshot::BytesNotIn(const Snapshot& later) const {
  std::int64_t bytes = SharedBytes<Snapshot>() + stored_blocks_.BytesNotIn(later.stored_blocks_);
  if (config_ != later.config_) bytes += ConfigBytes(*config_);
  const std::int64_t block_rows = stored_blocks_.block_rows();
  const std::int64_t blocks = (stored_blocks_.row_count() + block_rows - 1) / block_rows;
  return bytes + HeapBytes(sizeof(AllBlocks)) +
         HeapBytes(static_cast<std::size_t>(blocks) * sizeof(PositionedBlock));
}

const Snapshot::AllBlocks& Snapshot::all_blocks() const {
  // ThreadSanitizer sees the order that std::call_once makes, and not that of Abseil's library.
  std::call_once(all_blocks_once_, [this] {
    auto all = std::make_unique<AllBlocks>();
    all->blocks = BlocksOf(0, row_count());
    all->summary = SummaryOf(all->blocks);
    all_blocks_ = std::move(all);
  });
  return *all_blocks_;
}

std::shared_ptr<const Snapshot> Snapshot::With(std::int64_t index, RowsOfBlock rows) const {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->lease_ = lease_;
  snapshot->config_ = config_;
  snapshot->revision_ = revision_;
  snapshot->byte_size_ = byte_size_;
  snapshot->deleted_count_ = deleted_count_;
  snapshot->labels_ = labels_;
  snapshot->stored_blocks_ = stored_blocks_.With(index, std::move(rows));
  return snapshot;
}

Row Snapshot::RowOf(const PositionedBlock& block, std::int64_t index) const {
  SOFTLOOKUP_DCHECK(index >= 0 && index < block.view.row_count)
      << "row " << index << " of " << block.view.row_count;
  const kernels::PanelShape& shape = stored_blocks_.shape();
  kernels::PanelRowReader reader(shape);
  const kernels::PanelRow kept = reader.Read(block.view, index);
  Row row{.position = block.PositionOf(index)};
  row.key.resize(shape.key_dim);
  for (std::int64_t i = 0; i < shape.key_dim; ++i) row.key[i] = kept.key[i * kept.key_stride];
  row.value.assign(kept.value, kept.value + shape.value_dim);
  TagsOfRow tags = TagsOf(row.position);
  row.id = tags.id;
  row.labels = std::move(tags.labels);
  return row;
}

Snapshot::TagsOfRow Snapshot::TagsOf(std::uint64_t position) const {
  TagsOfRow result;
  const std::int64_t block_rows = stored_blocks_.block_rows();
  if (const RowTags* tags =
          stored_blocks_.TagsOf(static_cast<std::int64_t>(position) / block_rows)) {
    const std::int64_t offset = static_cast<std::int64_t>(position) % block_rows;
    result.id = tags->id(offset);
    for (const std::uint32_t label : tags->labels(offset)) {
      result.labels.emplace_back(labels_->NameOf(label));
    }
  }
  return result;
}

std::optional<std::uint64_t> Snapshot::IdAt(std::uint64_t position) const {
  if (position >= row_count()) return std::nullopt;
  const std::int64_t block_rows = stored_blocks_.block_rows();
  const RowTags* tags = stored_blocks_.TagsOf(static_cast<std::int64_t>(position) / block_rows);
  if (tags == nullptr) return std::nullopt;
  return tags->id(static_cast<std::int64_t>(position) % block_rows);
}

absl::StatusOr<std::unique_ptr<RunningMemory>> Snapshot::MemoryAsOf(std::uint64_t position,
                                                                    std::size_t index) const {
  SOFTLOOKUP_CHECK(position <= row_count())
      << "append index " << position << " of " << row_count() << " rows";
  const std::int64_t block_rows = stored_blocks_.block_rows();
  // Starts at the block of the row before `position`. The block of `position` itself may not exist.
  const std::int64_t block_index =
      position == 0 ? 0 : static_cast<std::int64_t>(position - 1) / block_rows;
  const std::int64_t end = static_cast<std::int64_t>(position) - block_index * block_rows;
  if (position > 0 && stored_blocks_.IsCompacted(block_index)) {
    // The next block has a row, and keeps the memories before its first row.
    if (end == block_rows) return MemoriesBefore(block_index + 1).Clone(index);
    const auto begin = static_cast<std::uint64_t>(block_index * block_rows);
    return RowsCompacted(position, begin, begin + static_cast<std::uint64_t>(block_rows));
  }
  std::unique_ptr<RunningMemory> memory = MemoriesBefore(block_index).Clone(index);
  if (position == 0) return memory;
  if (!stored_blocks_.IsResident(block_index)) {
    return RowsNotResident(config_->name, {.begin = position - 1, .end = position});
  }
  const kernels::BlockView block = stored_blocks_.AllRowsOf(block_index);
  kernels::PanelRowReader reader(stored_blocks_.shape());
  for (std::int64_t i = 0; i < end; ++i) {
    const kernels::PanelRow row = reader.Read(block, i);
    memory->Add(row.key, row.key_stride, row.value);
  }
  return memory;
}

}  // namespace softlookup
