#include "core/attention/second_look.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "core/attention/precision_path.h"
#include "core/attention/row_logits.h"
#include "core/base/check.h"
#include "core/kernels/bound_search.h"
#include "core/kernels/score_rows.h"
#include "core/kernels/sum_values.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;
using kernels::kScratchStride;
using kernels::kTileQueries;
using kernels::PanelRange;
using kernels::RowRange;

// Index in kernels::kFloat32Sums of the sums that score a query. Unset: float64.
using Float32SumsIndex = std::optional<std::size_t>;
constexpr Float32SumsIndex kFloat64;

// Neighbouring panels that are candidates of a query and are scored alike.
struct CandidateRun {
  PanelRange panels;
  bool is_fine = false;  // Scored in float64.
};

static_assert(kernels::kBlockRowsMax / kPanelRows <= 64, "a word has a bit for each panel");

// A query with more than 1 / kDensePart of a block's panels as candidates scans the whole block.
// A panel that is scored alone takes about kDensePart times as long as a panel of a whole block.
constexpr int kDensePart = 3;

struct CandidateScratch {
  // By query: a bit for each panel that is a candidate, and one for each that is scored in float64.
  std::array<std::uint64_t, kTileQueries> kept, fine;
  // [query][row]. ScoreCandidates sets the scores of candidates.
  std::array<double, kTileQueries * kScratchStride> scores;
  // The same for only the queries that ScorePanels scores together: [index among these][row].
  // SumComponents sets it.
  std::array<double, kTileQueries * kScratchStride> panel_scores;
  std::array<double, kScratchStride> logits;
  // By row: the exact norm of the key, and its norm in the sketch.
  std::array<double, kScratchStride> key_norms, coarse_key_norms;
  std::array<float, kScratchStride> weights;
  // The rows whose values are added up, and their weights.
  std::array<std::uint16_t, kScratchStride> rows;
  std::array<double, kScratchStride> row_weights;
  std::vector<CandidateRun> runs;
  std::vector<CountedRow> collected;
  std::vector<double> block_sums;
};

CandidateScratch& ThreadCandidateScratch() {
  thread_local const std::unique_ptr<CandidateScratch> scratch =
      std::make_unique<CandidateScratch>();
  return *scratch;
}

// Sums up the products or squared differences of some queries and the rows of the panels, all
// in the same precision.
void SumComponents(const ScanPlan& plan, const kernels::BlockView& block,
                   Float32SumsIndex sums_index, PanelRange panels, const float* const* queries,
                   int query_count, double* sums) {
  const kernels::Term term = TermOf(plan.options.score);
  if (sums_index.has_value()) {
    kernels::ScoreRows(term, kernels::kFloat32Sums[*sums_index], block, panels, plan.key_dims,
                       queries, query_count, sums);
  } else {
    kernels::ScoreRowsFloat64(term, block, panels, plan.key_dims, queries, query_count, sums);
  }
}

// Finds the norms of the panels' keys, for cosines. Coarse scores take those of the sketch, which
// are rounded to float32.
void FindCandidateNorms(const ScanPlan& plan, const PositionedBlock& block, PanelRange panels,
                        bool is_fine, CandidateScratch& scratch) {
  if (plan.options.score != Score::kCosine) return;
  if (is_fine) {
    kernels::KeyNorms(block.view, panels, plan.key_dims, scratch.key_norms.data());
    return;
  }
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    std::array<float, kPanelRows> norms;
    block.sketch->CopyNorms(panel, norms.data());
    std::ranges::copy(norms, &scratch.coarse_key_norms[panel * kPanelRows]);
  }
}

// Sets scratch.kept and scratch.fine.
void FindCandidates(std::int64_t panel_count, std::int64_t block_index,
                    const Candidates* const* candidates, int query_count,
                    CandidateScratch& scratch) {
  for (int q = 0; q < query_count; ++q) {
    scratch.kept[q] = scratch.fine[q] = 0;
    if (!candidates[q]->kept_blocks.Has(block_index)) continue;
    const absl::Span<const float> bounds(candidates[q]->bounds_of(block_index),
                                         static_cast<std::size_t>(panel_count));
    scratch.kept[q] = kernels::BoundsFrom(bounds, candidates[q]->cut);
    scratch.fine[q] = kernels::BoundsFrom(bounds, candidates[q]->fine_cut);
  }
}

// The queries of a tile that keep a panel, and the queries for which the panel is scored in
// float64: a bit for each query.
struct Members {
  std::uint32_t all = 0;
  std::uint32_t fine = 0;

  bool operator==(const Members&) const = default;
};

Members MembersOf(std::int64_t panel, int query_count, const CandidateScratch& scratch) {
  Members members;
  for (int q = 0; q < query_count; ++q) {
    members.all |= static_cast<std::uint32_t>(scratch.kept[q] >> panel & 1) << q;
    members.fine |= static_cast<std::uint32_t>(scratch.fine[q] >> panel & 1) << q;
  }
  return members;
}

// Scores the panels for all members. Queries that take the same precision are scored together.
void ScorePanels(const ScanPlan& plan, const kernels::BlockView& block, PanelRange panels,
                 const HeadQuery* queries, const std::array<Float32SumsIndex, kTileQueries>& coarse,
                 Members members, CandidateScratch& scratch) {
  const auto sums_of = [&](int q) { return (members.fine >> q & 1) != 0 ? kFloat64 : coarse[q]; };
  while (members.all != 0) {
    const Float32SumsIndex sums_index = sums_of(std::countr_zero(members.all));
    std::array<const float*, kTileQueries> components;
    std::array<int, kTileQueries> numbers;
    int count = 0;
    for (std::uint32_t left = members.all; left != 0; left &= left - 1) {
      const int q = std::countr_zero(left);
      if (sums_of(q) != sums_index) continue;
      components[count] = queries[q].components;
      numbers[count++] = q;
      members.all &= ~(std::uint32_t{1} << q);
    }
    SumComponents(plan, block, sums_index, panels, components.data(), count,
                  scratch.panel_scores.data());
    const std::int64_t first = panels.begin * kPanelRows;
    for (int i = 0; i < count; ++i) {
      std::copy_n(&scratch.panel_scores[i * kScratchStride + first],
                  (panels.end - panels.begin) * kPanelRows,
                  &scratch.scores[numbers[i] * kScratchStride + first]);
    }
  }
}

// Sets scratch.scores to the sums over the components, for the queries and panels that are
// candidates. Also finds the norms of the panels' keys, for cosines. Returns the number of panels
// that some query keeps.
std::int64_t ScoreCandidates(const ScanPlan& plan, const PositionedBlock& block,
                             const HeadQuery* queries, int query_count, CandidateScratch& scratch) {
  std::array<Float32SumsIndex, kTileQueries> coarse;
  std::uint64_t kept_by_any = 0;
  for (int q = 0; q < query_count; ++q) {
    if (scratch.kept[q] != 0) coarse[q] = Float32SumsFor(plan, block, queries[q], kInfiniteLogit);
    // If no float32 sums serve the query, all its candidates are scored in float64, with exact
    // norms.
    if (coarse[q] == kFloat64) scratch.fine[q] = scratch.kept[q];
    kept_by_any |= scratch.kept[q];
  }
  for (std::uint64_t left = kept_by_any; left != 0;) {
    // Neighbouring panels that the same queries keep, in the same precision, are scored together.
    PanelRange panels = {.begin = std::countr_zero(left)};
    const Members members = MembersOf(panels.begin, query_count, scratch);
    panels.end = panels.begin;
    do {
      left &= left - 1;
      ++panels.end;
    } while (left != 0 && std::countr_zero(left) == panels.end &&
             MembersOf(panels.end, query_count, scratch) == members);
    if (members.fine != 0) FindCandidateNorms(plan, block, panels, true, scratch);
    if (members.fine != members.all) FindCandidateNorms(plan, block, panels, false, scratch);
    ScorePanels(plan, block.view, panels, queries, coarse, members, scratch);
  }
  return std::popcount(kept_by_any);
}

// Turns the run's sums over components in `scores` into scores, and sets scratch.logits.
kernels::LogitSummary LogitsOf(const ScanPlan& plan, const PositionedBlock& block,
                               const HeadQuery& query, CandidateRun run, double* scores,
                               CandidateScratch& scratch) {
  kernels::LogitParams params = LogitParamsOf(plan, block, query);
  params.key_norms = run.is_fine ? scratch.key_norms.data() : scratch.coarse_key_norms.data();
  return kernels::MakeLogits(params, run.panels, RowsOf(block, query), scores,
                             scratch.logits.data());
}

// Adds up the values of the rows with logits of at least row_cut, by their softmax weights. Also
// sets the sums of weights in `state`, which cover all rows of scratch.runs.
void SumCandidates(const ScanPlan& plan, const PositionedBlock& block, double row_cut,
                   CandidateScratch& scratch, PartialState& state, double* sums) {
  std::int64_t count = 0;
  double left_out = 0;
  for (const CandidateRun& run : scratch.runs) {
    const kernels::SoftmaxSums softmax = kernels::MakeSoftmaxWeights(
        scratch.logits.data(), state.max_logit, run.panels, scratch.weights.data());
    state.weight += softmax.weight;
    state.weighted += softmax.weighted;
    for (std::int64_t row = run.panels.begin * kPanelRows; row < run.panels.end * kPanelRows;
         ++row) {
      const double weight = scratch.weights[row];
      const bool is_summed = scratch.logits[row] >= row_cut && weight > 0;
      // If this row is not summed, the next row overwrites its entry.
      scratch.rows[count] = static_cast<std::uint16_t>(row);
      scratch.row_weights[count] = weight;
      count += is_summed ? 1 : 0;
      left_out += is_summed ? 0 : weight;
    }
  }
  // The weights of rows that are not summed are part of state.weight. So leaving out only their
  // values moves an answer half as far as leaving out the rows would (error_budget.h).
  state.left_out += left_out / 2;
  state.summed_rows = static_cast<std::uint64_t>(count);
  kernels::AddValues(block.view, plan.value_dims,
                     {scratch.rows.data(), static_cast<std::size_t>(count)},
                     scratch.row_weights.data(), sums);
}

// Scans the whole block for the queries that have many candidates in it, and clears their
// candidates. Returns false if there is no such query.
bool ScanDense(const ScanPlan& plan, const PositionedBlock& block, const HeadQuery* queries,
               int query_count, CandidateScratch& scratch, PartialState* states, double* sums) {
  std::array<HeadQuery, kTileQueries> dense_queries;
  std::array<int, kTileQueries> numbers;
  std::array<std::uint64_t, kTileQueries> fine;
  int count = 0;
  for (int q = 0; q < query_count; ++q) {
    // ScanBlock with fine_panels can score panels in float32. Where rows are ranked, that is too
    // coarse.
    if (!plan.sum_values || queries[q].top_rows != nullptr ||
        kDensePart * std::popcount(scratch.kept[q]) <= block.view.panel_count()) {
      scratch.fine[q] &= scratch.kept[q];
      continue;
    }
    dense_queries[count] = queries[q];
    fine[count] = scratch.fine[q];
    numbers[count++] = q;
    scratch.kept[q] = scratch.fine[q] = 0;
  }
  if (count == 0) return false;
  const auto stride = static_cast<std::size_t>(kernels::PaddedValueDim(plan.value_dims.count));
  std::array<PartialState, kTileQueries> block_states;
  scratch.block_sums.resize(stride * kTileQueries);
  ScanBlock(plan, block, {}, dense_queries.data(), count, block_states.data(),
            scratch.block_sums.data(), fine.data());
  for (int i = 0; i < count; ++i) {
    const int q = numbers[i];
    states[q] = block_states[i];
    std::copy_n(scratch.block_sums.data() + i * stride, stride, sums + q * stride);
  }
  return true;
}

// Turns the sums over components of one query's candidate panels, `scores`, into the query's state
// and sums. `kept` has a bit for each candidate, `fine` for each that was scored in float64.
void ScanCandidatesOfQuery(const ScanPlan& plan, const PositionedBlock& block,
                           const HeadQuery& query, double row_cut, std::uint64_t kept,
                           std::uint64_t fine, double* scores, CandidateScratch& scratch,
                           PartialState& state, double* sums) {
  scratch.runs.clear();
  for (; kept != 0; kept &= kept - 1) {
    const std::int64_t panel = std::countr_zero(kept);
    const bool is_fine = (fine >> panel & 1) != 0;
    if (!scratch.runs.empty() && scratch.runs.back().panels.end == panel &&
        scratch.runs.back().is_fine == is_fine) {
      ++scratch.runs.back().panels.end;
    } else {
      scratch.runs.push_back({.panels = {.begin = panel, .end = panel + 1}, .is_fine = is_fine});
    }
  }
  const RowRange counted = RowsOf(block, query);
  for (const CandidateRun& candidates : scratch.runs) {
    const PanelRange run = candidates.panels;
    const kernels::LogitSummary summary = LogitsOf(plan, block, query, candidates, scores, scratch);
    if (summary.counted_rows == 0) continue;
    const RowRange rows = {.begin = std::max(counted.begin, run.begin * kPanelRows),
                           .end = std::min(counted.end, run.end * kPanelRows)};
    if (query.top_rows != nullptr) {
      CollectRows(plan, block, rows, summary.max, scores, scratch.logits.data(), scratch.collected,
                  *query.top_rows);
    }
    if (query.first_rows != nullptr) {
      CollectRows(plan, block, rows, summary.max, scores, scratch.logits.data(), scratch.collected,
                  *query.first_rows);
    }
    if (plan.options.mode == Mode::kHard && summary.max > state.max_logit) {
      state.max_position = block.PositionOf(FirstRowWith(summary.max, scratch.logits.data(), rows));
    }
    state.counted_rows += static_cast<std::uint64_t>(summary.counted_rows);
    state.max_logit = std::max(state.max_logit, summary.max);
  }
  if (!plan.sum_values || state.counted_rows == 0) return;
  std::fill_n(sums, kernels::PaddedValueDim(plan.value_dims.count), 0.0);
  SumCandidates(plan, block, row_cut, scratch, state, sums);
}

}  // namespace

std::int64_t ScanCandidates(const ScanPlan& plan, const PositionedBlock& block,
                            std::int64_t block_index, const HeadQuery* queries,
                            const Candidates* const* candidates, int query_count,
                            PartialState* states, double* sums) {
  SOFTLOOKUP_DCHECK(plan.options.mode != Mode::kLinear) << "every row has a weight";
  CandidateScratch& scratch = ThreadCandidateScratch();
  FindCandidates(block.view.panel_count(), block_index, candidates, query_count, scratch);
  std::fill_n(states, query_count, PartialState{});
  const bool any_dense = ScanDense(plan, block, queries, query_count, scratch, states, sums);
  const std::int64_t panels = ScoreCandidates(plan, block, queries, query_count, scratch);
  // Without values to add up, `sums` is not used.
  const std::int64_t stride = plan.sum_values ? kernels::PaddedValueDim(plan.value_dims.count) : 0;
  for (int q = 0; q < query_count; ++q) {
    if (scratch.kept[q] == 0) continue;
    ScanCandidatesOfQuery(plan, block, queries[q], candidates[q]->row_cut, scratch.kept[q],
                          scratch.fine[q], &scratch.scores[q * kScratchStride], scratch, states[q],
                          sums + q * stride);
  }
  return any_dense ? block.view.row_count : panels * kPanelRows;
}

PanelLogits LogitsOfPanel(const ScanPlan& plan, const PositionedBlock& block,
                          const HeadQuery& query, std::int64_t panel) {
  CandidateScratch& scratch = ThreadCandidateScratch();
  const PanelRange panels = {.begin = panel, .end = panel + 1};
  FindCandidateNorms(plan, block, panels, true, scratch);
  SumComponents(plan, block.view, kFloat64, panels, &query.components, 1, scratch.scores.data());
  const kernels::LogitSummary summary = LogitsOf(
      plan, block, query, {.panels = panels, .is_fine = true}, scratch.scores.data(), scratch);
  if (summary.counted_rows == 0) return {};
  const kernels::SoftmaxSums softmax = kernels::MakeSoftmaxWeights(
      scratch.logits.data(), summary.max, panels, scratch.weights.data());
  return {.max = summary.max, .log_sum_exp = summary.max + std::log(softmax.weight)};
}

}  // namespace softlookup
