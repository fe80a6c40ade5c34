#include "core/attention/block_scan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "core/attention/precision_path.h"
#include "core/attention/row_logits.h"
#include "core/base/check.h"
#include "core/kernels/amx/tile_scan.h"
#include "core/kernels/int8_scores.h"
#include "core/kernels/score_rows.h"
#include "core/kernels/sum_values.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;
using kernels::kScratchStride;
using kernels::kTileQueries;
using kernels::PanelRange;
using kernels::PanelsOf;
using kernels::RowRange;

// A sum of values multiplies weights by INT8 scales. If the largest product is at least this, the
// products that matter are not subnormal in float32.
constexpr double kInt8TermMin = 0x1p-100;

// Some panels of a block, packed for the matrix unit. All queries of the thread that read the same
// components share them.
struct TileOperands {
  kernels::PackedBlock operands;
  // What `operands` was packed from. As long as ScanOrder::is_first_of_block is false, the pointers
  // identify the block. Once it is true, another block may lie at the same address.
  const std::byte* full_panels = nullptr;
  const std::byte* partial_panel = nullptr;
  std::int64_t row_count = 0;
  std::int64_t key_begin = 0;
  std::int64_t value_begin = 0;
  bool is_set = false;

  bool Serves(const kernels::BlockView& block, PanelRange panels, kernels::DimRange key_dims,
              kernels::DimRange value_dims) const {
    const PanelRange have = operands.panels();
    return is_set && full_panels == block.full_panels && partial_panel == block.partial_panel &&
           row_count == block.row_count && have.begin <= panels.begin && have.end >= panels.end &&
           key_begin == key_dims.begin && operands.key_dim() == key_dims.count &&
           value_begin == value_dims.begin && operands.value_dim() == value_dims.count;
  }
};

// Most components of a value that is packed as an operand. Operands of wider values would take too
// many bytes.
constexpr std::int64_t kTileValueDimMax = 2048;

struct Scratch {
  // The scores of query q are part places[q] of float_scores if PrecisionPath::in_float32 is set
  // for q, else of `scores`. A part has kScratchStride elements, one per row.
  std::array<int, kTileQueries> places;
  std::array<double, kTileQueries * kScratchStride> scores;
  std::array<float, kTileQueries * kScratchStride> float_scores;
  std::array<double, kScratchStride> logits;
  std::array<double, kScratchStride> key_norms;
  std::array<float, kScratchStride> inverse_key_norms;  // 0 for keys of norm 0.
  std::array<double, kScratchStride> ages = {};         // All finite, as MakeLogits requires.
  std::array<float, kTileQueries * kScratchStride> weights;
  std::vector<CountedRow> rows;  // The buffer of CollectRows.
  // The operands of the block in progress. Packed when the matrix unit first scores a query.
  TileOperands tile_operands;
  kernels::PackedQueries packed_queries;
  // The queries in progress, if INT8 dots score them.
  kernels::DigitQueries digit_queries;
};

Scratch& ThreadScratch() {
  thread_local const std::unique_ptr<Scratch> scratch = std::make_unique<Scratch>();
  return *scratch;
}

// Returns the length of the run of equal items that begins at items[first]. There are `count`
// items.
template <typename Item>
int RunLength(const Item* items, int first, int count) {
  int end = first + 1;
  while (end < count && items[end] == items[first]) ++end;
  return end - first;
}

// Returns true if the matrix unit that forms the scores can also sum up the values.
bool SumsFitTiles(const ScanPlan& plan, const kernels::BlockView& block) {
  return plan.value_dims.count <= kTileValueDimMax &&
         kernels::ValuesFitTiles(block.value_magnitude);
}

// Returns operands for the matrix unit that hold at least `panels` of the block. Packs `panels`,
// unless the last operands hold them already.
const kernels::PackedBlock& Pack(const ScanPlan& plan, const kernels::BlockView& block,
                                 PanelRange panels, Scratch& scratch) {
  kernels::DimRange value_dims = plan.value_dims;
  if (!SumsFitTiles(plan, block)) value_dims.count = 0;
  TileOperands& packed = scratch.tile_operands;
  if (!packed.Serves(block, panels, plan.key_dims, value_dims)) {
    packed.operands.Pack(block, panels, plan.key_dims, value_dims);
    packed.full_panels = block.full_panels;
    packed.partial_panel = block.partial_panel;
    packed.row_count = block.row_count;
    packed.key_begin = plan.key_dims.begin;
    packed.value_begin = value_dims.begin;
    packed.is_set = true;
  }
  return packed.operands;
}

// Scores queries that all have the precision path `path`. Writes their sums over components to
// `floats` if the path is in float32, else to `doubles`.
void ScoreQueries(const ScanPlan& plan, const kernels::BlockView& block, PanelRange panels,
                  const float* const* queries, PrecisionPath path, int query_count,
                  const kernels::PanelPart& fetched, float* floats, double* doubles,
                  Scratch& scratch) {
  const kernels::Term term = TermOf(plan.options.score);
  if (path.sums == SumsBy::kTiles) {
    const kernels::PackedBlock& packed = Pack(plan, block, panels, scratch);
    scratch.packed_queries.Pack(queries, query_count, plan.key_dims.count);
    const auto score = [&](auto* sums) {
      kernels::ScoreRowsInTiles(*plan.tiles, packed, panels, scratch.packed_queries, sums);
    };
    path.in_float32 ? score(floats) : score(doubles);
  } else if (path.sums == SumsBy::kInt8Dots) {
    scratch.digit_queries.Pack(queries, query_count, plan.key_dims.count);
    const auto score = [&](auto* sums) {
      kernels::ScoreInt8Rows(kernels::DotUnit::kVnni, block, panels, plan.key_dims.begin,
                             scratch.digit_queries, sums, fetched);
    };
    path.in_float32 ? score(floats) : score(doubles);
  } else if (path.in_float32) {
    kernels::ScoreRowsFloat32(term, kernels::kFloat32Sums[path.float32_sums_index], block, panels,
                              plan.key_dims, queries, query_count, floats, fetched);
  } else if (path.sums == SumsBy::kFloat32Runs) {
    kernels::ScoreRows(term, kernels::kFloat32Sums[path.float32_sums_index], block, panels,
                       plan.key_dims, queries, query_count, doubles, fetched);
  } else {
    kernels::ScoreRowsFloat64(term, block, panels, plan.key_dims, queries, query_count, doubles);
  }
}

// Scores all queries of a tile. Queries with the same precision path are scored together. Sets
// scratch.places to where the queries' scores are.
void ScoreTile(const ScanPlan& plan, const kernels::BlockView& block, PanelRange panels,
               const HeadQuery* queries, const PrecisionPath* paths, int query_count,
               kernels::PanelPart fetched, Scratch& scratch) {
  std::array<const float*, kTileQueries> components;
  std::array<bool, kTileQueries> is_placed = {};
  int place = 0;
  for (int first = 0; first < query_count; ++first) {
    if (is_placed[first]) continue;
    const int begin = place;
    for (int q = first; q < query_count; ++q) {
      if (is_placed[q] || !(paths[q] == paths[first])) continue;
      is_placed[q] = true;
      components[place] = queries[q].components;
      scratch.places[q] = place++;
    }
    ScoreQueries(plan, block, panels, &components[begin], paths[first], place - begin, fetched,
                 scratch.float_scores.data() + begin * kScratchStride,
                 scratch.scores.data() + begin * kScratchStride, scratch);
    const SumsBy sums = paths[first].sums;
    // The kernels of these two kinds of sums have prefetched `fetched`. The kernels of other sums
    // do not prefetch, so the next kernel gets `fetched`.
    if (sums == SumsBy::kFloat32Runs || sums == SumsBy::kInt8Dots) fetched = {};
  }
}

// Adds up the values by the weights in `scratch`, for all queries of a tile. The matrix unit does
// this for the queries that it has scored, if the values fit its tiles.
void SumValuesOfTile(const ScanPlan& plan, const kernels::BlockView& block, PanelRange panels,
                     const PrecisionPath* paths, int query_count, kernels::PanelPart fetched,
                     Scratch& scratch, double* sums) {
  const std::int64_t stride = kernels::PaddedValueDim(plan.value_dims.count);
  const bool fit_tiles = SumsFitTiles(plan, block);
  std::array<bool, kTileQueries> in_tiles;
  for (int q = 0; q < query_count; ++q) {
    in_tiles[q] = fit_tiles && paths[q].sums == SumsBy::kTiles;
  }
  for (int q = 0; q < query_count;) {
    const int count = RunLength(in_tiles.data(), q, query_count);
    const float* weights = scratch.weights.data() + q * kScratchStride;
    if (in_tiles[q]) {
      kernels::SumValuesInTiles(*plan.tiles, Pack(plan, block, panels, scratch), panels, weights,
                                count, sums + q * stride);
    } else {
      kernels::SumValues(block, panels, plan.value_dims, weights, count, sums + q * stride,
                         fetched);
      fetched = {};
    }
    q += count;
  }
}

// Returns true if float32 can hold the sums of a block's values with weights of at most 1: they
// neither overflow nor lose small terms. `value` is the largest magnitude of a component.
bool FitsFloat32(StorageType storage, double value) {
  // The sum of INT8 values multiplies each weight by its row's scale first.
  if (storage == StorageType::kInt8 && value != 0 && value < kInt8TermMin * kernels::kInt8Max) {
    return false;
  }
  return (value == 0 || value >= kFloat32FactorMin) &&
         std::max(value, 1.0) * kernels::kBlockRowsMax <= kFloat32SumMax;
}

// Adds up the values in float64. Sets `weights` to 0, so that the float32 sum that follows adds
// nothing.
void SumWideValues(const ScanPlan& plan, const kernels::BlockView& block, PanelRange panels,
                   const double* wide_weights, float* weights, double* sums) {
  kernels::SumValuesFloat64(block, panels, plan.value_dims, wide_weights, sums);
  std::fill(weights + panels.begin * kPanelRows, weights + panels.end * kPanelRows, 0.0f);
}

// Calls SumWideValues if float32 cannot hold the sums with the softmax weights `weights`.
void SumWideValuesIfNeeded(const ScanPlan& plan, const kernels::BlockView& block, PanelRange panels,
                           float* weights, double* sums) {
  if (FitsFloat32(block.shape.storage, block.value_magnitude)) return;
  std::array<double, kScratchStride> wide;
  std::copy(weights + panels.begin * kPanelRows, weights + panels.end * kPanelRows,
            wide.begin() + panels.begin * kPanelRows);
  SumWideValues(plan, block, panels, wide.data(), weights, sums);
}

// Makes the weights of one query from its logits, and sets their sums and number in `state`. A
// weight is exp(logit - max_logit) in SOFT mode, and the logit itself in LINEAR mode.
//
// SOFT weights go to `weights`, for a later sum of values in float32. MakeWeights itself adds up
// the values, in float64, if float32 cannot hold that sum. It also does so in LINEAR mode, whose
// weights can cancel. It then sets `weights` to 0, so that the later sum adds nothing.
void MakeWeights(const ScanPlan& plan, const kernels::BlockView& block, PanelRange panels,
                 const double* logits, float* weights, PartialState& state, double* sums) {
  state.summed_rows = state.counted_rows;
  if (plan.options.mode == Mode::kSoft) {
    const kernels::SoftmaxSums softmax =
        kernels::MakeSoftmaxWeights(logits, state.max_logit, panels, weights);
    state.weight = softmax.weight;
    state.weighted = softmax.weighted;
    SumWideValuesIfNeeded(plan, block, panels, weights, sums);
    return;
  }
  for (std::int64_t r = panels.begin * kPanelRows; r < panels.end * kPanelRows; ++r) {
    if (logits[r] > -kInfiniteLogit) state.weight += logits[r];
  }
  SumWideValues(plan, block, panels, logits, weights, sums);
}

// Does the same as MakeWeights for a query whose path is in float32. The mode is then SOFT. Takes
// the sums over the components in place of logits. For cosines, they must already be divided by the
// keys' norms. Also sets the state's counted_rows and max_logit.
void MakeWeightsOfFloats(const ScanPlan& plan, const kernels::BlockView& block, PanelRange panels,
                         double query_norm, const float* component_sums, float* weights,
                         PartialState& state, double* sums) {
  const bool product = TermOf(plan.options.score) == kernels::Term::kProduct;
  double factor = (product ? ScaleOf(plan) : -1) / plan.options.temperature;
  if (plan.options.score == Score::kCosine) factor /= query_norm;
  const kernels::SumRange range = kernels::RangeOfSums(panels, component_sums);
  // A path is in float32 only if all rows of the block count (WeightsFitFloat32).
  state.counted_rows = static_cast<std::uint64_t>(block.row_count);
  state.summed_rows = state.counted_rows;
  const float best = factor > 0 ? range.max : range.min;
  state.max_logit = factor * best;
  const kernels::SoftmaxSums softmax =
      kernels::MakeSoftmaxWeightsOfSums(component_sums, factor, best, panels, weights);
  state.weight = softmax.weight;
  state.weighted = softmax.weighted;
  SumWideValuesIfNeeded(plan, block, panels, weights, sums);
}

// Returns the path of a query whose logits must be precise only in `fine_panels`.
PrecisionPath PathWithFinePanels(const ScanPlan& plan, const PositionedBlock& block,
                                 const HeadQuery& query, RowRange rows, std::uint64_t fine_panels) {
  if (2 * std::popcount(fine_panels) > block.view.panel_count()) return {.sums = SumsBy::kFloat64};
  PrecisionPath path = CoarsePathFor(plan, block, query, rows);
  // ScoreFinePanels writes float64 scores for some panels. So the scores of all panels must go on
  // as float64, to become float64 logits.
  if (fine_panels != 0) path.in_float32 = false;
  return path;
}

// Scores the panels whose bits are set in `panels` again, in float64, for one query.
void ScoreFinePanels(const ScanPlan& plan, const kernels::BlockView& block, std::uint64_t panels,
                     const HeadQuery& query, double* scores) {
  while (panels != 0) {
    const int begin = std::countr_zero(panels);
    const int end = begin + std::countr_one(panels >> begin);
    kernels::ScoreRowsFloat64(TermOf(plan.options.score), block, {.begin = begin, .end = end},
                              plan.key_dims, &query.components, 1, scores);
    panels &= panels + (std::uint64_t{1} << begin);  // Clears the lowest run.
  }
}

// Finds the norms of keys that the paths of a tile's queries need for cosines. Paths in float32
// take the inverses of the sketch's norms. All other paths take exact norms.
void FindKeyNorms(const ScanPlan& plan, const PositionedBlock& block, PanelRange panels,
                  const std::array<PrecisionPath, kTileQueries>& paths, int query_count,
                  Scratch& scratch) {
  const auto end = paths.begin() + query_count;
  const auto in_float32 = [](const PrecisionPath& path) { return path.in_float32; };
  if (!std::all_of(paths.begin(), end, in_float32)) {
    kernels::KeyNorms(block.view, panels, plan.key_dims, scratch.key_norms.data());
  }
  if (std::none_of(paths.begin(), end, in_float32)) return;
  const kernels::SketchView& sketch = *block.sketch;
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    std::array<float, kPanelRows> norms;
    sketch.CopyNorms(panel, norms.data());
    std::ranges::transform(norms, &scratch.inverse_key_norms[panel * kPanelRows],
                           [](float norm) { return norm > 0 ? 1 / norm : 0; });
  }
}

}  // namespace

void ScanBlock(const ScanPlan& plan, const PositionedBlock& block, const ScanOrder& order,
               const HeadQuery* queries, int query_count, PartialState* states, double* sums,
               const std::uint64_t* fine_panels) {
  const kernels::BlockView& view = block.view;
  SOFTLOOKUP_DCHECK(query_count >= 1 && query_count <= kTileQueries) << query_count << " queries";
  SOFTLOOKUP_DCHECK(view.row_count >= 0 && view.row_count <= kernels::kBlockRowsMax)
      << view.row_count << " rows";
  SOFTLOOKUP_DCHECK(plan.key_dims.begin + plan.key_dims.count <= view.shape.key_dim &&
                    plan.value_dims.begin + plan.value_dims.count <= view.shape.value_dim)
      << "a head beyond the row's components";
  Scratch& scratch = ThreadScratch();
  if (order.is_first_of_block) scratch.tile_operands.is_set = false;
  const std::int64_t sums_stride = kernels::PaddedValueDim(plan.value_dims.count);
  std::fill_n(states, query_count, PartialState{});
  if (plan.sum_values) std::fill_n(sums, query_count * sums_stride, 0.0);

  std::array<RowRange, kTileQueries> rows;
  PanelRange panels{.begin = view.panel_count(), .end = 0};
  for (int q = 0; q < query_count; ++q) {
    rows[q] = RowsOf(block, queries[q]);
    if (rows[q].begin == rows[q].end) continue;
    panels.begin = std::min(panels.begin, PanelsOf(rows[q]).begin);
    panels.end = std::max(panels.end, PanelsOf(rows[q]).end);
  }
  if (panels.begin >= panels.end) return;

  std::array<PrecisionPath, kTileQueries> paths;
  for (int q = 0; q < query_count; ++q) {
    paths[q] = fine_panels == nullptr
                   ? PrecisionPathFor(plan, block, queries[q], rows[q])
                   : PathWithFinePanels(plan, block, queries[q], rows[q], fine_panels[q]);
  }
  ScoreTile(plan, view, panels, queries, paths.data(), query_count, order.while_scoring, scratch);
  for (int q = 0; q < query_count; ++q) {
    if (fine_panels == nullptr || paths[q].sums == SumsBy::kFloat64) continue;
    ScoreFinePanels(plan, view, fine_panels[q], queries[q],
                    scratch.scores.data() + scratch.places[q] * kScratchStride);
  }
  const ResolvedOptions& options = plan.options;
  if (options.score == Score::kCosine)
    FindKeyNorms(plan, block, panels, paths, query_count, scratch);
  const double age_of_first =
      static_cast<double>(plan.age_end) - 1 - static_cast<double>(block.first_position);
  const bool ages_have_gaps = options.ln_decay != 0 && block.row_offsets != nullptr;
  if (ages_have_gaps) {
    for (std::int64_t r = panels.begin * kPanelRows; r < view.row_count; ++r) {
      scratch.ages[r] = age_of_first - block.row_offsets[r];
    }
  }
  const double* logits = scratch.logits.data();
  for (int q = 0; q < query_count; ++q) {
    const HeadQuery& query = queries[q];
    float* weights = scratch.weights.data() + q * kScratchStride;
    if (paths[q].in_float32) {
      float* sums_of_keys = scratch.float_scores.data() + scratch.places[q] * kScratchStride;
      if (options.score == Score::kCosine) {
        for (std::int64_t r = 0; r < view.row_count; ++r) {
          sums_of_keys[r] *= scratch.inverse_key_norms[r];
        }
      }
      MakeWeightsOfFloats(plan, view, panels, query.norm, sums_of_keys, weights, states[q],
                          sums + q * sums_stride);
      continue;
    }
    double* scores = scratch.scores.data() + scratch.places[q] * kScratchStride;
    kernels::LogitParams params = LogitParamsOf(plan, block, query);
    params.key_norms = scratch.key_norms.data();
    if (ages_have_gaps) params.ages = scratch.ages.data();
    const kernels::LogitSummary summary =
        kernels::MakeLogits(params, panels, rows[q], scores, scratch.logits.data());
    PartialState& state = states[q];
    state.counted_rows = static_cast<std::uint64_t>(summary.counted_rows);
    state.max_logit = summary.max;
    if (state.counted_rows > 0) {
      if (query.top_rows != nullptr) {
        CollectRows(plan, block, rows[q], summary.max, scores, logits, scratch.rows,
                    *query.top_rows);
      }
      if (query.first_rows != nullptr) {
        CollectRows(plan, block, rows[q], summary.max, scores, logits, scratch.rows,
                    *query.first_rows);
      }
      if (options.mode == Mode::kHard) {
        state.max_position = block.PositionOf(FirstRowWith(summary.max, logits, rows[q]));
      }
    }
    if (!plan.sum_values) continue;
    if (state.counted_rows > 0) {
      MakeWeights(plan, view, panels, logits, weights, state, sums + q * sums_stride);
    } else {
      std::fill(weights + panels.begin * kPanelRows, weights + panels.end * kPanelRows, 0.0f);
    }
  }
  // In LINEAR mode, MakeWeights has already added up the values.
  if (plan.sum_values && options.mode != Mode::kLinear) {
    SumValuesOfTile(plan, view, panels, paths.data(), query_count, order.while_summing, scratch,
                    sums);
  }
}

}  // namespace softlookup
