#include "core/store/tail.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/memory/heap_bytes.h"

namespace softlookup {

using kernels::kPanelRows;

Tail::Tail(const kernels::PanelShape& shape, TailParts parts) : Tail(shape) {
  SOFTLOOKUP_CHECK(parts.row_count < block_rows_)
      << parts.row_count << " rows in a tail behind blocks of " << block_rows_;
  row_count_ = parts.row_count;
  if (row_count_ % kPanelRows != 0) {
    partial_panel_ = std::make_shared<PanelBuffer>(shape_, 1);
    std::memcpy(partial_panel_->panel(0), parts.panels->panel(row_count_ / kPanelRows),
                shape_.bytes());
  }
  if (row_count_ >= kPanelRows) full_panels_ = std::move(parts.panels);
  bounds_ = std::move(parts.bounds);
  tags_ = std::move(parts.tags);
  live_ = std::move(parts.live);
  memories_before_ = std::move(parts.memories_before);
}

bool Tail::NeedsRoom() const {
  if (row_count_ % kPanelRows != kPanelRows - 1) return false;
  return full_panels_ == nullptr || row_count_ / kPanelRows >= full_panels_->panel_count();
}

void Tail::MakeRoom(PanelAllocator& allocator, std::int64_t blocks_before) {
  const std::int64_t panels = row_count_ / kPanelRows;
  const std::int64_t block_panels = block_rows_ / kPanelRows;
  std::int64_t capacity = std::clamp<std::int64_t>(2 * panels, 1, block_panels);
  // In a small store, the room doubles. A store with sealed blocks gets room for a whole block at
  // once. So does a tail whose room is so large that its pages are committed only as they are
  // written to.
  if (blocks_before > 0 || PanelBuffer::CommitsAsWritten(shape_, capacity)) {
    capacity = block_panels;
  }
  auto larger = capacity == block_panels ? allocator.Allocate(shape_, block_panels, blocks_before)
                                         : std::make_shared<PanelBuffer>(shape_, capacity);
  if (panels > 0) {
    std::memcpy(larger->panel(0), full_panels_->panel(0), panels * shape_.bytes());
  }
  full_panels_ = std::move(larger);
}

kernels::PanelRow Tail::Append(const NewRow& row, const StoreConfig& config,
                               kernels::PanelRowReader& reader) {
  SOFTLOOKUP_DCHECK(!is_full() && !NeedsRoom()) << row_count_ << " rows leave no room";
  if (row.id || !row.labels.empty()) {
    Unshare(tags_, tags_are_shared_, [] {
      return std::make_shared<RowTags>();
    }).Add(row_count_, row.id, row.labels);
  }
  PanelBuffer& partial = Unshare(partial_panel_, partial_panel_is_shared_,
                                 [this] { return std::make_shared<PanelBuffer>(shape_, 1); });
  std::byte* panel = partial.panel(0);
  const std::int64_t lane = row_count_ % kPanelRows;
  if (row.stored != nullptr) {
    kernels::UnpackRow(shape_, row.stored, lane, panel);
  } else {
    kernels::PutRow(shape_, row.key, row.value, lane, panel);
  }
  // Memories and bounds take the row as it is stored. For FLOAT32 the input has the same bits and
  // is faster to read.
  const bool input_has_the_bits = shape_.storage == StorageType::kFloat32 && row.stored == nullptr;
  const kernels::PanelRow stored = input_has_the_bits
                                       ? kernels::PanelRow{.key = row.key, .value = row.value}
                                       : reader.Read(panel, lane);
  bounds_.Add(stored, config);
  if (lane == kPanelRows - 1) {
    std::memcpy(full_panels_->panel(row_count_ / kPanelRows), panel, shape_.bytes());
    // Nothing else shares this panel, because a shared panel was copied above.
    std::memset(panel, 0, shape_.bytes());
  }
  ++row_count_;
  return stored;
}

SealedBlock Tail::Seal() {
  SOFTLOOKUP_CHECK(is_full()) << row_count_ << " rows in a block of " << block_rows_;
  ShareTags();
  SealedBlock block{.panels = std::move(full_panels_),
                    .bounds = std::make_shared<const RowBounds>(std::move(bounds_)),
                    .memories_before = std::move(memories_before_),
                    .tags = std::move(tags_),
                    .live = std::move(live_)};
  full_panels_ = nullptr;
  memories_before_ = nullptr;
  tags_ = nullptr;
  live_ = nullptr;
  bounds_ = {};
  row_count_ = 0;
  return block;
}

void Tail::ShareTags() {
  if (tags_ == nullptr || tags_are_shared_.is_set()) return;
  tags_->ShrinkToFit();
  tags_are_shared_.Set();
}

TailView Tail::View() {
  SOFTLOOKUP_CHECK(row_count_ < block_rows_)
      << row_count_ << " rows behind blocks of " << block_rows_;
  ShareTags();
  TailView view{.full_panels = full_panels_,
                .full_panel_count = row_count_ / kPanelRows,
                .row_count = row_count_,
                .memories_before = memories_before_,
                .tags = tags_,
                .live = live_};
  if (row_count_ > 0) view.bounds = std::make_shared<const RowBounds>(bounds_);
  if (row_count_ % kPanelRows != 0) {
    view.partial_panel = partial_panel_;
    partial_panel_is_shared_.Set();
  }
  return view;
}

std::int64_t Tail::bytes() const {
  std::int64_t bytes = 0;
  if (full_panels_ != nullptr) bytes += full_panels_->bytes(row_count_ / kPanelRows);
  if (partial_panel_ != nullptr) bytes += partial_panel_->bytes();
  if (row_count_ == 0) return bytes;
  // The tail, its committed copy and the snapshot each have a copy of the bounds.
  bytes += 3 * bounds_.bytes();
  if (memories_before_ != nullptr) bytes += memories_before_->bytes();
  if (tags_ != nullptr) bytes += tags_->bytes();
  if (live_ != nullptr) bytes += SharedBytes<RowMask>();
  return bytes;
}

}  // namespace softlookup
