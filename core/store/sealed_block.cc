#include "core/store/sealed_block.h"

#include <cstddef>
#include <utility>

#include "core/kernels/key_ball.h"
#include "core/kernels/panel_rows.h"
#include "core/memory/heap_bytes.h"

namespace softlookup {
namespace {

// Returns room for the centres of a block's balls. The room is empty if the block has fewer than
// kBallRowsMin rows, because such a block has no balls.
std::vector<float> CentresOf(std::int64_t row_count, std::int64_t key_dim) {
  if (row_count < kernels::kBallRowsMin) return {};
  return std::vector<float>(
      static_cast<std::size_t>(kernels::kBlockBalls * kernels::CentreFloats(key_dim)));
}

// Copies the rows of `panels` that have the indexes `rows`, unless `panels` is null. offsets[i] is
// the index of row rows[i] in its block.
std::shared_ptr<const PackedRows> PackRows(const kernels::PanelShape& shape,
                                           const PanelBuffer* panels,
                                           absl::Span<const std::uint16_t> rows,
                                           absl::Span<const std::uint16_t> offsets) {
  using kernels::kPanelRows;
  auto packed = std::make_shared<PackedRows>();
  packed->offsets.assign(offsets.begin(), offsets.end());
  if (rows.empty() || panels == nullptr) return packed;
  auto buffer =
      std::make_shared<PanelBuffer>(shape, (packed->row_count() + kPanelRows - 1) / kPanelRows);
  std::vector<std::byte> row(static_cast<std::size_t>(shape.row_bytes()));
  std::int64_t to = 0;
  for (const std::int64_t from : rows) {
    kernels::PackRow(shape, panels->panel(from / kPanelRows), from % kPanelRows, row.data());
    kernels::UnpackRow(shape, row.data(), to % kPanelRows, buffer->panel(to / kPanelRows));
    ++to;
  }
  packed->panels = std::move(buffer);
  return packed;
}

}  // namespace

bool HasSketch(const StoreConfig& config, const RowBounds& bounds) {
  // The sketch of a shorter key would take nearly as many bytes and as much time as the key itself.
  constexpr std::int64_t kKeyDimMin = 32;
  // INT8 keys are as small as their sketch. Lookups with several heads make no first look.
  return config.num_heads == 1 && config.key_dim >= kKeyDimMin &&
         config.storage_type != StorageType::kInt8 && kernels::KeysFitSketch(bounds.key_magnitude);
}

BlockSketch::BlockSketch(const PanelBuffer& block, const kernels::PanelShape& shape,
                         std::shared_ptr<PanelBuffer> panels)
    : panels_(panels),
      centres_(CentresOf(block.panel_count() * kernels::kPanelRows, shape.key_dim)),
      view_(kernels::MakeSketch({.shape = shape,
                                 .full_panels = block.panel(0),
                                 .full_panel_count = block.panel_count(),
                                 .row_count = block.panel_count() * kernels::kPanelRows},
                                panels->panel(0), centres_.empty() ? nullptr : centres_.data())) {}

std::int64_t BlockSketch::bytes() const {
  return SharedBytes<BlockSketch>() + panels_->bytes() + HeapBytes(centres_);
}

GroupBalls::GroupBalls(absl::Span<const kernels::KeyBall> members, std::int64_t key_dim)
    : centres_(static_cast<std::size_t>(kernels::kBlockBalls * kernels::CentreFloats(key_dim))),
      balls_(kernels::MakeGroupBalls(members, key_dim, centres_.data())) {}

std::int64_t GroupBalls::bytes() const { return SharedBytes<GroupBalls>() + HeapBytes(centres_); }

std::int64_t PackedRows::bytes() const {
  return SharedBytes<PackedRows>() + HeapBytes(offsets) + (panels == nullptr ? 0 : panels->bytes());
}

std::shared_ptr<const PackedRows> PackLiveRows(const PanelBuffer* panels,
                                               const kernels::PanelShape& shape,
                                               std::int64_t row_count, const RowMask& live) {
  std::vector<std::uint16_t> rows;
  for (std::int64_t row = 0; row < row_count; ++row) {
    if (live[row]) rows.push_back(static_cast<std::uint16_t>(row));
  }
  return PackRows(shape, panels, rows, rows);
}

std::shared_ptr<const PackedRows> PackLiveRows(const PackedRows& packed,
                                               const kernels::PanelShape& shape,
                                               const RowMask& live) {
  std::vector<std::uint16_t> rows, offsets;
  for (std::size_t row = 0; row < packed.offsets.size(); ++row) {
    if (!live[packed.offsets[row]]) continue;
    rows.push_back(static_cast<std::uint16_t>(row));
    offsets.push_back(packed.offsets[row]);
  }
  return PackRows(shape, packed.panels.get(), rows, offsets);
}

kernels::BlockView SealedBlock::AllRows(const kernels::PanelShape& shape) const {
  SOFTLOOKUP_CHECK(is_resident && !is_compacted());
  kernels::BlockView view;
  view.shape = shape;
  view.full_panels = panels->panel(0);
  view.full_panel_count = panels->panel_count();
  view.row_count = view.full_panel_count * kernels::kPanelRows;
  bounds->SetIn(view);
  return view;
}

std::int64_t SealedBlock::BytesNotIn(const SealedBlock& later) const {
  const auto bytes_of = [](const auto& part, const auto& later_part) {
    return part == nullptr || part == later_part ? 0 : part->bytes();
  };
  std::int64_t bytes = bytes_of(panels, later.panels) + bytes_of(packed, later.packed) +
                       bytes_of(bounds, later.bounds) + bytes_of(sketch, later.sketch) +
                       bytes_of(group_balls, later.group_balls) +
                       bytes_of(memories_before, later.memories_before) +
                       bytes_of(tags, later.tags);
  for (const auto& mask : {live, kept == live ? nullptr : kept}) {
    if (mask != nullptr && mask != later.live && mask != later.kept) {
      bytes += SharedBytes<RowMask>();
    }
  }
  return bytes;
}

std::int64_t RowsToDrop(const SealedBlock& block, std::int64_t block_rows) {
  if (block.packed == nullptr) return 0;
  const std::int64_t row_count =
      block.is_compacted() ? block.kept->CountFirst(block_rows) : block_rows;
  return row_count - block.packed->row_count();
}

void Compact(SealedBlock& block) {
  SOFTLOOKUP_CHECK(block.packed != nullptr && block.live != nullptr)
      << "a block without packed rows would lose live ones";
  if (block.panels != nullptr) block.panels->FreePagesAtEnd();
  block.panels = nullptr;
  block.kept = block.live;
  if (block.tags != nullptr) block.tags = block.tags->Only(*block.live);
}

void PackIfFewAreLive(const kernels::PanelShape& shape, std::int64_t block_rows,
                      SealedBlock& block) {
  if (block.live == nullptr) return;
  const std::int64_t live_count = block.live->CountFirst(block_rows);
  if (live_count > block_rows / kPackedPart) {
    SOFTLOOKUP_CHECK(!block.is_compacted()) << live_count << " live rows in a compacted block";
    return;
  }
  if (!block.is_compacted()) {
    block.packed = PackLiveRows(block.panels.get(), shape, block_rows, *block.live);
    block.sketch = nullptr;
    block.group_balls = nullptr;
  } else if (block.packed->row_count() != live_count) {
    // Of what a compacted block kept, rows have been deleted since.
    block.packed = PackLiveRows(*block.packed, shape, *block.live);
  }
}

void SetRows(const kernels::PanelShape& shape, std::int64_t block_rows, RowsOfBlock rows,
             SealedBlock& block) {
  SOFTLOOKUP_CHECK(!block.is_resident && (rows.packed != nullptr) == block.is_compacted());
  block.is_resident = true;
  block.panels = std::move(rows.panels);
  block.packed = std::move(rows.packed);
  PackIfFewAreLive(shape, block_rows, block);
}

void Evict(SealedBlock& block) {
  block.is_resident = false;
  if (block.panels != nullptr) block.panels->FreePagesAtEnd();
  block.panels = nullptr;
  if (block.packed != nullptr) {
    auto packed = std::make_shared<PackedRows>();
    packed->offsets = block.packed->offsets;
    block.packed = std::move(packed);
  }
  block.sketch = nullptr;
  block.group_balls = nullptr;
}

void SetLiveRows(const kernels::PanelShape& shape, std::int64_t block_rows, std::int64_t index,
                 SealedBlock& block) {
  PositionedBlock rows;
  if (block.is_resident && !block.is_compacted()) {
    rows.view = block.AllRows(shape);
  } else {
    rows.view.shape = shape;
    rows.view.row_count = block_rows;
    block.bounds->SetIn(rows.view);
  }
  rows.number = index;
  rows.position_count = block_rows;
  rows.first_position = static_cast<std::uint64_t>(index * block_rows);
  if (block.packed != nullptr) {
    const PackedRows& packed = *block.packed;
    rows.row_offsets = packed.offsets.data();
    rows.view.row_count = packed.row_count();
    rows.view.full_panel_count = packed.row_count() / kernels::kPanelRows;
    if (packed.panels != nullptr) {
      rows.view.full_panels = packed.panels->panel(0);
      rows.view.partial_panel = packed.panels->panel(rows.view.full_panel_count);
    }
  } else {
    if (block.live != nullptr) rows.row_mask = block.live->words();
    if (block.sketch != nullptr) rows.sketch = &block.sketch->view();
    if (block.group_balls != nullptr) rows.group_balls = &block.group_balls->balls();
  }
  block.live_rows = rows;
}

}  // namespace softlookup
