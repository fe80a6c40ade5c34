#include "core/attention/round_scan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/attention/scan_order.h"
#include "core/base/check.h"
#include "core/base/part_count.h"

namespace softlookup {
namespace {

using kernels::kTileQueries;

void MergeStates(const HeadQueries& head_queries, const PartialState& later,
                 const double* later_sum, PartialState& state, double* sum) {
  const auto size =
      static_cast<std::size_t>(head_queries.sums_values() ? head_queries.head_value_dim() : 0);
  Merge(head_queries.merge_mode(), later, {later_sum, size}, state, {sum, size});
}

}  // namespace

void RoundScan::AddWindow(std::int64_t ranges_begin, std::int64_t ranges_end) {
  ScanWindow(ranges_begin, ranges_end);
  MergeWindow(ranges_begin, ranges_end);
}

void RoundScan::ScanWindow(std::int64_t ranges_begin, std::int64_t ranges_end) {
  const std::int64_t queries = round_.size();
  const std::int64_t size = (ranges_end - ranges_begin) * queries;
  if (size > window_size_) {
    window_states_.resize(static_cast<std::size_t>(size));
    window_sums_.reset();
    window_sums_ =
        std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(SumsOffset(size)));
    window_size_ = size;
  }
  const std::int64_t items_per_range = PartCount(queries, work_.cut.item_queries);
  threads_.ForEach((ranges_end - ranges_begin) * items_per_range, [&](std::int64_t item) {
    const std::int64_t range = item / items_per_range;
    const std::int64_t begin = item % items_per_range * work_.cut.item_queries;
    ScanItem({.blocks = work_.RangeOf(ranges_begin + range),
              .states_begin = range * queries,
              .begin = begin,
              .end = std::min(begin + work_.cut.item_queries, queries)});
  });
}

void RoundScan::ScanItem(const WorkItem& item) {
  std::fill_n(window_states_.begin() + item.states_begin + item.begin, item.end - item.begin,
              PartialState{});
  for (std::int64_t at = item.blocks.begin; at < item.blocks.end; ++at) {
    bool is_first = true;
    for (std::int64_t query = item.begin; query < item.end;) {
      query = ScanTile(item, at, query, is_first);
    }
  }
}

std::int64_t RoundScan::ScanTile(const WorkItem& item, std::int64_t at, std::int64_t query,
                                 bool& is_first) {
  const std::int64_t block_index = work_.BlockAt(at);
  const HeadQueryRef& first = round_.RefOf(query);
  const PositionedBlock* block = BlockOf(block_index, first);
  if (block == nullptr) return query + 1;
  bool continues = false;
  const PassTask* asked = nullptr;
  std::int64_t tile_end = query;
  for (; tile_end < std::min(query + kTileQueries, item.end); ++tile_end) {
    const HeadQueryRef& other = round_.RefOf(tile_end);
    const PositionedBlock* other_block = BlockOf(block_index, other);
    if (!order_.ShareScan(first, other) || other_block == nullptr ||
        (round_.CandidatesOf(query) == nullptr) != (round_.CandidatesOf(tile_end) == nullptr) ||
        !AreSameRows(*block, *other_block)) {
      break;
    }
    if (other.task != asked) continues |= other.task->Continues();
    asked = other.task;
  }
  // All tasks of the tile are cancelled. Nobody reads their states, so the tile is not scanned.
  if (!continues) return tile_end;
  const int count = static_cast<int>(tile_end - query);
  const std::int64_t state = item.states_begin + query;
  SOFTLOOKUP_DCHECK(state + count <= window_size_) << state << " of " << window_size_ << " states";
  const ScanPlan plan = first.task->head_queries().PlanOf(first.number);
  const bool looks = round_.CandidatesOf(query) != nullptr;
  ScanOrder order;
  if (!looks) {
    order = ScanOrderOf({.item_blocks = item.blocks,
                         .block = at,
                         .item_begin = item.begin,
                         .item_end = item.end,
                         .begin = query,
                         .end = tile_end,
                         .is_first_of_block = std::exchange(is_first, false)},
                        blocks_, work_, round_);
  }
  const auto scan = [&](PartialState* to_states, double* to_sums) {
    if (!looks) {
      ScanBlock(plan, *block, order, &round_.queries[static_cast<std::size_t>(query)], count,
                to_states, to_sums);
      return;
    }
    std::array<const Candidates*, kTileQueries> candidates;
    for (int i = 0; i < count; ++i) {
      candidates[static_cast<std::size_t>(i)] = round_.CandidatesOf(query + i);
    }
    candidate_row_count_ +=
        ScanCandidates(plan, *block, block_index, &round_.queries[static_cast<std::size_t>(query)],
                       candidates.data(), count, to_states, to_sums);
  };
  PartialState* states = &window_states_[static_cast<std::size_t>(state)];
  double* sums = window_sums_.get() + SumsOffset(state);
  if (at == item.blocks.begin) {
    scan(states, sums);
    return tile_end;
  }
  thread_local std::vector<double> block_sums;
  block_sums.resize(static_cast<std::size_t>(SumsOffset(kTileQueries)));
  std::array<PartialState, kTileQueries> block_states;
  scan(block_states.data(), block_sums.data());
  for (int i = 0; i < count; ++i) {
    MergeStates(round_.RefOf(query + i).task->head_queries(),
                block_states[static_cast<std::size_t>(i)], block_sums.data() + SumsOffset(i),
                states[i], sums + SumsOffset(i));
  }
  return tile_end;
}

void RoundScan::MergeWindow(std::int64_t ranges_begin, std::int64_t ranges_end) {
  const std::int64_t queries = round_.size();
  threads_.ForEach(queries, [&](std::int64_t q) {
    PassTask& task = *round_.RefOf(q).task;
    if (!task.Continues()) return;
    const auto merge = [&](std::int64_t window_state, PartialState& state, double* sums) {
      MergeStates(task.head_queries(), window_states_[static_cast<std::size_t>(window_state)],
                  window_sums_.get() + SumsOffset(window_state), state, sums);
    };
    std::int64_t group_state = q;
    for (std::int64_t range = ranges_begin; range < ranges_end; ++range) {
      const std::int64_t state = (range - ranges_begin) * queries + q;
      if (state != group_state) {
        merge(state, window_states_[static_cast<std::size_t>(group_state)],
              window_sums_.get() + SumsOffset(group_state));
      }
      if (!work_.RangeOf(range).ends_group) continue;
      merge(group_state, round_.StateOf(q).state, round_.SumsOf(q));
      group_state = state + queries;
    }
  });
}

}  // namespace softlookup
