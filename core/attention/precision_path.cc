#include "core/attention/precision_path.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/attention/error_budget.h"
#include "core/kernels/amx/tile_scan.h"
#include "core/kernels/int8_scores.h"

namespace softlookup {
namespace {

constexpr double kNoScore = -std::numeric_limits<double>::infinity();

// Heads of at most this many components are scored in float64. Float64 costs little for so few. In
// few dimensions, keys are often multiples of each other, and in float64 their cosines tie.
constexpr std::int64_t kFloat64KeyDimMax = 16;

// For smaller heads or blocks, splitting queries into digits takes more time than integer sums
// save.
constexpr std::int64_t kInt8DotsKeyDimMin = 64;
constexpr std::int64_t kInt8DotsRowsMin = 128;

// Worst-case relative error of a float32 operation.
constexpr double kFloat32Rounding = 0x1p-24;

double LogitError(double score_error, const ScanPlan& plan) {
  return score_error * ScaleOf(plan) / plan.options.temperature;
}

bool FitsTiles(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  const std::int64_t dim = plan.key_dims.count;
  return plan.tiles.has_value() && TermOf(plan.options.score) == kernels::Term::kProduct &&
         kernels::KeysFitTiles(dim, query.magnitude, block.key_magnitude) &&
         LogitError(kernels::ScoreErrorInTiles(dim, query.magnitude, block.key_magnitude), plan) <=
             LogitErrorMax(plan.options);
}

// Returns an upper bound on |key| over the rows of the block.
double KeyNormMax(const ScanPlan& plan, const kernels::BlockView& block) {
  constexpr double kRounding = 0x1p-23;  // key_norms_max are rounded to the nearest float32.
  return block.key_norms_max[plan.head] * (1 + kRounding);
}

// Returns an upper bound on |query| |key| over the rows of the block.
double NormsOf(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  return query.norm * KeyNormMax(plan, block);
}

double Int8Error(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  return kernels::ScoreErrorInInt8(plan.key_dims.count, query.magnitude, block.key_magnitude,
                                   NormsOf(plan, block, query));
}

bool FitsInt8Dots(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query) {
  const bool pays_off =
      plan.key_dims.count >= kInt8DotsKeyDimMin && block.row_count >= kInt8DotsRowsMin;
  return pays_off && block.shape.storage == StorageType::kInt8 && kernels::VnniIsUsable() &&
         TermOf(plan.options.score) == kernels::Term::kProduct &&
         kernels::KeysFitInt8Dots(query.magnitude, block.key_magnitude) &&
         LogitError(Int8Error(plan, block, query), plan) <= LogitErrorMax(plan.options);
}

// Returns an upper bound on the error of a score whose sum is formed by kFloat32Sums[sums_index],
// not yet multiplied by ScaleOf. `key_norm` is at least the norm of the key.
double Float32Error(const ScanPlan& plan, const HeadQuery& query, double key_norm,
                    std::size_t sums_index) {
  if (plan.options.score == Score::kCosine) {
    // Three more roundings to float32: of the key's norm, which the sketch has, of its inverse, and
    // of the product with the inverse.
    return kFloat32Rounding * (query.float32_errors[sums_index] / query.norm + 3);
  }
  if (TermOf(plan.options.score) == kernels::Term::kProduct) {
    return kFloat32Rounding * query.float32_errors[sums_index] * key_norm;
  }
  // The sum of squared differences is at most distance^2. A squared difference has two more
  // roundings than a product. For EUCLIDEAN, the root halves the relative error.
  const double distance = query.norm + key_norm;
  const auto roundings =
      static_cast<double>(kernels::kFloat32Sums[sums_index].Roundings(plan.key_dims.count) + 2);
  return kFloat32Rounding * roundings *
         (plan.options.score == Score::kSquaredEuclidean ? distance * distance : distance / 2);
}

// Returns true if rounding errors of scores could do much harm. They could change which rows answer
// (HARD, top_k, min_score), or be a large part of a small weight (LINEAR).
bool NeedsExactScores(const ResolvedOptions& options) {
  return options.mode == Mode::kHard || options.mode == Mode::kLinear || options.top_k > 0 ||
         options.min_score > kNoScore;
}

PrecisionPath SumsFor(const ScanPlan& plan, const PositionedBlock& block, const HeadQuery& query) {
  const kernels::BlockView& view = block.view;
  const PrecisionPath float64{.sums = SumsBy::kFloat64};
  if (NeedsExactScores(plan.options) || plan.key_dims.count <= kFloat64KeyDimMax) return float64;
  // Cosines take no integer sums, because the error of such a cosine depends on the key's norm.
  const bool is_cosine = plan.options.score == Score::kCosine;
  if (!is_cosine && FitsTiles(plan, view, query)) return {.sums = SumsBy::kTiles};
  if (!is_cosine && FitsInt8Dots(plan, view, query)) return {.sums = SumsBy::kInt8Dots};
  const std::optional<std::size_t> sums_index =
      Float32SumsFor(plan, block, query, LogitErrorMax(plan.options));
  if (!sums_index.has_value()) return float64;
  return {.sums = SumsBy::kFloat32Runs, .float32_sums_index = *sums_index};
}

// Returns true if the sums of `path` may be written as float32. This rounds sums of integers, so
// errors of logits must then still stay within LogitErrorMax. The sum of one run is float32
// already.
bool SumsFitFloat32(const ScanPlan& plan, const kernels::BlockView& block, const HeadQuery& query,
                    const PrecisionPath& path) {
  const std::int64_t dim = plan.key_dims.count;
  const auto keeps_bound = [&](double error) {
    return LogitError(error, plan) <= LogitErrorMax(plan.options);
  };
  switch (path.sums) {
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
      return dim <= kernels::kFloat32Sums[path.float32_sums_index].run_dims;
    case SumsBy::kFloat64:
      return false;
  }
  return false;
}

// Returns true if the query's options and rows let sums become weights without float64 logits in
// between.
bool WeightsFitFloat32(const ScanPlan& plan, const PositionedBlock& block, const HeadQuery& query,
                       kernels::RowRange rows) {
  const ResolvedOptions& options = plan.options;
  const bool all_rows_count = block.row_mask == nullptr && rows.begin == 0 &&
                              rows.end == block.view.row_count &&
                              rows.end % kernels::kPanelRows == 0;
  const bool logit_is_multiple = options.ln_decay == 0 && options.score != Score::kEuclidean;
  const bool only_weights = options.mode == Mode::kSoft && plan.sum_values &&
                            query.top_rows == nullptr && query.first_rows == nullptr;
  return all_rows_count && logit_is_multiple && only_weights;
}

// Returns the value of in_float32 for a path with the sums of `path`.
bool StaysInFloat32(const ScanPlan& plan, const PositionedBlock& block, const HeadQuery& query,
                    kernels::RowRange rows, const PrecisionPath& path) {
  return WeightsFitFloat32(plan, block, query, rows) &&
         SumsFitFloat32(plan, block.view, query, path);
}

}  // namespace

double Float32LogitError(const ScanPlan& plan, const HeadQuery& query, double key_norm_max,
                         std::size_t sums_index) {
  return LogitError(Float32Error(plan, query, key_norm_max, sums_index), plan);
}

std::optional<std::size_t> Float32SumsFor(const ScanPlan& plan, const PositionedBlock& block,
                                          const HeadQuery& query, double logit_error_max) {
  const kernels::BlockView& view = block.view;
  if (NeedsExactScores(plan.options) || plan.key_dims.count <= kFloat64KeyDimMax) {
    return std::nullopt;
  }
  // A cosine does not depend on the key's norm, so a row of a small norm matters as much as others.
  // Even for the smallest norm, neither products nor the inverse of the norm may leave float32's
  // range.
  if (plan.options.score == Score::kCosine &&
      (block.sketch == nullptr || query.norm == 0 || block.sketch->norm_min < kFloat32NormMin ||
       query.magnitude * block.sketch->norm_min < kFloat32FactorMin)) {
    return std::nullopt;
  }
  const double q = query.magnitude;
  const double k = view.key_magnitude;
  const bool product = TermOf(plan.options.score) == kernels::Term::kProduct;
  const double term = product ? q * k : (q + k) * (q + k);
  if (term != 0 && (term < kFloat32FactorMin || term > kFloat32SumMax)) return std::nullopt;
  for (std::size_t sums_index = 0; sums_index < kernels::kFloat32Sums.size(); ++sums_index) {
    if (Float32LogitError(plan, query, KeyNormMax(plan, view), sums_index) <= logit_error_max) {
      return sums_index;
    }
  }
  return std::nullopt;
}

bool NeedsFloat64(const ScanPlan& plan, const HeadQuery& query, double key_norm_max) {
  constexpr std::size_t kMostPrecise = kernels::kFloat32Sums.size() - 1;
  return !plan.tiles.has_value() && !(Float32LogitError(plan, query, key_norm_max, kMostPrecise) <=
                                      LogitErrorMax(plan.options));
}

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
  PrecisionPath path = SumsFor(plan, block, query);
  path.in_float32 = StaysInFloat32(plan, block, query, rows, path);
  return path;
}

PrecisionPath CoarsePathFor(const ScanPlan& plan, const PositionedBlock& block,
                            const HeadQuery& query, kernels::RowRange rows) {
  const std::optional<std::size_t> sums_index = Float32SumsFor(plan, block, query, kInfiniteLogit);
  if (!sums_index.has_value()) return {.sums = SumsBy::kFloat64};
  PrecisionPath path{.sums = SumsBy::kFloat32Runs, .float32_sums_index = *sums_index};
  path.in_float32 = StaysInFloat32(plan, block, query, rows, path);
  return path;
}

}  // namespace softlookup
