#include "core/attention/precision_path.h"

#include <cmath>
#include <limits>

#include "core/kernels/amx/tile_scan.h"
#include "core/kernels/int8_scores.h"

namespace softlookup {
namespace {

constexpr double kNoScore = -std::numeric_limits<double>::infinity();

// Heads of at most this many components are scored in float64. That costs little for so few.
// Parallel keys, which occur in few dimensions, then tie exactly.
constexpr std::int64_t kFloat64KeyDimMax = 16;

// For smaller heads or blocks, splitting queries into digits takes longer than the integers save.
constexpr std::int64_t kInt8DotsKeyDimMin = 64;
constexpr std::int64_t kInt8DotsRowsMin = 128;

// Bound on the error of a logit. It also bounds the error of the answer relative to the largest
// component of a value.
constexpr double kLogitErrorMax = 1e-5;
// Worst-case errors of a float32 run, relative to the sum of the terms' magnitudes. A squared
// difference has two more roundings than a product.
constexpr double kFloat32Error = kernels::kFloat32Roundings * 0x1p-24;
constexpr double kFloat32SquareError = (kernels::kFloat32Roundings + 2) * 0x1p-24;

double LogitError(double score_error, const ScanPlan& plan) {
  return score_error * ScaleOf(plan) / plan.options.temperature;
}

bool FitsTiles(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  const std::int64_t dim = plan.key_dims.count;
  // In LINEAR mode a weight is a logit, and an absolute error can be a large part of a small
  // weight.
  return plan.tiles.has_value() && plan.options.mode == Mode::kSoft &&
         TermOf(plan.options.score) == kernels::Term::kProduct &&
         kernels::KeysFitTiles(dim, query.magnitude, block.key_magnitude) &&
         LogitError(kernels::ScoreErrorInTiles(dim, query.magnitude, block.key_magnitude), plan) <=
             kLogitErrorMax;
}

// Returns an upper bound on |query| |key| over the rows of the block.
double NormsOf(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  return query.norm * block.key_norms_max[plan.head];
}

double Int8Error(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  return kernels::ScoreErrorInInt8(plan.key_dims.count, query.magnitude, block.key_magnitude,
                                   NormsOf(plan, block, query));
}

bool FitsInt8Dots(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  const bool pays_off =
      plan.key_dims.count >= kInt8DotsKeyDimMin && block.row_count >= kInt8DotsRowsMin;
  return pays_off && block.shape.storage == StorageType::kInt8 && kernels::VnniIsUsable() &&
         plan.options.mode == Mode::kSoft &&  // For the reason given in FitsTiles.
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
  // The sum of the terms' magnitudes is at most the product of the norms for products, by
  // Cauchy-Schwarz. For squared differences it is at most the square of `distance`.
  const double key_norm = block.key_norms_max[plan.head];
  const double distance = query.norm + key_norm;
  double error = 0;  // Upper bound for a score.
  if (product) {
    error = kFloat32Error * query.norm * key_norm;
  } else if (plan.options.score == Score::kSquaredEuclidean) {
    error = kFloat32SquareError * distance * distance;
  } else {
    error = kFloat32SquareError / 2 * distance;
  }
  return LogitError(error, plan) <= kLogitErrorMax;
}

SumsBy SumsFor(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  const ResolvedOptions& options = plan.options;
  // With these options, scores decide which rows count. A rounding error could change which rows
  // do.
  if (options.mode == Mode::kHard || options.top_k > 0 || options.min_score > kNoScore) {
    return SumsBy::kFloat64;
  }
  // A cosine does not depend on the key's norm, so norms beyond float32's range must not lose rows.
  if (options.score == Score::kCosine) return SumsBy::kFloat64;
  if (plan.key_dims.count <= kFloat64KeyDimMax) return SumsBy::kFloat64;
  if (FitsTiles(plan, block, query)) return SumsBy::kTiles;
  if (FitsInt8Dots(plan, block, query)) return SumsBy::kInt8Dots;
  return FitsFloat32Runs(plan, block, query) ? SumsBy::kFloat32Runs : SumsBy::kFloat64;
}

// Returns true if float32 sums keep the bound on errors, too.
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
