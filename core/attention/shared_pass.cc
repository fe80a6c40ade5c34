#include "core/attention/shared_pass.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/base/check.h"
#include "core/kernels/sum_values.h"

namespace softlookup {
namespace {

using kernels::kTileQueries;
using kernels::PanelRange;

// Most bytes of a window's states, unless those of kMergeGroupBlocks block ranges have more.
constexpr std::int64_t kWindowBytesMax = std::int64_t{32} << 20;
// Most bytes of a round's states, unless one head query's state has more.
constexpr std::int64_t kRoundBytesMax = std::int64_t{4} << 20;
// Most bytes of the bounds of a round's first look, unless those of one tile have more.
constexpr std::int64_t kLookBytesMax = std::int64_t{64} << 20;
// A thread bounds this many blocks by their balls before it takes another work item.
constexpr std::int64_t kBoundBlocks = 64;
// A thread looks at kLookBlocks blocks, for kLookTiles tiles, before it takes another work item.
constexpr std::int64_t kLookBlocks = 4;
constexpr std::int64_t kLookTiles = 4;

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

void MergeStates(const HeadQueries& task, const PartialState& later, const double* later_sum,
                 PartialState& state, double* sum) {
  const auto size = static_cast<std::size_t>(task.sums_values() ? task.head_value_dim() : 0);
  Merge(task.merge_mode(), later, {later_sum, size}, state, {sum, size});
}

}  // namespace

SharedPass::SharedPass(absl::Span<TaskAnswer* const> tasks, ForkJoinPool& pool)
    : tasks_(tasks.begin(), tasks.end()),
      pool_(pool),
      order_(tasks),
      blocks_(tasks),
      look_(blocks_, order_) {
  double cost = 0;
  for (const TaskAnswer* task : tasks_) {
    cost += task->task().cost();
    const HeadQueries& queries = task->head_queries();
    may_look_ |= FirstLook::MayServe(queries);
    if (queries.sums_values()) sums_stride_ = kernels::PaddedValueDim(queries.head_value_dim());
  }
  is_large_ = cost > kInlineCostMax;
}

ScannedRows SharedPass::Run() {
  for (TakeRound(); !refs_.empty() && AnyTaskContinues(); TakeRound()) RunRound();
  const std::int64_t rows = scanned_row_count_ + candidate_row_count_;
  return {.rows = static_cast<std::uint64_t>(rows),
          .bytes = static_cast<std::uint64_t>(rows * blocks_.row_bytes()),
          .sketched_rows = static_cast<std::uint64_t>(sketched_row_count_),
          .skipped_blocks = static_cast<std::uint64_t>(skipped_block_count_)};
}

bool SharedPass::AnyTaskContinues() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [](TaskAnswer* t) { return t->Continues(); });
}

void SharedPass::TakeRound() {
  std::int64_t queries_max = std::max<std::int64_t>(1, kRoundBytesMax / StateBytes());
  if (may_look_) {
    queries_max = std::min(
        queries_max, std::max<std::int64_t>(kTileQueries, kLookBytesMax / look_.BytesPerQuery()));
  }
  refs_.clear();
  std::int64_t collector_bytes = 0;
  HeadQueryOrder::Cursor behind_whole_tiles = order_.cursor();
  for (;;) {
    if (query_count() % kTileQueries == 0) behind_whole_tiles = order_.cursor();
    if (query_count() == queries_max || collector_bytes >= kCollectorBytesMax) break;
    const std::optional<HeadQueryRef> next = order_.Next();
    if (!next) return;
    refs_.push_back(*next);
    collector_bytes += next->answer->head_queries().CollectorBytes();
  }
  if (query_count() <= kTileQueries) return;
  refs_.resize(refs_.size() / kTileQueries * kTileQueries);
  order_.SeekTo(behind_whole_tiles);
}

void SharedPass::RunRound() {
  const std::int64_t queries = query_count();
  collectors_.clear();
  states_.clear();
  queries_.clear();
  sums_.assign(static_cast<std::size_t>(SumsOffset(queries)), 0.0);
  for (std::int64_t q = 0; q < queries; ++q) {
    const HeadQueryRef& ref = RefOf(q);
    states_.push_back(
        ref.answer->head_queries().Begin(ref.number, collectors_, sums_.data() + SumsOffset(q)));
    queries_.push_back(states_.back().query);
  }

  LookFirst();
  ChooseScanBlocks();
  CutWork(
      {.block_count = static_cast<std::int64_t>(scan_blocks_.size()),
       .query_count = queries,
       .thread_count = pool_.thread_count()},
      [this](std::int64_t at) { return blocks_.group_of(scan_block(at)); }, work_);
  const auto range_count = static_cast<std::int64_t>(work_.ranges.size());
  const std::int64_t window_ranges_max =
      std::max(kWindowBytesMax / (queries * StateBytes()), AlignedBlocks::kMergeGroupBlocks);
  for (std::int64_t begin = 0; begin < range_count;) {
    std::int64_t end = std::min(begin + window_ranges_max, range_count);
    while (!RangeOf(end - 1).ends_group) --end;
    SOFTLOOKUP_CHECK(end > begin) << "a merge group is larger than a window";
    ScanWindow(begin, end);
    MergeWindow(begin, end);
    // Head queries whose rows are all scanned, if there are any, come first.
    const bool any_whole = look_.CandidatesOf(0) == nullptr;
    for (std::int64_t at = RangeOf(begin).begin; any_whole && at < RangeOf(end - 1).end; ++at) {
      const kernels::RowRange rows = blocks_.rows(scan_block(at));
      scanned_row_count_ += rows.end - rows.begin;
    }
    if (!AnyTaskContinues()) return;
    begin = end;
  }
  for (std::int64_t q = 0; q < queries; ++q) {
    if (const Candidates* candidates = look_.CandidatesOf(q)) {
      RefOf(q).answer->CountLeftOut(candidates->ln_left_out, states_[q]);
    }
    RefOf(q).answer->CountListed(states_[q]);
  }
  ForEach(queries, [&](std::int64_t q) {
    const HeadQueryRef& ref = RefOf(q);
    ref.answer->FinishHeadQuery(ref.number, states_[q], sums_.data() + SumsOffset(q));
  });
}

void SharedPass::LookFirst() {
  look_.Begin(refs_, queries_);
  const std::int64_t tiles = look_.tile_count();
  if (tiles == 0) return;
  const std::int64_t bound_parts = CeilDiv(blocks_.count(), kBoundBlocks);
  ForEach(bound_parts * tiles, [&](std::int64_t item) {
    const std::int64_t begin = item / tiles * kBoundBlocks;
    look_.BoundBlocks(begin, std::min(begin + kBoundBlocks, blocks_.count()), item % tiles);
  });
  ForEach(tiles, [this](std::int64_t tile) { look_.ChooseBlocks(tile); });
  look_.BeginPanels();
  const std::vector<std::int64_t>& blocks = look_.read_blocks();
  const auto block_count = static_cast<std::int64_t>(blocks.size());
  const std::int64_t parts = CeilDiv(block_count, kLookBlocks);
  const std::int64_t tile_parts = CeilDiv(tiles, kLookTiles);
  for (const FirstLook::Part part : {FirstLook::Part::kSample, FirstLook::Part::kRest}) {
    ForEach(parts * tile_parts, [&](std::int64_t item) {
      const std::int64_t begin = item / tile_parts * kLookBlocks;
      const std::int64_t tile = item % tile_parts * kLookTiles;
      look_.LookAt(part, begin, std::min(begin + kLookBlocks, block_count), tile,
                   std::min(tile + kLookTiles, tiles));
    });
    ForEach(tiles, [&](std::int64_t tile) { look_.Choose(part, tile); });
    if (part == FirstLook::Part::kRest) {
      for (const std::int64_t block : blocks) {
        sketched_row_count_ += blocks_.sketched_row_count(block);
      }
      skipped_block_count_ += blocks_.count() - block_count;
    }
    if (!look_.AnyContinues()) return;
  }
  SortByLook();
}

void SharedPass::SortByLook() {
  std::vector<std::int64_t> order(refs_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto middle = std::stable_partition(order.begin(), order.end(), [this](std::int64_t q) {
    return look_.CandidatesOf(q) == nullptr;
  });
  if (middle == order.begin() || middle == order.end()) return;
  const auto sort = [&order](auto& items) {
    auto sorted = std::remove_reference_t<decltype(items)>();
    sorted.reserve(items.size());
    for (const std::int64_t q : order) sorted.push_back(items[static_cast<std::size_t>(q)]);
    items = std::move(sorted);
  };
  sort(refs_);
  sort(states_);
  sort(queries_);
  std::vector<double> sums;
  sums.reserve(sums_.size());
  for (const std::int64_t q : order) {
    const auto begin = sums_.begin() + SumsOffset(q);
    sums.insert(sums.end(), begin, begin + SumsOffset(1));
  }
  sums_ = std::move(sums);
  look_.Sort(order);
}

void SharedPass::ChooseScanBlocks() {
  scan_blocks_.clear();
  // Head queries whose rows are all scanned come first.
  if (look_.CandidatesOf(0) != nullptr) {
    scan_blocks_ = look_.CandidateBlocks();
    return;
  }
  scan_blocks_.resize(static_cast<std::size_t>(blocks_.count()));
  std::iota(scan_blocks_.begin(), scan_blocks_.end(), 0);
}

void SharedPass::ScanWindow(std::int64_t ranges_begin, std::int64_t ranges_end) {
  const std::int64_t queries = query_count();
  const std::int64_t size = (ranges_end - ranges_begin) * queries;
  if (size > window_size_) {
    window_states_.resize(static_cast<std::size_t>(size));
    window_sums_.reset();
    window_sums_ =
        std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(SumsOffset(size)));
    window_size_ = size;
  }
  const std::int64_t items_per_range = CeilDiv(queries, work_.item_queries);
  ForEach((ranges_end - ranges_begin) * items_per_range, [&](std::int64_t item) {
    const std::int64_t range = item / items_per_range;
    const std::int64_t begin = item % items_per_range * work_.item_queries;
    ScanItem({.blocks = RangeOf(ranges_begin + range),
              .states_begin = range * queries,
              .begin = begin,
              .end = std::min(begin + work_.item_queries, queries)});
  });
}

void SharedPass::ScanItem(const WorkItem& item) {
  std::fill_n(window_states_.begin() + item.states_begin + item.begin, item.end - item.begin,
              PartialState{});
  for (std::int64_t at = item.blocks.begin; at < item.blocks.end; ++at) {
    bool is_first = true;
    for (std::int64_t query = item.begin; query < item.end;) {
      query = ScanTile(item, at, query, is_first);
    }
  }
}

std::int64_t SharedPass::ScanBytes(const kernels::PanelShape& shape) const {
  // Assumes that every block has as many panels as the first one.
  const PanelRange panels = PanelsOf(blocks_.rows(scan_block(0)));
  return static_cast<std::int64_t>(scan_blocks_.size()) * (panels.end - panels.begin) *
         shape.bytes();
}

ScanOrder SharedPass::OrderOf(const WorkItem& item, std::int64_t at, std::int64_t query,
                              std::int64_t end, bool is_first) const {
  ScanOrder order{.is_first_of_block = is_first};
  const HeadQueryRef& first = RefOf(query);
  const kernels::BlockView& view = BlockOf(scan_block(at), first)->view;
  // For a single query over FLOAT32 rows, the CPU's own prefetching can be better than ours. Other
  // storage types take so long to decode that our prefetching always pays.
  if (end - query == 1 && view.shape.storage == StorageType::kFloat32 &&
      kernels::CpuReadsAhead(ScanBytes(view.shape))) {
    return order;
  }
  if (!first.answer->head_queries().sums_values()) return order;
  // A core can have only few fetches under way, so fetches are spread over all its computing. If
  // several tiles scan a block, each fetches a part of the next block. A single tile fetches its
  // own block's values and the next block's keys. Rows that no tile fetched, for instance because a
  // tile was not scanned, are read when they are scanned.
  const bool is_alone = query == item.begin && end == item.end;
  const bool is_fetched = at > item.blocks.begin && !is_alone;
  if (is_first && !is_fetched)
    order.while_scoring = ValuesOf(view, PanelsOf(blocks_.rows(scan_block(at))));
  if (at + 1 == static_cast<std::int64_t>(scan_blocks_.size())) return order;
  // At the end of a range, only a tile of all the round's head queries fetches the next block. Its
  // thread usually takes the next range, too.
  const bool is_of_all = end - query == query_count();
  if (at + 1 == item.blocks.end && !is_of_all) return order;
  const std::int64_t next_block = scan_block(at + 1);
  const PositionedBlock* next = BlockOf(next_block, first);
  if (next == nullptr) return order;
  const PanelRange all = PanelsOf(blocks_.rows(next_block));
  const auto part_end = [&](std::int64_t tile_end) {
    return all.begin + (all.end - all.begin) * (tile_end - item.begin) / (item.end - item.begin);
  };
  const PanelRange part{.begin = part_end(query), .end = part_end(end)};
  if (is_fetched || !is_first) order.while_scoring = ValuesOf(next->view, part);
  order.while_summing = KeysOf(next->view, part);
  return order;
}

std::int64_t SharedPass::ScanTile(const WorkItem& item, std::int64_t at, std::int64_t query,
                                  bool& is_first) {
  const std::int64_t block_index = scan_block(at);
  const HeadQueryRef& first = RefOf(query);
  const PositionedBlock* block = BlockOf(block_index, first);
  if (block == nullptr) return query + 1;
  bool continues = false;
  const TaskAnswer* asked = nullptr;
  std::int64_t tile_end = query;
  for (; tile_end < std::min(query + kTileQueries, item.end); ++tile_end) {
    const HeadQueryRef& other = RefOf(tile_end);
    const PositionedBlock* other_block = BlockOf(block_index, other);
    if (!order_.ShareScan(first, other) || other_block == nullptr ||
        (look_.CandidatesOf(query) == nullptr) != (look_.CandidatesOf(tile_end) == nullptr) ||
        !AreSameRows(*block, *other_block)) {
      break;
    }
    if (other.answer != asked) continues |= other.answer->Continues();
    asked = other.answer;
  }
  // All tasks of the tile are cancelled. Nobody reads their states, so the tile is not scanned.
  if (!continues) return tile_end;
  const int count = static_cast<int>(tile_end - query);
  const std::int64_t state = item.states_begin + query;
  SOFTLOOKUP_DCHECK(state + count <= window_size_) << state << " of " << window_size_ << " states";
  const ScanPlan plan = first.answer->head_queries().PlanOf(first.number);
  const bool looks = look_.CandidatesOf(query) != nullptr;
  ScanOrder order;
  if (!looks) order = OrderOf(item, at, query, tile_end, std::exchange(is_first, false));
  const auto scan = [&](PartialState* to_states, double* to_sums) {
    if (!looks) {
      ScanBlock(plan, *block, order, &queries_[static_cast<std::size_t>(query)], count, to_states,
                to_sums);
      return;
    }
    std::array<const Candidates*, kTileQueries> candidates;
    for (int i = 0; i < count; ++i) {
      candidates[static_cast<std::size_t>(i)] = look_.CandidatesOf(query + i);
    }
    candidate_row_count_ +=
        ScanCandidates(plan, *block, block_index, &queries_[static_cast<std::size_t>(query)],
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
    MergeStates(RefOf(query + i).answer->head_queries(), block_states[static_cast<std::size_t>(i)],
                block_sums.data() + SumsOffset(i), states[i], sums + SumsOffset(i));
  }
  return tile_end;
}

void SharedPass::MergeWindow(std::int64_t ranges_begin, std::int64_t ranges_end) {
  const std::int64_t queries = query_count();
  ForEach(queries, [&](std::int64_t q) {
    TaskAnswer& answer = *RefOf(q).answer;
    if (!answer.Continues()) return;
    const auto merge = [&](std::int64_t window_state, PartialState& state, double* sums) {
      MergeStates(answer.head_queries(), window_states_[static_cast<std::size_t>(window_state)],
                  window_sums_.get() + SumsOffset(window_state), state, sums);
    };
    std::int64_t group_state = q;
    for (std::int64_t range = ranges_begin; range < ranges_end; ++range) {
      const std::int64_t state = (range - ranges_begin) * queries + q;
      if (state != group_state) {
        merge(state, window_states_[static_cast<std::size_t>(group_state)],
              window_sums_.get() + SumsOffset(group_state));
      }
      if (!RangeOf(range).ends_group) continue;
      merge(group_state, states_[static_cast<std::size_t>(q)].state, sums_.data() + SumsOffset(q));
      group_state = state + queries;
    }
  });
}

void SharedPass::ForEach(std::int64_t count, absl::FunctionRef<void(std::int64_t)> body) {
  if (is_large_) {
    pool_.ForkJoin(count, body);
  } else {
    for (std::int64_t i = 0; i < count; ++i) body(i);
  }
}

}  // namespace softlookup
