#include "core/store/growing_blocks.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/check.h"
#include "core/kernels/key_ball.h"
#include "core/store/row_mask.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;

}  // namespace

GrowingBlocks::GrowingBlocks(const StoreConfig& config, Parts parts)
    : tail_(PanelShapeOf(config), std::move(parts.tail)), deleted_count_(parts.deleted_count) {
  AddSealed(absl::MakeSpan(parts.sealed), config);
}

void GrowingBlocks::SetMemoriesBefore(std::shared_ptr<const MemorySet> memories) {
  SOFTLOOKUP_CHECK(next_row_begins_block())
      << "the block has " << tail_.row_count() << " rows already";
  tail_.SetMemoriesBefore(std::move(memories));
}

kernels::PanelRow GrowingBlocks::Append(const NewRow& row, const StoreConfig& config,
                                        kernels::PanelRowReader& reader) {
  if (tail_.NeedsRoom()) tail_.MakeRoom(panel_allocator_, sealed_.size());
  const kernels::PanelRow stored = tail_.Append(row, config, reader);
  if (tail_.is_full()) {
    SealedBlock block = tail_.Seal();
    AddSealed(absl::MakeSpan(&block, 1), config);
  }
  return stored;
}

std::vector<std::int64_t> GrowingBlocks::Delete(absl::Span<const std::uint64_t> positions) {
  std::vector<std::int64_t> masked_blocks;
  if (positions.empty()) return masked_blocks;
  SOFTLOOKUP_CHECK(positions.back() < row_count())
      << "position " << positions.back() << " of " << row_count() << " rows";
  SOFTLOOKUP_DCHECK(std::adjacent_find(positions.begin(), positions.end(),
                                       std::greater_equal<>()) == positions.end())
      << "positions must ascend";
  deleted_count_ += positions.size();
  const std::int64_t block_rows = tail_.block_rows();
  const auto block_of = [&](std::uint64_t position) {
    return static_cast<std::int64_t>(position) / block_rows;
  };
  const auto first_position_of = [&](std::int64_t index) {
    return static_cast<std::uint64_t>(index * block_rows);
  };
  absl::Span<const std::uint64_t> left = positions;
  // Takes the positions in block `index` from the front of `left`, and adds `index` to
  // masked_blocks.
  const auto take_rows_of = [&](std::int64_t index) {
    const auto end = std::partition_point(left.begin(), left.end(), [&](std::uint64_t position) {
      return block_of(position) == index;
    });
    const auto rows = left.first(static_cast<std::size_t>(end - left.begin()));
    left.remove_prefix(rows.size());
    masked_blocks.push_back(index);
    return rows;
  };
  const auto delete_in = [&](std::int64_t index, SealedBlock& block) {
    sealed_bytes_ -= block.bytes();
    block.live = WithoutRows(block.live.get(), first_position_of(index), take_rows_of(index));
    PackIfFewAreLive(shape(), block_rows, block);
    SetLiveRows(shape(), block_rows, index, block);
    sealed_bytes_ += block.bytes();
  };
  // For one block, Set is cheap: it copies only a part of the list. For several blocks, Transform
  // copies the whole list once.
  if (block_of(positions.front()) == block_of(positions.back())) {
    const std::int64_t index = block_of(positions.front());
    if (index < sealed_.size()) {
      SealedBlock block = sealed_[index];
      delete_in(index, block);
      sealed_.Set(index, std::move(block));
    }
  } else {
    sealed_.Transform([&](std::int64_t index, SealedBlock& block) {
      if (!left.empty() && block_of(left.front()) == index) delete_in(index, block);
    });
  }
  if (!left.empty()) {
    const std::int64_t index = sealed_.size();
    tail_.Delete(first_position_of(index), take_rows_of(index));
  }
  SOFTLOOKUP_CHECK(left.empty()) << "position " << left.front() << " has no block";
  return masked_blocks;
}

std::vector<std::int64_t> GrowingBlocks::Compact(std::int64_t begin, std::int64_t end) {
  const StoredBlocks before = View();
  std::vector<std::int64_t> compacted;
  for (std::int64_t index = begin; index < end; ++index) {
    if (before.RowsToDropOf(index) > 0) compacted.push_back(index);
  }
  for (const std::int64_t index : compacted) {
    SealedBlock block = sealed_[index];
    sealed_bytes_ -= block.bytes();
    softlookup::Compact(block);
    SetLiveRows(shape(), tail_.block_rows(), index, block);
    sealed_bytes_ += block.bytes();
    sealed_.Set(index, std::move(block));
  }
  return compacted;
}

void GrowingBlocks::AddSealed(absl::Span<SealedBlock> blocks, const StoreConfig& config) {
  const std::int64_t block_panels = tail_.block_rows() / kPanelRows;
  const auto block_count = sealed_.size() + static_cast<std::int64_t>(blocks.size());
  std::int64_t index = sealed_.size();
  for (SealedBlock& block : blocks) {
    SOFTLOOKUP_CHECK(block.bounds != nullptr);
    SOFTLOOKUP_CHECK(block.is_compacted()
                         ? block.packed != nullptr
                         : !block.is_resident || block.panels->panel_count() == block_panels)
        << "a block needs its packed rows, or all " << block_panels << " panels";
    if (!block.is_resident) ++evicted_count_;
    PackIfFewAreLive(shape(), tail_.block_rows(), block);
    MakeSketchOf(block, block_count, config);
    block.group_balls = GroupBallsOf(index, blocks);
    SetLiveRows(shape(), tail_.block_rows(), index++, block);
    sealed_bytes_ += block.bytes();
  }
  sealed_.Append(blocks);
}

void GrowingBlocks::MakeSketchOf(SealedBlock& block, std::int64_t block_count,
                                 const StoreConfig& config) {
  if (block.packed != nullptr || !block.is_resident || !HasSketch(config, *block.bounds)) return;
  block.sketch = std::make_shared<const BlockSketch>(
      *block.panels, shape(),
      panel_allocator_.Allocate(kernels::SketchShape(shape().key_dim), block.panels->panel_count(),
                                block_count));
}

void GrowingBlocks::Evict(absl::FunctionRef<bool(std::int64_t)> should_evict) {
  sealed_.Transform([&](std::int64_t index, SealedBlock& block) {
    if (!block.is_resident || !should_evict(index)) return;
    sealed_bytes_ -= block.bytes();
    softlookup::Evict(block);
    SetLiveRows(shape(), tail_.block_rows(), index, block);
    sealed_bytes_ += block.bytes();
    ++evicted_count_;
  });
}

void GrowingBlocks::Load(std::int64_t index, RowsOfBlock rows, const StoreConfig& config) {
  SealedBlock block = sealed_[index];
  sealed_bytes_ -= block.bytes();
  SetRows(shape(), tail_.block_rows(), std::move(rows), block);
  MakeSketchOf(block, sealed_.size(), config);
  sealed_bytes_ += block.bytes();
  --evicted_count_;
  sealed_.Set(index, block);
  // The balls of the group are made of its blocks, so they come when these are all there.
  const std::int64_t block_bytes = block.bytes();
  block.group_balls = GroupBallsOf(index, {});
  SetLiveRows(shape(), tail_.block_rows(), index, block);
  sealed_bytes_ += block.bytes() - block_bytes;
  sealed_.Set(index, std::move(block));
}

std::shared_ptr<const GroupBalls> GrowingBlocks::GroupBallsOf(
    std::int64_t index, absl::Span<const SealedBlock> blocks) const {
  if ((index + 1) % kernels::kBallGroupBlocks != 0) return nullptr;
  std::vector<kernels::KeyBall> balls;
  for (std::int64_t i = index + 1 - kernels::kBallGroupBlocks; i <= index; ++i) {
    const std::int64_t new_index = i - sealed_.size();
    const SealedBlock& block =
        new_index < 0 ? sealed_[i] : blocks[static_cast<std::size_t>(new_index)];
    if (block.sketch == nullptr || !block.sketch->view().has_balls()) return nullptr;
    for (const kernels::KeyBall& ball : block.sketch->view().balls) balls.push_back(ball);
  }
  return std::make_shared<const GroupBalls>(balls, shape().key_dim);
}

StoredBlocks GrowingBlocks::View() {
  SOFTLOOKUP_CHECK(deleted_count_ <= row_count())
      << deleted_count_ << " of " << row_count() << " rows deleted";
  return StoredBlocks(shape(), tail_.block_rows(), sealed_, tail_.View(), evicted_count_);
}

std::int64_t GrowingBlocks::bytes() const {
  return sealed_bytes_ + sealed_.bytes() + panel_allocator_.unused_bytes() + tail_.bytes();
}

}  // namespace softlookup
