#include "core/attention/precision_path.h"

#include <cmath>
#include <limits>

#include "core/kernels/int8_scores.h"
#include "core/kernels/tile_scan.h"

namespace softlookup {
namespace {

constexpr double kNoScore = -std::numeric_limits<double>::infinity();

// Heads this small are scored in float64: it costs little beside the rest, and keys that are
// parallel in few dimensions then tie exactly.
constexpr std::int64_t kFloat64KeyDimMax = 16;

// Below these, making digits of a batch's queries and joining the sums takes longer than it saves.
constexpr std::int64_t kInt8DotsKeyDimMin = 64;
constexpr std::int64_t kInt8DotsRowsMin = 128;

// What a logit may be off by: an answer is then off by as much of the largest value component.
constexpr double kLogitErrorMax = 1e-5;
// Relative to the sum of the terms' magnitudes, in the worst case; two more for a difference.
constexpr double kFloat32Error = kernels::kFloat32Roundings * 0x1p-24;
constexpr double kFloat32SquareError = (kernels::kFloat32Roundings + 2) * 0x1p-24;

double LogitError(double score_error, const ScanPlan& plan) {
  return score_error * ScaleOf(plan) / plan.options.temperature;
}

bool FitsTiles(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  const std::int64_t dim = plan.key_dims.count;
  // Linear weights are logits: what is left out of a small one would be much of it.
  return plan.tiles.has_value() && plan.options.mode == Mode::kSoft &&
         TermOf(plan.options.score) == kernels::Term::kProduct &&
         kernels::KeysFitTiles(dim, query.magnitude, block.key_magnitude) &&
         LogitError(kernels::ScoreErrorInTiles(dim, query.magnitude, block.key_magnitude), plan) <=
             kLogitErrorMax;
}

// Bounds |query| |key|.
double NormsOf(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  return query.norm * block.key_norms_max[plan.head];
}

double Int8Error(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  return kernels::ScoreErrorInInt8(plan.key_dims.count, query.magnitude, block.key_magnitude,
                                   NormsOf(plan, block, query));
}

bool FitsInt8Dots(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  const bool pays =
      plan.key_dims.count >= kInt8DotsKeyDimMin && block.row_count >= kInt8DotsRowsMin;
  return pays && block.shape.storage == StorageType::kInt8 && kernels::VnniIsUsable() &&
         plan.options.mode == Mode::kSoft &&  // As of tiles.
         TermOf(plan.options.score) == kernels::Term::kProduct &&
         kernels::KeysFitInt8Dots(query.magnitude, block.key_magnitude) &&
         LogitError(Int8Error(plan, block, query), plan) <= kLogitErrorMax;
}

bool FitsFloat32Runs(const ScanPlan& plan, const kernels::BlockView& block,
                     const HeadQuery& query) {
  const double q = query.magnitude;
  const double k = block.key_magnitude;
  const bool product = TermOf(plan.options.score) == kernels::Term::kProduct;
  const auto fits = [](double term) {
    return term == 0 || (term >= kFloat32FactorMin && term <= kFloat32SumMax);
  };
  if (!fits(product ? q * k : (q + k) * (q + k))) return false;
  // Bounds on the terms' sum; Cauchy and Schwarz for products.
  const double key_norm = block.key_norms_max[plan.head];
  const double distance = query.norm + key_norm;
  double error = 0;  // Of a score.
  if (product) {
    error = kFloat32Error * query.norm * key_norm;
  } else if (plan.options.score == Score::kSquaredEuclidean) {
    error = kFloat32SquareError * distance * distance;
  } else {
    error = kFloat32SquareError / 2 * distance;
  }
  return LogitError(error, plan) <= kLogitErrorMax;
}

// Depends on the query and the block alone, never on the query's neighbours.
SumsBy SumsFor(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  const ResolvedOptions& options = plan.options;
  // Where a score decides which rows count, a rounding would decide it.
  if (options.mode == Mode::kHard || options.top_k > 0 || options.min_score > kNoScore) {
    return SumsBy::kFloat64;
  }
  // Cosines do not change with the size of a key, so no row may be lost to float32's range.
  if (options.score == Score::kCosine) return SumsBy::kFloat64;
  if (plan.key_dims.count <= kFloat64KeyDimMax) return SumsBy::kFloat64;
  if (FitsTiles(plan, block, query)) return SumsBy::kTiles;
  if (FitsInt8Dots(plan, block, query)) return SumsBy::kInt8Dots;
  return FitsFloat32Runs(plan, block, query) ? SumsBy::kFloat32Runs : SumsBy::kFloat64;
}

// Does float32 hold these sums to the bound?
bool SumsFitFloat32(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query,
                    SumsBy sums) {
  const std::int64_t dim = plan.key_dims.count;
  const auto keeps_bound = [&](double error) { return LogitError(error, plan) <= kLogitErrorMax; };
  switch (sums) {
    case SumsBy::kTiles: {
      const double error = kernels::ScoreErrorInTiles(dim, query.magnitude, block.key_magnitude);
      return dim <= kernels::kTileFloatDimMax &&
             keeps_bound(error + 0x1p-23 * NormsOf(plan, block, query));
    }
    case SumsBy::kInt8Dots:
      return dim <= kernels::kInt8FloatDimMax &&
             keeps_bound(Int8Error(plan, block, query) +
                         kernels::kInt8FloatError * NormsOf(plan, block, query));
    case SumsBy::kFloat32Runs:
      return dim <= kernels::kFloat32RunDims;
    case SumsBy::kFloat64:
      return false;
  }
  return false;
}

}  // namespace

kernels::Term TermOf(Score score) {
  return score == Score::kEuclidean || score == Score::kSquaredEuclidean
             ? kernels::Term::kSquaredDifference
             : kernels::Term::kProduct;
}

double ScaleOf(const ScanPlan& plan) {
  return plan.options.score == Score::kScaledDot
             ? 1 / std::sqrt(static_cast<double>(plan.key_dims.count))
             : 1;
}

PrecisionPath PrecisionPathFor(const ScanPlan& plan, const PositionedBlock& block,
                               const HeadQuery& query, kernels::RowRange rows) {
  PrecisionPath path{.sums = SumsFor(plan, block.view, query)};
  const ResolvedOptions& options = plan.options;
  const bool all_rows_count = block.row_mask == nullptr && rows.begin == 0 &&
                              rows.end == block.view.row_count &&
                              rows.end % kernels::kPanelRows == 0;
  const bool logit_is_multiple = options.ln_decay == 0 && options.score != Score::kEuclidean;
  const bool only_weights = options.mode == Mode::kSoft && plan.sum_values &&
                            query.top_rows == nullptr && query.first_rows == nullptr;
  path.in_float32 = all_rows_count && logit_is_multiple && only_weights &&
                    SumsFitFloat32(plan, block.view, query, path.sums);
  return path;
}

}  // namespace softlookup
