#include "core/store/stored_blocks.h"

#include "core/base/check.h"

namespace softlookup {

StoredBlocks::Blocks StoredBlocks::BlocksOf(std::uint64_t begin, std::uint64_t end) const {
  Blocks blocks;
  if (begin >= end) return blocks;
  SOFTLOOKUP_CHECK(end <= static_cast<std::uint64_t>(row_count()))
      << "position " << end << " of " << row_count() << " rows";
  const std::int64_t first = static_cast<std::int64_t>(begin) / block_rows_;
  const std::int64_t last = static_cast<std::int64_t>(end - 1) / block_rows_;
  blocks.reserve(last - first + 1);
  for (std::int64_t index = first; index <= last; ++index) blocks.push_back(LiveRowsOf(index));
  return blocks;
}

bool StoredBlocks::AreResident(std::uint64_t begin, std::uint64_t end) const {
  if (evicted_count_ == 0 || begin >= end) return true;
  const std::int64_t last = static_cast<std::int64_t>(end - 1) / block_rows_;
  for (std::int64_t index = static_cast<std::int64_t>(begin) / block_rows_; index <= last;
       ++index) {
    if (!IsResident(index)) return false;
  }
  return true;
}

StoredBlocks StoredBlocks::With(std::int64_t index, RowsOfBlock rows) const {
  StoredBlocks blocks = *this;
  SealedBlock block = sealed_[index];
  SetRows(shape_, block_rows_, std::move(rows), block);
  SetLiveRows(shape_, block_rows_, index, block);
  blocks.sealed_.Set(index, std::move(block));
  --blocks.evicted_count_;
  return blocks;
}

std::int64_t StoredBlocks::RowsToDropOf(std::int64_t index) const {
  const bool is_last = index + 1 >= sealed_.size() && tail_.row_count == 0;
  return is_last || index >= sealed_.size() ? 0 : RowsToDrop(sealed_[index], block_rows_);
}

kernels::BlockView StoredBlocks::AllRowsOf(std::int64_t index) const {
  if (index < sealed_.size()) return sealed_[index].AllRows(shape_);
  kernels::BlockView view;
  view.shape = shape_;
  if (tail_.full_panels != nullptr) view.full_panels = tail_.full_panels->panel(0);
  view.full_panel_count = tail_.full_panel_count;
  if (tail_.partial_panel != nullptr) view.partial_panel = tail_.partial_panel->panel(0);
  view.row_count = tail_.row_count;
  tail_.bounds->SetIn(view);
  return view;
}

std::int64_t StoredBlocks::BytesNotIn(const StoredBlocks& later) const {
  std::int64_t bytes =
      sealed_.BytesNotIn(later.sealed_, [](const SealedBlock& block, const SealedBlock* other) {
        return other == nullptr ? block.bytes() : block.BytesNotIn(*other);
      });
  // The rows of the tail may be a sealed block by now.
  SealedBlock tail;
  if (sealed_.size() < later.sealed_.size()) {
    tail = later.sealed_[sealed_.size()];
  } else {
    tail = {.panels = later.tail_.full_panels,
            .bounds = later.tail_.bounds,
            .memories_before = later.tail_.memories_before,
            .tags = later.tail_.tags,
            .live = later.tail_.live};
  }
  bytes += SealedBlock{.bounds = tail_.bounds,
                       .memories_before = tail_.memories_before,
                       .tags = tail_.tags,
                       .live = tail_.live}
               .BytesNotIn(tail);
  if (tail_.full_panels != nullptr && tail_.full_panels != tail.panels) {
    bytes += tail_.full_panels->bytes(tail_.full_panel_count);
  }
  if (tail_.partial_panel != nullptr && tail_.partial_panel != later.tail_.partial_panel) {
    bytes += tail_.partial_panel->bytes();
  }
  return bytes;
}

PositionedBlock StoredBlocks::LiveRowsOfTail() const {
  PositionedBlock rows;
  rows.view = AllRowsOf(sealed_.size());
  rows.number = sealed_.size();
  rows.first_position = static_cast<std::uint64_t>(sealed_.size() * block_rows_);
  rows.position_count = rows.view.row_count;
  if (tail_.live != nullptr) rows.row_mask = tail_.live->words();
  return rows;
}

}  // namespace softlookup
