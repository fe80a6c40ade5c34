#include "core/store/snapshot.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/kernels/panel_rows.h"
#include "core/memory/heap_bytes.h"

namespace softlookup {

namespace {

// Returns the spec of memory `index`: 0 is `average`, then come config.memories.
const MemorySpec& SpecOf(const StoreConfig& config, std::size_t index) {
  static const auto& average = *new MemorySpec{.name = "average", .kind = MemoryKind::kAverage};
  return index == 0 ? average : config.memories[index - 1];
}

// Returns room for the centres of a block's balls. It is empty if the block has no balls, because
// it has fewer than kBallRowsMin rows.
std::vector<float> CentresOf(std::int64_t row_count, std::int64_t key_dim) {
  if (row_count < kernels::kBallRowsMin) return {};
  return std::vector<float>(
      static_cast<std::size_t>(kernels::kBlockBalls * kernels::CentreFloats(key_dim)));
}

void SetBounds(const RowBounds& bounds, kernels::BlockView& view) {
  view.key_magnitude = bounds.key_magnitude;
  view.value_magnitude = bounds.value_magnitude;
  view.key_norms_max = bounds.key_norms_max.data();
}

// Returns all rows of a block, deleted ones included.
kernels::BlockView ViewOf(const SealedBlock& block, const kernels::PanelShape& shape) {
  kernels::BlockView view;
  view.shape = shape;
  view.full_panels = block.panels->panel(0);
  view.full_panel_count = block.panels->panel_count();
  view.row_count = view.full_panel_count * kernels::kPanelRows;
  SetBounds(*block.bounds, view);
  return view;
}

}  // namespace

MemorySet MemorySetOf(const StoreConfig& config) {
  std::vector<MemorySpec> specs;
  for (std::size_t i = 0; i <= config.memories.size(); ++i) specs.push_back(SpecOf(config, i));
  return MemorySet(specs, config.key_dim, config.value_dim);
}

kernels::PanelShape PanelShapeOf(const StoreConfig& config) {
  return {.key_dim = config.key_dim, .value_dim = config.value_dim, .storage = config.storage_type};
}

void RowBounds::Add(const kernels::PanelRow& row, const StoreConfig& config) {
  const auto raise = [](float& bound, float by) { bound = std::max(bound, by); };
  for (std::int64_t i = 0; i < config.value_dim; ++i)
    raise(value_magnitude, std::abs(row.value[i]));
  key_norms_max.resize(config.num_heads);
  const std::int64_t head_dim = config.key_dim / config.num_heads;
  for (std::int64_t head = 0; head < config.num_heads; ++head) {
    double square = 0;
    for (std::int64_t i = head * head_dim; i < (head + 1) * head_dim; ++i) {
      const float component = row.key[i * row.key_stride];
      raise(key_magnitude, std::abs(component));
      square += static_cast<double>(component) * component;
    }
    // If the norm is beyond float32's range, the bound is infinity.
    raise(key_norms_max[head], static_cast<float>(std::sqrt(square)));
  }
}

std::int64_t RowBounds::bytes() const {
  return SharedBytes<RowBounds>() + HeapBytes(key_norms_max);
}

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

std::int64_t PackedRows::bytes() const {
  return SharedBytes<PackedRows>() + HeapBytes(offsets) + (panels == nullptr ? 0 : panels->bytes());
}

std::int64_t SealedBlock::bytes() const {
  return panels->bytes() + (packed == nullptr ? 0 : packed->bytes()) + bounds->bytes() +
         (sketch == nullptr ? 0 : sketch->bytes()) +
         (memories_before == nullptr ? 0 : memories_before->bytes()) +
         (tags == nullptr ? 0 : tags->bytes()) + (live == nullptr ? 0 : SharedBytes<RowMask>());
}

std::shared_ptr<const PackedRows> PackLiveRows(const PanelBuffer& panels,
                                               const kernels::PanelShape& shape,
                                               std::int64_t row_count, const RowMask& live) {
  using kernels::kPanelRows;
  auto packed = std::make_shared<PackedRows>();
  for (std::int64_t row = 0; row < row_count; ++row) {
    if (live[row]) packed->offsets.push_back(static_cast<std::uint16_t>(row));
  }
  packed->offsets.shrink_to_fit();
  if (packed->offsets.empty()) return packed;
  auto buffer =
      std::make_shared<PanelBuffer>(shape, (packed->row_count() + kPanelRows - 1) / kPanelRows);
  std::vector<std::byte> row(static_cast<std::size_t>(shape.row_bytes()));
  for (std::int64_t to = 0; to < packed->row_count(); ++to) {
    const std::int64_t from = packed->offsets[to];
    kernels::PackRow(shape, panels.panel(from / kPanelRows), from % kPanelRows, row.data());
    kernels::UnpackRow(shape, row.data(), to % kPanelRows, buffer->panel(to / kPanelRows));
  }
  packed->panels = std::move(buffer);
  return packed;
}

void SetLiveRows(const kernels::PanelShape& shape, std::int64_t index, SealedBlock& block) {
  PositionedBlock rows;
  rows.view = ViewOf(block, shape);
  rows.number = index;
  rows.position_count = rows.view.row_count;
  rows.first_position = static_cast<std::uint64_t>(index * rows.position_count);
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
  }
  block.live_rows = rows;
}

kernels::BlockView Snapshot::BlockWithDeletedRows(std::int64_t index) const {
  if (index < sealed_.size()) return ViewOf(sealed_[index], shape_);
  kernels::BlockView view;
  view.shape = shape_;
  if (tail_.full_panels != nullptr) view.full_panels = tail_.full_panels->panel(0);
  view.full_panel_count = tail_.full_panel_count;
  if (tail_.partial_panel != nullptr) view.partial_panel = tail_.partial_panel->panel(0);
  view.row_count = tail_.row_count;
  SetBounds(*tail_.bounds, view);
  return view;
}

PositionedBlock Snapshot::LiveRowsOfTail() const {
  PositionedBlock rows;
  rows.view = BlockWithDeletedRows(sealed_.size());
  rows.number = sealed_.size();
  rows.first_position = static_cast<std::uint64_t>(sealed_.size() * block_rows_);
  rows.position_count = rows.view.row_count;
  if (tail_.live != nullptr) rows.row_mask = tail_.live->words();
  return rows;
}

const MemorySet* Snapshot::KeptMemoriesBefore(std::int64_t index) const {
  return index < sealed_.size() ? sealed_[index].memories_before.get()
                                : tail_.memories_before.get();
}

MemorySet Snapshot::MemoriesBefore(std::int64_t index) const {
  const MemorySet* kept = KeptMemoriesBefore(index);
  return kept == nullptr ? MemorySetOf(*config_) : *kept;
}

const RowBounds& Snapshot::BoundsOf(std::int64_t index) const {
  return index < sealed_.size() ? *sealed_[index].bounds : *tail_.bounds;
}

const RowMask* Snapshot::LiveRowsOf(std::int64_t index) const {
  return index < sealed_.size() ? sealed_[index].live.get() : tail_.live.get();
}

Snapshot::Blocks Snapshot::BlocksOf(std::uint64_t begin, std::uint64_t end) const {
  Blocks blocks;
  if (begin >= end) return blocks;
  SOFTLOOKUP_CHECK(end <= row_count()) << "position " << end << " of " << row_count() << " rows";
  const std::int64_t first = static_cast<std::int64_t>(begin) / block_rows_;
  const std::int64_t last = static_cast<std::int64_t>(end - 1) / block_rows_;
  blocks.reserve(last - first + 1);
  for (std::int64_t index = first; index <= last; ++index) {
    blocks.push_back(index < sealed_.size() ? sealed_[index].live_rows : LiveRowsOfTail());
  }
  return blocks;
}

std::unique_ptr<RunningMemory> Snapshot::MemoryAsOf(std::uint64_t position,
                                                    std::size_t index) const {
  SOFTLOOKUP_CHECK(position <= row_count())
      << "append index " << position << " of " << row_count() << " rows";
  // Starts at the block of the last row before `position`, because that block always exists.
  const std::int64_t block_index =
      position == 0 ? 0 : static_cast<std::int64_t>(position - 1) / block_rows_;
  const MemorySet* before = KeptMemoriesBefore(block_index);
  std::unique_ptr<RunningMemory> memory =
      before == nullptr
          ? MakeRunningMemory(SpecOf(*config_, index), config_->key_dim, config_->value_dim)
          : (*before)[index].Clone();
  if (position == 0) return memory;
  const kernels::BlockView block = BlockWithDeletedRows(block_index);
  const std::int64_t end = static_cast<std::int64_t>(position) - block_index * block_rows_;
  kernels::PanelRowReader reader(shape_);
  for (std::int64_t i = 0; i < end; ++i) {
    const kernels::PanelRow row = reader.Read(block, i);
    memory->Add(row.key, row.key_stride, row.value);
  }
  return memory;
}

const RowTags* Snapshot::TagsAt(std::uint64_t position) const {
  const std::int64_t index = static_cast<std::int64_t>(position) / block_rows_;
  return index < sealed_.size() ? sealed_[index].tags.get() : tail_.tags.get();
}

Snapshot::TagsOfRow Snapshot::TagsOf(std::uint64_t position) const {
  TagsOfRow result;
  if (const RowTags* tags = TagsAt(position)) {
    const std::int64_t offset = static_cast<std::int64_t>(position) % block_rows_;
    result.id = tags->id(offset);
    for (const std::uint32_t label : tags->labels(offset)) {
      result.labels.emplace_back(labels_->NameOf(label));
    }
  }
  return result;
}

std::optional<std::uint64_t> Snapshot::IdAt(std::uint64_t position) const {
  if (position >= row_count()) return std::nullopt;
  const RowTags* tags = TagsAt(position);
  if (tags == nullptr) return std::nullopt;
  return tags->id(static_cast<std::int64_t>(position) % block_rows_);
}

Row Snapshot::RowOf(const PositionedBlock& block, std::int64_t index) const {
  SOFTLOOKUP_DCHECK(index >= 0 && index < block.view.row_count)
      << "row " << index << " of " << block.view.row_count;
  kernels::PanelRowReader reader(shape_);
  const kernels::PanelRow kept = reader.Read(block.view, index);
  Row row{.position = block.PositionOf(index)};
  row.key.resize(shape_.key_dim);
  for (std::int64_t i = 0; i < shape_.key_dim; ++i) row.key[i] = kept.key[i * kept.key_stride];
  row.value.assign(kept.value, kept.value + shape_.value_dim);
  TagsOfRow tags = TagsOf(row.position);
  row.id = tags.id;
  row.labels = std::move(tags.labels);
  return row;
}

}  // namespace softlookup
