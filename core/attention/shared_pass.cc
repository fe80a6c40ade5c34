#include "core/attention/shared_pass.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "core/base/check.h"
#include "core/kernels/sum_values.h"

namespace softlookup {
namespace {

using kernels::kTileQueries;
using kernels::PanelRange;
using kernels::RowRange;

// The states that wait for their merge take about this much memory.
constexpr std::int64_t kWaveBytesMax = std::int64_t{32} << 20;
// Lanes are taken in chunks whose merged states take at most this much.
constexpr std::int64_t kChunkBytesMax = std::int64_t{4} << 20;
// Blocks are merged within groups of so many neighbours, then group after group.
constexpr std::int64_t kGroupBlocks = 8;
// Pieces of work a thread, so that all end at about the same time.
constexpr std::int64_t kUnitsPerThread = 16;
// Lanes that go over a block together, while it is in the second-level cache.
constexpr std::int64_t kUnitLanesMax = 128;

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Whether ScanBlock does the same to a row for both tasks, up to the queries.
bool AreOfOneKind(const ScanPlan& a, const ScanPlan& b) {
  const ResolvedOptions &x = a.options, &y = b.options;
  return x.score == y.score && x.temperature == y.temperature && x.mode == y.mode &&
         x.top_k == y.top_k && x.min_score == y.min_score && x.ln_decay == y.ln_decay &&
         (x.ln_decay == 0 || a.age_end == b.age_end) &&
         a.collected_rows_left == b.collected_rows_left && a.sum_values == b.sum_values;
}

bool AreSameRows(const PositionedBlock& a, const PositionedBlock& b) {
  return a.view.full_panels == b.view.full_panels && a.view.partial_panel == b.view.partial_panel &&
         a.view.row_count == b.view.row_count && a.row_offsets == b.row_offsets &&
         a.row_mask == b.row_mask;
}

Mode ModeOf(const TaskAnswer& task) {
  return task.sums_values() ? task.task().options.mode : Mode::kHard;
}

}  // namespace

SharedPass::SharedPass(absl::Span<TaskAnswer* const> tasks, ForkJoinPool& pool)
    : tasks_(tasks.begin(), tasks.end()), pool_(pool) {
  double cost = 0;
  for (const TaskAnswer* task : tasks_) {
    cost += task->task().cost();
    if (task->sums_values()) sums_stride_ = kernels::PaddedValueDim(task->head_value_dim());
  }
  is_large_ = cost > kInlineCostMax;
}

ScannedRows SharedPass::Run() {
  SortTasks();
  AlignBlocks();
  for (TakeChunk(); !lanes_.empty() && AnyContinues(); TakeChunk()) RunChunk();
  return {.rows = scanned_row_count_, .bytes = scanned_row_count_ * row_bytes_};
}

bool SharedPass::AnyContinues() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [](TaskAnswer* t) { return t->Continues(); });
}

void SharedPass::SortTasks() {
  std::vector<ScanPlan> plans;  // Of each kind.
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const ScanPlan plan = tasks_[i]->PlanOf(0);
    const auto found = std::find_if(plans.begin(), plans.end(), [&](const ScanPlan& other) {
      return AreOfOneKind(plan, other);
    });
    const auto kind = static_cast<std::size_t>(found - plans.begin());
    if (found == plans.end()) {
      plans.push_back(plan);
      kinds_.emplace_back();
    }
    kinds_[kind].push_back(i);
    kind_of_.push_back(kind);
  }
}

bool SharedPass::AskTheSame(const Lane& a, const Lane& b) const {
  return kind_of_[a.task_index] == kind_of_[b.task_index] &&
         a.task->HeadOf(a.number) == b.task->HeadOf(b.number);
}

void SharedPass::AlignBlocks() {
  std::vector<std::uint64_t> positions;
  for (const TaskAnswer* task : tasks_) {
    std::vector<std::uint64_t> own, all;
    for (const PositionedBlock& block : task->task().blocks) own.push_back(block.first_position);
    std::set_union(positions.begin(), positions.end(), own.begin(), own.end(),
                   std::back_inserter(all));
    positions = std::move(all);
  }
  blocks_.assign(positions.size(), std::vector<const PositionedBlock*>(tasks_.size()));
  block_rows_.resize(positions.size());
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    std::size_t at = 0;
    const AttentionTask& task = tasks_[i]->task();
    for (const PositionedBlock& block : task.blocks) {
      while (positions[at] != block.first_position) ++at;
      blocks_[at][i] = &block;
      row_bytes_ = static_cast<std::uint64_t>(block.view.shape.row_bytes());
      const RowRange rows = {.begin = block.FirstRowFrom(task.begin),
                             .end = block.FirstRowFrom(task.end)};
      RowRange& all = block_rows_[at];
      const bool is_first = all.end == 0;
      all = {.begin = is_first ? rows.begin : std::min(all.begin, rows.begin),
             .end = std::max(all.end, rows.end)};
    }
  }
  const auto group_of = [&](std::size_t at) {
    const auto block = std::find_if(blocks_[at].begin(), blocks_[at].end(),
                                    [](const PositionedBlock* b) { return b != nullptr; });
    return (*block)->number / kGroupBlocks;
  };
  for (std::size_t at = 1; at <= blocks_.size(); ++at) {
    if (at == blocks_.size() || group_of(at) != group_of(at - 1)) {
      group_ends_.push_back(static_cast<std::int64_t>(at));
    }
  }
}

bool SharedPass::TakeLane() {
  if (next_.kind == kinds_.size()) return false;
  const std::vector<std::size_t>& tasks = kinds_[next_.kind];
  const std::size_t task_index = tasks[next_.task];
  TaskAnswer* const task = tasks_[task_index];
  const std::int64_t query_count = task->task().query_count();
  lanes_.push_back(
      {.task = task, .task_index = task_index, .number = next_.head * query_count + next_.query});
  if (++next_.query < query_count) return true;
  next_.query = 0;
  if (++next_.task < tasks.size()) return true;
  next_.task = 0;
  if (++next_.head < task->task().num_heads) return true;
  next_.head = 0;
  ++next_.kind;
  return true;
}

void SharedPass::TakeChunk() {
  const std::int64_t lanes_max = std::max<std::int64_t>(1, kChunkBytesMax / StateBytes());
  lanes_.clear();
  std::int64_t collector_bytes = 0;
  Cursor tile = next_;  // Where the last whole tile ends.
  for (;;) {
    if (lane_count() % kTileQueries == 0) tile = next_;
    const bool is_full = lane_count() == lanes_max || collector_bytes >= kCollectorBytesMax;
    if (!is_full && TakeLane()) {
      collector_bytes += lanes_.back().task->CollectorBytes();
      continue;
    }
    if (is_full && lane_count() > kTileQueries) {
      lanes_.resize(lanes_.size() / kTileQueries * kTileQueries);
      next_ = tile;
    }
    return;
  }
}

void SharedPass::RunChunk() {
  const std::int64_t lanes = lane_count();
  collectors_.clear();
  states_.clear();
  queries_.clear();
  sums_.assign(static_cast<std::size_t>(SumsOffset(lanes)), 0.0);
  for (std::int64_t i = 0; i < lanes; ++i) {
    const Lane& lane = LaneOf(i);
    states_.push_back(lane.task->BeginLane(lane.number, collectors_, sums_.data() + SumsOffset(i)));
    queries_.push_back(states_.back().query);
  }

  PlanUnits();
  const std::int64_t strip_count = static_cast<std::int64_t>(strips_.size());
  const std::int64_t wave_strips_max =
      std::max(kWaveBytesMax / (lanes * StateBytes()), kGroupBlocks);
  for (std::int64_t begin = 0; begin < strip_count;) {
    std::int64_t end = std::min(begin + wave_strips_max, strip_count);
    while (!strips_[static_cast<std::size_t>(end - 1)].ends_group) --end;
    SOFTLOOKUP_CHECK(end > begin) << "a group of strips is larger than a wave";
    ScanWave(begin, end);
    MergeWave(begin, end);
    const Strip &first = strips_[static_cast<std::size_t>(begin)],
                &last = strips_[static_cast<std::size_t>(end - 1)];
    for (std::int64_t i = first.begin; i < last.end; ++i) {
      const RowRange rows = block_rows_[static_cast<std::size_t>(i)];
      scanned_row_count_ += static_cast<std::uint64_t>(rows.end - rows.begin);
    }
    if (!AnyContinues()) return;
    begin = end;
  }
  for (std::int64_t i = 0; i < lanes; ++i) LaneOf(i).task->CountListed(states_[i]);
  ForEach(lanes, [&](std::int64_t i) {
    const Lane& lane = LaneOf(i);
    lane.task->FinishLane(lane.number, states_[i], sums_.data() + SumsOffset(i));
  });
}

void SharedPass::PlanUnits() {
  const std::int64_t lanes = lane_count();
  const std::int64_t group_count = static_cast<std::int64_t>(group_ends_.size());
  const std::int64_t units_wanted = pool_.thread_count() * kUnitsPerThread;
  strips_.clear();
  for (unit_lanes_ = kUnitLanesMax; unit_lanes_ >= kUnitLanesMax / 4; unit_lanes_ /= 2) {
    if (group_count * CeilDiv(lanes, unit_lanes_) < units_wanted) continue;
    std::int64_t begin = 0;
    for (const std::int64_t end : group_ends_) {
      strips_.push_back({.begin = begin, .end = end, .ends_group = true});
      begin = end;
    }
    return;
  }
  const std::int64_t block_count = static_cast<std::int64_t>(blocks_.size());
  auto group_end = group_ends_.begin();
  for (std::int64_t block = 0; block < block_count; ++block) {
    const bool ends_group = block + 1 == *group_end;
    strips_.push_back({.begin = block, .end = block + 1, .ends_group = ends_group});
    if (ends_group) ++group_end;
  }
  unit_lanes_ = CeilDiv(lanes, kTileQueries) * kTileQueries;
  while (unit_lanes_ > kTileQueries && block_count * CeilDiv(lanes, unit_lanes_) < units_wanted) {
    unit_lanes_ = CeilDiv(unit_lanes_ / 2, kTileQueries) * kTileQueries;
  }
}

void SharedPass::ScanWave(std::int64_t strip_begin, std::int64_t strip_end) {
  const std::int64_t lanes = lane_count();
  const std::int64_t slots = (strip_end - strip_begin) * lanes;
  if (slots > wave_slots_) {
    wave_states_.resize(static_cast<std::size_t>(slots));
    wave_sums_.reset();
    wave_sums_ =
        std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(SumsOffset(slots)));
    wave_slots_ = slots;
  }
  const std::int64_t units_per_strip = CeilDiv(lanes, unit_lanes_);
  ForEach((strip_end - strip_begin) * units_per_strip, [&](std::int64_t unit) {
    const std::int64_t strip = unit / units_per_strip;
    const std::int64_t begin = unit % units_per_strip * unit_lanes_;
    ScanUnit({.strip = strips_[static_cast<std::size_t>(strip_begin + strip)],
              .first_slot = strip * lanes,
              .begin = begin,
              .end = std::min(begin + unit_lanes_, lanes)});
  });
}

void SharedPass::ScanUnit(const Unit& unit) {
  std::fill_n(wave_states_.begin() + unit.first_slot + unit.begin, unit.end - unit.begin,
              PartialState{});
  for (std::int64_t block = unit.strip.begin; block < unit.strip.end; ++block) {
    bool is_first = true;
    for (std::int64_t lane = unit.begin; lane < unit.end;) {
      lane = ScanTile(unit, block, lane, is_first);
    }
  }
}

ScanOrder SharedPass::OrderOf(const Unit& unit, std::int64_t block, std::int64_t lane,
                              std::int64_t end, bool is_first) const {
  ScanOrder order{.is_first_of_block = is_first};
  const Lane& first = LaneOf(lane);
  const kernels::BlockView& view = BlockOf(block, first)->view;
  // One query of FLOAT32 rows computes so little that the CPU's own prefetching does better.
  if (end - lane == 1 && view.shape.storage == StorageType::kFloat32) return order;
  if (!first.task->sums_values()) return order;
  // A core has few fetches under way at a time, so they are spread over all that it computes: the
  // scans of a block fetch the next one, a part each. One alone fetches its own block's values and
  // the next one's keys. What is missed, as of lanes that are left out, is read a little later.
  const bool is_alone = lane == unit.begin && end == unit.end;
  const bool is_fetched = block > unit.strip.begin && !is_alone;
  if (is_first && !is_fetched) {
    order.while_scoring = ValuesOf(view, PanelsOf(block_rows_[static_cast<std::size_t>(block)]));
  }
  if (block + 1 == static_cast<std::int64_t>(blocks_.size())) return order;
  // Whoever scans all lanes of a strip mostly takes the next strip, too.
  const bool is_of_all = end - lane == lane_count();
  if (block + 1 == unit.strip.end && !is_of_all) return order;
  const PositionedBlock* next = BlockOf(block + 1, first);
  if (next == nullptr) return order;
  const PanelRange all = PanelsOf(block_rows_[static_cast<std::size_t>(block + 1)]);
  const auto part_end = [&](std::int64_t lanes_end) {
    return all.begin + (all.end - all.begin) * (lanes_end - unit.begin) / (unit.end - unit.begin);
  };
  const PanelRange part{.begin = part_end(lane), .end = part_end(end)};
  if (is_fetched || !is_first) order.while_scoring = ValuesOf(next->view, part);
  order.while_summing = KeysOf(next->view, part);
  return order;
}

std::int64_t SharedPass::ScanTile(const Unit& unit, std::int64_t block, std::int64_t lane,
                                  bool& is_first) {
  const Lane& first = LaneOf(lane);
  const PositionedBlock* rows = BlockOf(block, first);
  if (rows == nullptr) return lane + 1;
  bool continues = false;
  const TaskAnswer* asked = nullptr;
  std::int64_t tile_end = lane;
  for (; tile_end < std::min(lane + kTileQueries, unit.end); ++tile_end) {
    const Lane& other = LaneOf(tile_end);
    const PositionedBlock* other_rows = BlockOf(block, other);
    if (!AskTheSame(first, other) || other_rows == nullptr || !AreSameRows(*rows, *other_rows)) {
      break;
    }
    if (other.task != asked) continues |= other.task->Continues();
    asked = other.task;
  }
  // Nobody will look at what is left out.
  if (!continues) return tile_end;
  const ScanOrder order = OrderOf(unit, block, lane, tile_end, std::exchange(is_first, false));
  const int count = static_cast<int>(tile_end - lane);
  const std::int64_t slot = unit.first_slot + lane;
  SOFTLOOKUP_DCHECK(slot + count <= wave_slots_) << slot << " of " << wave_slots_ << " slots";
  const ScanPlan plan = first.task->PlanOf(first.number);
  const HeadQuery* queries = &queries_[static_cast<std::size_t>(lane)];
  PartialState* states = &wave_states_[static_cast<std::size_t>(slot)];
  double* sums = wave_sums_.get() + SumsOffset(slot);
  if (block == unit.strip.begin) {
    ScanBlock(plan, *rows, order, queries, count, states, sums);
    return tile_end;
  }
  thread_local std::vector<double> block_sums;
  block_sums.resize(static_cast<std::size_t>(SumsOffset(kTileQueries)));
  std::array<PartialState, kTileQueries> block_states;
  ScanBlock(plan, *rows, order, queries, count, block_states.data(), block_sums.data());
  for (int i = 0; i < count; ++i) {
    Merge(ModeOf(*LaneOf(lane + i).task), block_states[static_cast<std::size_t>(i)],
          block_sums.data() + SumsOffset(i), first.task->head_value_dim(), states[i],
          sums + SumsOffset(i));
  }
  return tile_end;
}

void SharedPass::MergeWave(std::int64_t strip_begin, std::int64_t strip_end) {
  const std::int64_t lanes = lane_count();
  ForEach(lanes, [&](std::int64_t i) {
    TaskAnswer& task = *LaneOf(i).task;
    if (!task.Continues()) return;
    const auto merge = [&](std::int64_t slot, PartialState& state, double* sums) {
      Merge(ModeOf(task), wave_states_[static_cast<std::size_t>(slot)],
            wave_sums_.get() + SumsOffset(slot), task.head_value_dim(), state, sums);
    };
    std::int64_t group_slot = i;
    for (std::int64_t strip = strip_begin; strip < strip_end; ++strip) {
      const std::int64_t slot = (strip - strip_begin) * lanes + i;
      if (slot != group_slot) {
        merge(slot, wave_states_[static_cast<std::size_t>(group_slot)],
              wave_sums_.get() + SumsOffset(group_slot));
      }
      if (!strips_[static_cast<std::size_t>(strip)].ends_group) continue;
      merge(group_slot, states_[static_cast<std::size_t>(i)].state, sums_.data() + SumsOffset(i));
      group_slot = slot + lanes;
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
