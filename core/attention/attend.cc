#include "core/attention/attend.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attention/score_pair.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/kernels/sum_values.h"

namespace softlookup {
namespace {

using kernels::kTileQueries;

// The states that wait for their merge take about this much memory.
constexpr std::int64_t kWaveBytesMax = std::int64_t{32} << 20;
// Queries are taken in chunks whose merged states take at most this much.
constexpr std::int64_t kChunkBytesMax = std::int64_t{4} << 20;
// ... and whose best rows, before they are weighed, take at most this much (or one query's).
constexpr std::int64_t kCollectorBytesMax = std::int64_t{64} << 20;
// Pieces of work a thread, so that all end at about the same time.
constexpr std::int64_t kUnitsPerThread = 4;

// A listed weight on the wire: weight, score, and the position as a varint of at least a byte.
constexpr std::int64_t kWeightBytesMin = 16 + 1;
// Rows that are weighed or sorted, at most a few milliseconds' work, between two looks at the
// token.
constexpr std::size_t kRowsBetweenChecks = 1 << 15;

// Sorts, but stops and returns false once it is cancelled.
template <typename T, typename Less>
bool SortInSteps(std::vector<T>& items, const Less& less, const CancelToken& cancel) {
  const auto at = [&](std::size_t index) {
    return items.begin() + static_cast<std::ptrdiff_t>(std::min(index, items.size()));
  };
  for (std::size_t i = 0; i < items.size(); i += kRowsBetweenChecks) {
    if (!cancel.Check().ok()) return false;
    std::sort(at(i), at(i + kRowsBetweenChecks), less);
  }
  for (std::size_t run = kRowsBetweenChecks; run < items.size(); run *= 2) {
    for (std::size_t i = 0; i < items.size(); i += 2 * run) {
      if (!cancel.Check().ok()) return false;
      std::inplace_merge(at(i), at(i + run), at(i + 2 * run), less);
    }
  }
  return true;
}

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// One call of Attend. A *lane* is one query of one head; lanes are numbered head by head, so that
// neighbours share their part of the keys.
class Attention {
 public:
  Attention(const AttentionTask& task, ForkJoinPool& pool, const CancelToken& cancel)
      : task_(task),
        pool_(pool),
        cancel_(cancel),
        head_key_dim_(task.key_dim / task.num_heads),
        head_value_dim_(task.value_dim / task.num_heads),
        sums_stride_(kernels::PaddedValueDim(head_value_dim_)),
        lane_count_(task.query_count() * task.num_heads),
        selects_rows_(task.options.top_k > 0 &&
                      task.options.top_k <
                          task.end - task.begin + (task.memory.has_value() ? 1 : 0)),
        sum_values_(!selects_rows_ && task.options.mode != Mode::kHard),
        is_large_(task.cost() > kInlineCostMax),
        listed_rows_left_(task.answer_bytes_max / kWeightBytesMin + 1) {}

  absl::StatusOr<AttentionAnswer> Run() {
    answer_bytes_ = FixedBytes();
    if (answer_bytes_ > task_.answer_bytes_max) return AnswerTooLarge();
    answer_.values.resize(task_.query_count() * task_.value_dim);
    answer_.stats.resize(lane_count_);
    if (task_.options.weights != WeightsMode::kNone) answer_.weights.resize(lane_count_);
    const std::int64_t chunk_lanes = ChunkLanes();
    for (std::int64_t lane = 0; lane < lane_count_; lane += chunk_lanes) {
      SOFTLOOKUP_RETURN_IF_ERROR(RunChunk(lane, std::min(lane + chunk_lanes, lane_count_)));
    }
    if (answer_bytes_ > task_.answer_bytes_max) return AnswerTooLarge();
    return std::move(answer_);
  }

 private:
  // Some of the lanes, over all blocks.
  absl::Status RunChunk(std::int64_t begin, std::int64_t end);
  // Scans blocks [begin, end) for all lanes of the chunk into the wave's states.
  absl::Status ScanWave(std::int64_t begin, std::int64_t end);
  // Scans one block for the lanes [begin, end) of the chunk.
  // Returns false if it was cancelled before the end.
  bool ScanUnit(const PositionedBlock& block, std::int64_t block_in_wave, std::int64_t begin,
                std::int64_t end);
  // Begins the lane's state with the memory, which comes before all rows.
  void CountMemory(std::int64_t chunk_lane);
  // Merges the wave's states into the chunk's, block after block.
  void MergeWave(std::int64_t block_count);
  // These return false if they were cancelled before the end.
  bool FinishLane(std::int64_t chunk_lane);
  bool FinishSelected(std::int64_t lane, std::vector<CountedRow> rows);
  bool ListWeights(std::int64_t lane, const PartialState& state, std::vector<CountedRow> rows,
                   const std::vector<CountedRow>& others);

  HeadQuery MakeQuery(std::int64_t lane);
  std::int64_t ChunkLanes() const;
  // The least bytes that the answer takes without its listed weights.
  std::int64_t FixedBytes() const;
  // The least bytes of the chunk's listed weights.
  std::int64_t ListedBytes() const;
  absl::Status AnswerTooLarge() const;

  std::int64_t HeadOf(std::int64_t lane) const { return lane / task_.query_count(); }
  std::int64_t QueryOf(std::int64_t lane) const { return lane % task_.query_count(); }
  // Where the lane's results stand: query-major.
  std::int64_t ResultOf(std::int64_t lane) const {
    return QueryOf(lane) * task_.num_heads + HeadOf(lane);
  }
  float* ValuesOf(std::int64_t lane) {
    return answer_.values.data() + QueryOf(lane) * task_.value_dim + HeadOf(lane) * head_value_dim_;
  }
  bool IsMemory(std::uint64_t position) const {
    return task_.memory && task_.memory->position == position &&
           !(position >= task_.begin && position < task_.end);
  }
  // The lane's weight of a row in LINEAR mode.
  double LinearWeight(const CountedRow& row) const {
    return IsMemory(row.position) ? row.logit * task_.memory->multiplicity : row.logit;
  }
  // Adds the weighted value of the row at `position`, this lane's head of it, to `sums`.
  void AddValue(std::int64_t lane, std::uint64_t position, double weight,
                std::vector<double>& sums) const;
  std::int64_t SumsPerLane() const { return sum_values_ ? sums_stride_ : 0; }
  std::int64_t StateBytes() const {
    return static_cast<std::int64_t>(sizeof(PartialState)) + SumsPerLane() * 8;
  }
  // Runs body(i) for i in [0, count), here or on all threads.
  void ForEach(std::int64_t count, absl::FunctionRef<void(std::int64_t)> body) {
    if (is_large_) {
      pool_.ForkJoin(count, body);
    } else {
      for (std::int64_t i = 0; i < count; ++i) body(i);
    }
  }

  const AttentionTask& task_;
  ForkJoinPool& pool_;
  const CancelToken& cancel_;
  const std::int64_t head_key_dim_;
  const std::int64_t head_value_dim_;
  const std::int64_t sums_stride_;
  const std::int64_t lane_count_;
  // Only the top_k best rows count: they are found first and weighed at the end.
  const bool selects_rows_;
  const bool sum_values_;
  const bool is_large_;

  AttentionAnswer answer_;
  std::int64_t answer_bytes_ = 0;  // So far, at least.
  // With ALL: rows that may still be collected. An answer that needs more is refused anyway.
  std::atomic<std::int64_t> listed_rows_left_;

  // Of the chunk in progress.
  std::int64_t chunk_begin_ = 0;
  std::vector<HeadQuery> queries_;
  std::deque<TopRows> collectors_;
  // Lane by lane, where the memory is listed beside the collector's rows.
  std::vector<std::optional<CountedRow>> unranked_memories_;
  std::vector<PartialState> states_;
  std::vector<double> sums_;
  // Of the wave in progress: [block][lane of the chunk].
  std::vector<PartialState> wave_states_;
  std::vector<double> wave_sums_;
};

HeadQuery Attention::MakeQuery(std::int64_t lane) {
  const ResolvedOptions& options = task_.options;
  const std::int64_t t = QueryOf(lane);
  HeadQuery query{.components = task_.queries.row(t) + HeadOf(lane) * head_key_dim_,
                  .begin = task_.begin,
                  .end = task_.end};
  double square = 0;
  for (std::int64_t i = 0; i < head_key_dim_; ++i) {
    const float component = query.components[i];
    query.magnitude = std::max(query.magnitude, std::abs(component));
    square += static_cast<double>(component) * component;
  }
  query.norm = std::sqrt(square);
  if (options.causal) {
    const std::uint64_t offset_max = std::numeric_limits<std::uint64_t>::max() - t - 1;
    query.end = std::min(query.end, std::min(options.causal_offset, offset_max) + t + 1);
    query.begin = std::min(query.begin, query.end);
  }
  const bool lists = options.weights != WeightsMode::kNone;
  if (selects_rows_) {
    query.top_rows =
        &collectors_.emplace_back(static_cast<std::int64_t>(options.top_k), RankBy::kLogit);
  } else if (options.weights == WeightsMode::kAll) {
    query.top_rows = &collectors_.emplace_back(TopRows::kUnlimited, RankBy::kLogit);
  } else if (lists) {
    query.top_rows = &collectors_.emplace_back(options.top_weights, RankBy::kLogit);
    // Weights of 0 are listed by position, and any number of logits may give 0.
    if (options.mode != Mode::kLinear) {
      query.first_rows = &collectors_.emplace_back(options.top_weights, RankBy::kPosition);
    }
  }
  return query;
}

std::int64_t Attention::ChunkLanes() const {
  const std::int64_t rows = selects_rows_ ? static_cast<std::int64_t>(task_.options.top_k)
                                          : 2 * task_.options.top_weights;
  const std::int64_t collector_bytes = 2 * rows * static_cast<std::int64_t>(sizeof(CountedRow));
  const std::int64_t lanes = std::max<std::int64_t>(
      1, std::min(kChunkBytesMax / StateBytes(), kCollectorBytesMax / collector_bytes));
  return lanes < kTileQueries ? lanes : lanes / kTileQueries * kTileQueries;
}

absl::Status Attention::RunChunk(std::int64_t begin, std::int64_t end) {
  const std::int64_t lanes = end - begin;
  chunk_begin_ = begin;
  collectors_.clear();
  unranked_memories_.assign(lanes, std::nullopt);
  queries_.clear();
  for (std::int64_t lane = begin; lane < end; ++lane) queries_.push_back(MakeQuery(lane));
  states_.assign(lanes, PartialState{});
  sums_.assign(lanes * SumsPerLane(), 0.0);
  if (task_.memory) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) CountMemory(lane);
  }

  const std::int64_t block_count = static_cast<std::int64_t>(task_.blocks.size());
  const std::int64_t wave_blocks = std::clamp<std::int64_t>(
      kWaveBytesMax / (lanes * StateBytes()), 1, std::max<std::int64_t>(block_count, 1));
  wave_states_.resize(wave_blocks * lanes);
  wave_sums_.resize(wave_blocks * lanes * SumsPerLane());
  for (std::int64_t block = 0; block < block_count; block += wave_blocks) {
    const std::int64_t wave_end = std::min(block + wave_blocks, block_count);
    SOFTLOOKUP_RETURN_IF_ERROR(ScanWave(block, wave_end));
    MergeWave(wave_end - block);
  }
  answer_bytes_ += ListedBytes();
  // A refused answer goes on counting, to say what it would need.
  if (answer_bytes_ > task_.answer_bytes_max) return cancel_.Check();
  std::atomic<bool> stop{false};
  ForEach(lanes, [&](std::int64_t lane) {
    if (stop.load(std::memory_order_relaxed)) return;
    if (!FinishLane(lane)) stop.store(true, std::memory_order_relaxed);
  });
  return stop.load() ? cancel_.Check() : absl::OkStatus();
}

absl::Status Attention::ScanWave(std::int64_t begin, std::int64_t end) {
  const std::int64_t lanes = static_cast<std::int64_t>(queries_.size());
  // Whole blocks if there are enough of them, else parts of the lanes too.
  const std::int64_t units_wanted = pool_.thread_count() * kUnitsPerThread;
  std::int64_t unit_lanes = CeilDiv(lanes, kTileQueries) * kTileQueries;
  while (unit_lanes > kTileQueries && (end - begin) * CeilDiv(lanes, unit_lanes) < units_wanted) {
    unit_lanes = CeilDiv(unit_lanes / 2, kTileQueries) * kTileQueries;
  }
  const std::int64_t units_per_block = CeilDiv(lanes, unit_lanes);
  std::atomic<bool> stop{false};
  ForEach((end - begin) * units_per_block, [&](std::int64_t unit) {
    const std::int64_t block = unit / units_per_block;
    const std::int64_t lane_begin = unit % units_per_block * unit_lanes;
    const std::int64_t lane_end = std::min(lane_begin + unit_lanes, lanes);
    if (stop.load(std::memory_order_relaxed)) return;
    if (!ScanUnit(task_.blocks[begin + block], block, lane_begin, lane_end)) {
      stop.store(true, std::memory_order_relaxed);
    }
  });
  return stop.load() ? cancel_.Check() : absl::OkStatus();
}

bool Attention::ScanUnit(const PositionedBlock& block, std::int64_t block_in_wave,
                         std::int64_t begin, std::int64_t end) {
  const std::int64_t lanes = static_cast<std::int64_t>(queries_.size());
  std::int64_t lane = begin;
  while (lane < end) {
    if (!cancel_.Check().ok()) return false;
    const std::int64_t head = HeadOf(chunk_begin_ + lane);
    const std::int64_t head_end = (head + 1) * task_.query_count() - chunk_begin_;
    const std::int64_t tile_end = std::min({lane + kTileQueries, end, head_end});
    const ScanPlan plan{
        .options = task_.options,
        .head = head,
        .key_dims = {.begin = head * head_key_dim_, .count = head_key_dim_},
        .value_dims = {.begin = head * head_value_dim_, .count = head_value_dim_},
        .age_end = task_.end,
        .collected_rows_left = task_.options.weights == WeightsMode::kAll && !selects_rows_
                                   ? &listed_rows_left_
                                   : nullptr,
        .sum_values = sum_values_};
    const std::int64_t slot = block_in_wave * lanes + lane;
    ScanBlock(plan, block, &queries_[lane], static_cast<int>(tile_end - lane), &wave_states_[slot],
              wave_sums_.data() + slot * SumsPerLane());
    lane = tile_end;
  }
  return true;
}

void Attention::CountMemory(std::int64_t chunk_lane) {
  const MemoryPair& memory = *task_.memory;
  const ResolvedOptions& options = task_.options;
  const std::int64_t lane = chunk_begin_ + chunk_lane;
  const HeadQuery& query = queries_[chunk_lane];
  const std::uint64_t t = static_cast<std::uint64_t>(QueryOf(lane));
  if (options.causal && memory.position > t && memory.position - t > options.causal_offset) return;
  const double score = ScorePair(options.score, query.components,
                                 memory.key + HeadOf(lane) * head_key_dim_, head_key_dim_);
  if (!(score >= options.min_score)) return;
  const double age = static_cast<double>(task_.age_end) - 1 - static_cast<double>(memory.position);
  double logit = score / options.temperature + age * options.ln_decay;
  if (options.mode != Mode::kLinear) logit += std::log(memory.multiplicity);
  PartialState state{.max_logit = logit, .counted_rows = 1, .max_position = memory.position};
  state.weight = options.mode == Mode::kLinear ? logit * memory.multiplicity : 1;
  std::vector<double> sum(SumsPerLane());
  if (sum_values_) {
    const double* value = memory.value + HeadOf(lane) * head_value_dim_;
    for (std::int64_t i = 0; i < head_value_dim_; ++i) sum[i] = state.weight * value[i];
  }
  Merge(sum_values_ ? options.mode : Mode::kHard, state, sum.data(), head_value_dim_,
        states_[chunk_lane], sums_.data() + chunk_lane * SumsPerLane());
  const CountedRow row{.position = memory.position, .logit = logit, .score = score};
  if (options.mode == Mode::kLinear && !selects_rows_) {
    // Its weight is not its logit, by which the collector ranks.
    unranked_memories_[chunk_lane] = row;
    return;
  }
  if (query.top_rows != nullptr) query.top_rows->Add({&row, 1});
  if (query.first_rows != nullptr) query.first_rows->Add({&row, 1});
}

void Attention::MergeWave(std::int64_t block_count) {
  const std::int64_t lanes = static_cast<std::int64_t>(queries_.size());
  ForEach(lanes, [&](std::int64_t lane) {
    for (std::int64_t block = 0; block < block_count; ++block) {
      const std::int64_t slot = block * lanes + lane;
      Merge(sum_values_ ? task_.options.mode : Mode::kHard, wave_states_[slot],
            wave_sums_.data() + slot * SumsPerLane(), head_value_dim_, states_[lane],
            sums_.data() + lane * SumsPerLane());
    }
  });
}

void Attention::AddValue(std::int64_t lane, std::uint64_t position, double weight,
                         std::vector<double>& sums) const {
  const std::int64_t offset = HeadOf(lane) * head_value_dim_;
  if (IsMemory(position)) {
    const double* value = task_.memory->value + offset;
    for (std::int64_t i = 0; i < head_value_dim_; ++i) sums[i] += weight * value[i];
    return;
  }
  const auto after = std::upper_bound(
      task_.blocks.begin(), task_.blocks.end(), position,
      [](std::uint64_t p, const PositionedBlock& block) { return p < block.first_position; });
  const PositionedBlock& block = *(after - 1);
  const float* value = block.view.value(block.FirstRowFrom(position)) + offset;
  for (std::int64_t i = 0; i < head_value_dim_; ++i) sums[i] += weight * value[i];
}

float ToFloat32(double value) {
  constexpr double kMax = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kMax, kMax));
}

bool Attention::FinishLane(std::int64_t chunk_lane) {
  if (!cancel_.Check().ok()) return false;
  const std::int64_t lane = chunk_begin_ + chunk_lane;
  const HeadQuery& query = queries_[chunk_lane];
  if (selects_rows_) return FinishSelected(lane, query.top_rows->Take());

  const PartialState& state = states_[chunk_lane];
  const Mode mode = task_.options.mode;
  float* values = ValuesOf(lane);
  if (state.counted_rows == 0) {
    std::fill_n(values, head_value_dim_, 0.0f);
  } else if (mode == Mode::kHard) {
    std::vector<double> sums_scratch(head_value_dim_);
    AddValue(lane, state.max_position, 1, sums_scratch);
    for (std::int64_t i = 0; i < head_value_dim_; ++i) values[i] = ToFloat32(sums_scratch[i]);
  } else {
    const double* sums = sums_.data() + chunk_lane * SumsPerLane();
    const double divisor = mode == Mode::kSoft ? state.weight : 1;
    for (std::int64_t i = 0; i < head_value_dim_; ++i) values[i] = ToFloat32(sums[i] / divisor);
  }
  answer_.stats[ResultOf(lane)] = StatsOf(mode, state);
  if (task_.options.weights == WeightsMode::kNone) return true;
  std::vector<CountedRow> others;
  if (query.first_rows != nullptr) others = query.first_rows->Take();
  if (unranked_memories_[chunk_lane]) others.push_back(*unranked_memories_[chunk_lane]);
  return ListWeights(lane, state, query.top_rows->Take(), others);
}

// Weighs the rows that top_k left, in float64 and in the order of their logits.
bool Attention::FinishSelected(std::int64_t lane, std::vector<CountedRow> rows) {
  const Mode mode = task_.options.mode;
  const auto comes_first = [](const CountedRow& a, const CountedRow& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.position < b.position;
  };
  if (!SortInSteps(rows, comes_first, cancel_)) return false;
  PartialState state{.counted_rows = rows.size()};
  std::vector<double> sums(head_value_dim_, 0.0);
  if (!rows.empty()) {
    state.max_logit = rows.front().logit;
    state.max_position = rows.front().position;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % kRowsBetweenChecks == 0 && !cancel_.Check().ok()) return false;
    const CountedRow& row = rows[i];
    const double shifted = row.logit - state.max_logit;
    const double weight = mode == Mode::kLinear ? LinearWeight(row)
                          : mode == Mode::kHard ? (row.position == state.max_position ? 1.0 : 0.0)
                                                : std::exp(shifted);
    state.weight += weight;
    if (mode == Mode::kSoft && weight > 0) state.weighted += weight * shifted;
    AddValue(lane, row.position, weight, sums);
  }
  const double divisor = mode == Mode::kSoft && !rows.empty() ? state.weight : 1;
  float* values = ValuesOf(lane);
  for (std::int64_t i = 0; i < head_value_dim_; ++i) values[i] = ToFloat32(sums[i] / divisor);
  answer_.stats[ResultOf(lane)] = StatsOf(mode, state);
  if (task_.options.weights == WeightsMode::kNone) return true;
  return ListWeights(lane, state, std::move(rows), {});
}

// Lists the weights of the best rows, `rows`, and of others that may be among them: the first ones,
// which stand in for rows of weight 0, and a memory.
bool Attention::ListWeights(std::int64_t lane, const PartialState& state,
                            std::vector<CountedRow> rows, const std::vector<CountedRow>& others) {
  const Mode mode = task_.options.mode;
  const double log_sum_exp = answer_.stats[ResultOf(lane)].log_sum_exp;
  const auto weigh = [&](const CountedRow& row) {
    const double weight = mode == Mode::kLinear ? LinearWeight(row)
                          : mode == Mode::kHard ? (row.position == state.max_position ? 1.0 : 0.0)
                                                : std::min(1.0, std::exp(row.logit - log_sum_exp));
    return WeightedRow{.position = row.position, .weight = weight, .score = row.score};
  };
  QueryWeights& weights = answer_.weights[ResultOf(lane)];
  weights.rows.reserve(rows.size() + others.size());
  for (const CountedRow& row : rows) weights.rows.push_back(weigh(row));
  for (const CountedRow& row : others) weights.rows.push_back(weigh(row));
  const auto comes_first = [](const WeightedRow& a, const WeightedRow& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.position < b.position;
  };
  if (!SortInSteps(weights.rows, comes_first, cancel_)) return false;
  const auto same_row = [](const auto& a, const auto& b) { return a.position == b.position; };
  weights.rows.erase(std::unique(weights.rows.begin(), weights.rows.end(), same_row),
                     weights.rows.end());
  if (task_.options.weights == WeightsMode::kTop) {
    weights.rows.resize(std::min<std::size_t>(weights.rows.size(), task_.options.top_weights));
  }
  if (weights.rows.size() == state.counted_rows) return true;  // Nothing remains.
  double listed = 0;
  for (const WeightedRow& row : weights.rows) listed += row.weight;
  const double total = mode == Mode::kLinear ? state.weight : 1;
  weights.remaining_weight = mode == Mode::kLinear ? total - listed : std::max(0.0, total - listed);
  return true;
}

std::int64_t Attention::FixedBytes() const {
  // Two of the statistics' doubles, and a message's tag and length.
  constexpr std::int64_t kStatsBytes = 2 + 2 * 9;
  constexpr std::int64_t kListBytes = 2;
  const bool lists = task_.options.weights != WeightsMode::kNone;
  return task_.query_count() * task_.value_dim * 4 +
         lane_count_ * (kStatsBytes + (lists ? kListBytes : 0));
}

std::int64_t Attention::ListedBytes() const {
  const ResolvedOptions& options = task_.options;
  if (options.weights == WeightsMode::kNone) return 0;
  std::uint64_t listed_max = std::numeric_limits<std::uint64_t>::max();
  if (options.weights == WeightsMode::kTop) listed_max = options.top_weights;
  if (selects_rows_) listed_max = std::min(listed_max, options.top_k);
  std::int64_t listed = 0;
  for (const PartialState& state : states_) {
    listed += static_cast<std::int64_t>(std::min(state.counted_rows, listed_max));
  }
  return listed * kWeightBytesMin;
}

absl::Status Attention::AnswerTooLarge() const {
  return MakeError(
      reasons::kAnswerTooLarge,
      absl::StrCat("The answer would need at least ", answer_bytes_, " bytes; the limit is ",
                   task_.answer_bytes_max, ". Ask for fewer queries or fewer weights"),
      {{"bytes", absl::StrCat(answer_bytes_)}, {"limit", absl::StrCat(task_.answer_bytes_max)}});
}

}  // namespace

absl::StatusOr<AttentionAnswer> Attend(const AttentionTask& task, ForkJoinPool& pool,
                                       const CancelToken& cancel) {
  SOFTLOOKUP_RETURN_IF_ERROR(cancel.Check());
  if (task.query_count() == 0) return AttentionAnswer{};
  return Attention(task, pool, cancel).Run();
}

}  // namespace softlookup
