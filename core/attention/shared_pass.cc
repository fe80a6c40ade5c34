#include "core/attention/shared_pass.h"

#include <algorithm>
#include <map>

#include "core/kernels/sum_values.h"

namespace softlookup {
namespace {

using kernels::kTileQueries;

// The states that wait for their merge take about this much memory.
constexpr std::int64_t kWaveBytesMax = std::int64_t{32} << 20;
// Lanes are taken in chunks whose merged states take at most this much.
constexpr std::int64_t kChunkBytesMax = std::int64_t{4} << 20;
// ... and whose best rows, before they are weighed, take at most this much (or one lane's).
constexpr std::int64_t kCollectorBytesMax = std::int64_t{64} << 20;
// Pieces of work a thread, so that all end at about the same time.
constexpr std::int64_t kUnitsPerThread = 4;

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Whether ScanBlock does the same to a row for both, up to the queries.
bool AskTheSame(const ScanPlan& a, const ScanPlan& b) {
  const ResolvedOptions &x = a.options, &y = b.options;
  return x.score == y.score && x.temperature == y.temperature && x.mode == y.mode &&
         x.top_k == y.top_k && x.min_score == y.min_score && x.ln_decay == y.ln_decay &&
         a.head == b.head && (x.ln_decay == 0 || a.age_end == b.age_end) &&
         a.collected_rows_left == b.collected_rows_left && a.sum_values == b.sum_values;
}

bool AreSameRows(const PositionedBlock& a, const PositionedBlock& b) {
  return a.view.full_panels == b.view.full_panels && a.view.partial_panel == b.view.partial_panel &&
         a.view.row_count == b.view.row_count && a.row_offsets == b.row_offsets &&
         a.row_mask == b.row_mask;
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

void SharedPass::Run() {
  SortLanes();
  AlignBlocks();
  const std::int64_t lanes = static_cast<std::int64_t>(lanes_.size());
  for (std::int64_t begin = 0; begin < lanes;) {
    const std::int64_t end = ChunkEnd(begin);
    RunChunk(begin, end);
    begin = end;
  }
}

void SharedPass::SortLanes() {
  std::vector<ScanPlan> kinds;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    TaskAnswer& task = *tasks_[i];
    const std::int64_t queries = task.task().query_count();
    for (std::int64_t lane = 0; lane < task.lane_count(); lane += queries) {  // A head's.
      const ScanPlan plan = task.PlanOf(lane);
      const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const ScanPlan& other) {
        return AskTheSame(plan, other);
      });
      const std::int64_t number = kind - kinds.begin();
      if (kind == kinds.end()) kinds.push_back(plan);
      for (std::int64_t q = 0; q < queries; ++q) {
        lanes_.push_back({.task = &task, .task_index = i, .number = lane + q, .kind = number});
      }
    }
  }
  std::stable_sort(lanes_.begin(), lanes_.end(),
                   [](const Lane& a, const Lane& b) { return a.kind < b.kind; });
}

void SharedPass::AlignBlocks() {
  std::map<std::uint64_t, std::size_t> order;  // By first position.
  for (const TaskAnswer* task : tasks_) {
    for (const PositionedBlock& block : task->task().blocks) order[block.first_position] = 0;
  }
  std::size_t next = 0;
  for (auto& [position, index] : order) index = next++;
  blocks_.assign(order.size(), std::vector<const PositionedBlock*>(tasks_.size()));
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    for (const PositionedBlock& block : tasks_[i]->task().blocks) {
      blocks_[order[block.first_position]][i] = &block;
    }
  }
}

std::int64_t SharedPass::ChunkEnd(std::int64_t begin) const {
  const std::int64_t count = static_cast<std::int64_t>(lanes_.size());
  const std::int64_t lanes_max = std::max<std::int64_t>(1, kChunkBytesMax / StateBytes());
  std::int64_t collector_bytes = 0, end = begin;
  while (end < count && end - begin < lanes_max) {
    collector_bytes += lanes_[static_cast<std::size_t>(end)].task->CollectorBytes();
    if (end > begin && collector_bytes > kCollectorBytesMax) break;
    ++end;
  }
  // Whole tiles, but for the last.
  const std::int64_t lanes = end - begin;
  return end == count || lanes < kTileQueries ? end : begin + lanes / kTileQueries * kTileQueries;
}

void SharedPass::RunChunk(std::int64_t begin, std::int64_t end) {
  const std::int64_t lanes = end - begin;
  chunk_begin_ = begin;
  collectors_.clear();
  states_.clear();
  queries_.clear();
  sums_.assign(static_cast<std::size_t>(SumsOffset(lanes)), 0.0);
  for (std::int64_t i = 0; i < lanes; ++i) {
    const Lane& lane = lanes_[static_cast<std::size_t>(begin + i)];
    states_.push_back(lane.task->BeginLane(lane.number, collectors_, sums_.data() + SumsOffset(i)));
    queries_.push_back(states_.back().query);
  }

  const std::int64_t block_count = static_cast<std::int64_t>(blocks_.size());
  const std::int64_t wave_blocks = std::clamp<std::int64_t>(
      kWaveBytesMax / (lanes * StateBytes()), 1, std::max<std::int64_t>(block_count, 1));
  wave_states_.resize(static_cast<std::size_t>(wave_blocks * lanes));
  wave_sums_.resize(static_cast<std::size_t>(SumsOffset(wave_blocks * lanes)));
  for (std::int64_t block = 0; block < block_count; block += wave_blocks) {
    const std::int64_t wave_end = std::min(block + wave_blocks, block_count);
    ScanWave(block, wave_end);
    MergeWave(wave_end - block);
    if (std::none_of(tasks_.begin(), tasks_.end(), [](TaskAnswer* t) { return t->Continues(); })) {
      return;
    }
  }
  for (std::int64_t i = 0; i < lanes; ++i) LaneOf(i).task->CountListed(states_[i]);
  ForEach(lanes, [&](std::int64_t i) {
    const Lane& lane = LaneOf(i);
    lane.task->FinishLane(lane.number, states_[i], sums_.data() + SumsOffset(i));
  });
}

void SharedPass::ScanWave(std::int64_t block_begin, std::int64_t block_end) {
  const std::int64_t lanes = chunk_lanes();
  const std::int64_t block_count = block_end - block_begin;
  // Whole blocks if there are enough of them, else parts of the lanes too.
  const std::int64_t units_wanted = pool_.thread_count() * kUnitsPerThread;
  std::int64_t unit_lanes = CeilDiv(lanes, kTileQueries) * kTileQueries;
  while (unit_lanes > kTileQueries && block_count * CeilDiv(lanes, unit_lanes) < units_wanted) {
    unit_lanes = CeilDiv(unit_lanes / 2, kTileQueries) * kTileQueries;
  }
  const std::int64_t units_per_block = CeilDiv(lanes, unit_lanes);
  ForEach(block_count * units_per_block, [&](std::int64_t unit) {
    const std::int64_t block = unit / units_per_block;
    const std::int64_t begin = unit % units_per_block * unit_lanes;
    ScanUnit(block_begin + block, block, begin, std::min(begin + unit_lanes, lanes));
  });
}

void SharedPass::ScanUnit(std::int64_t block, std::int64_t block_in_wave, std::int64_t begin,
                          std::int64_t end) {
  const std::int64_t first_slot = block_in_wave * chunk_lanes();
  for (std::int64_t lane = begin; lane < end;) {
    const Lane& first = LaneOf(lane);
    const PositionedBlock* rows = BlockOf(block, first);
    if (rows == nullptr) {
      wave_states_[static_cast<std::size_t>(first_slot + lane)] = PartialState{};
      ++lane;
      continue;
    }
    bool continues = false;
    const TaskAnswer* asked = nullptr;
    std::int64_t tile_end = lane;
    for (; tile_end < std::min(lane + kTileQueries, end); ++tile_end) {
      const Lane& other = LaneOf(tile_end);
      const PositionedBlock* other_rows = BlockOf(block, other);
      if (other.kind != first.kind || other_rows == nullptr || !AreSameRows(*rows, *other_rows)) {
        break;
      }
      if (other.task != asked) continues |= other.task->Continues();
      asked = other.task;
    }
    // Nobody will look at what is left out.
    if (continues) {
      const std::int64_t slot = first_slot + lane;
      ScanBlock(first.task->PlanOf(first.number), *rows, &queries_[static_cast<std::size_t>(lane)],
                static_cast<int>(tile_end - lane), &wave_states_[static_cast<std::size_t>(slot)],
                wave_sums_.data() + SumsOffset(slot));
    }
    lane = tile_end;
  }
}

void SharedPass::MergeWave(std::int64_t block_count) {
  const std::int64_t lanes = chunk_lanes();
  ForEach(lanes, [&](std::int64_t i) {
    TaskAnswer& task = *LaneOf(i).task;
    if (!task.Continues()) return;
    const Mode mode = task.sums_values() ? task.task().options.mode : Mode::kHard;
    for (std::int64_t block = 0; block < block_count; ++block) {
      const std::int64_t slot = block * lanes + i;
      Merge(mode, wave_states_[static_cast<std::size_t>(slot)],
            wave_sums_.data() + SumsOffset(slot), task.head_value_dim(),
            states_[static_cast<std::size_t>(i)].state, sums_.data() + SumsOffset(i));
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
