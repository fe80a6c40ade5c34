#include "core/attention/logit_bounds.h"

#include <algorithm>
#include <cmath>

#include "core/attention/precision_path.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;

// A bound is a sum of a few float32 terms, from which a reference is subtracted for a mass.
// Rounding moves the result by less than this part of `size` in LogitBounds(). `size` bounds the
// magnitudes of the terms and of the reference.
constexpr double kRounding = 0x1p-18;

bool IsDistance(Score score) { return TermOf(score) == kernels::Term::kSquaredDifference; }

// Returns the divisor of a squared distance in the sum that BoundPanels forms. For EUCLIDEAN it is
// 1, because BoundPanels takes the root of the sum and only then divides by the temperature.
double DivisorOf(const ScanPlan& plan) {
  return plan.options.score == Score::kEuclidean ? 1 : plan.options.temperature;
}

}  // namespace

void SketchBounds::Add(const kernels::SketchView& sketch) {
  error_max = std::max(error_max, sketch.error_max);
  relative_error_max = std::max(relative_error_max, sketch.relative_error_max);
  norm_max = std::max(norm_max, sketch.norm_max);
}

LogitBounds::LogitBounds(const ScanPlan& plan, const HeadQuery& query,
                         const kernels::SketchQueries& packed, int index,
                         const SketchBounds& sketches) {
  // A logit is factor * (q.k) plus terms without q.k. For cosines, k is the key divided by its
  // norm. For EUCLIDEAN, this holds for the negative squared distance instead of the logit. The
  // codes of q and k give q.k up to the error that panel_bounds.h states.
  const bool is_cosine = plan.options.score == Score::kCosine;
  double factor = ScaleOf(plan) / plan.options.temperature;
  if (is_cosine) factor /= query.norm;
  if (IsDistance(plan.options.score)) factor = 2 / DivisorOf(plan);
  const double error_max = is_cosine ? sketches.relative_error_max : sketches.error_max;
  const double norm_max = is_cosine ? 1 : sketches.norm_max;
  factors_ = {.product = static_cast<float>(factor * packed.unit(index)),
              .error = static_cast<float>(factor * packed.norm(index)),
              .norm = static_cast<float>(factor * packed.error(index))};
  // For cosines, keys are divided by their norms, so `norm` would multiply 1 for every row. The
  // offset holds this term.
  double offset = is_cosine ? factor * packed.error(index) : 0;
  double size = 2 * factor * query.norm * norm_max;
  if (IsDistance(plan.options.score)) {
    offset -= query.norm * query.norm / DivisorOf(plan);
    size += (query.norm * query.norm + norm_max * norm_max) / DivisorOf(plan);
  }
  gap_ = 2 * factor * (packed.norm(index) * error_max + packed.error(index) * norm_max) +
         2 * kRounding * size;
  factors_.offset = static_cast<float>(offset + kRounding * size);
  if (plan.options.score == Score::kEuclidean) euclidean_temperature_ = plan.options.temperature;
}

double LogitBounds::LowerOf(double upper) const {
  if (euclidean_temperature_ == 0) return upper - gap_ - std::abs(upper) * 0x1p-22;
  const double distance = upper * euclidean_temperature_;
  return -std::sqrt(distance * distance + gap_) * (1 + 0x1p-22) / euclidean_temperature_;
}

LogitRangeOfRows LogitRange(const ScanPlan& plan, const HeadQuery& query, double norm_max) {
  // A key whose cosine with the query is at least this is taken to be much like the query.
  constexpr double kLikelyCosine = 0.9;
  const double temperature = plan.options.temperature;
  if (TermOf(plan.options.score) == kernels::Term::kProduct) {
    const double most = plan.options.score == Score::kCosine
                            ? 1 / temperature
                            : ScaleOf(plan) / temperature * query.norm * norm_max;
    return {.lowest = -most, .highest = most, .likely_highest = kLikelyCosine * most};
  }
  const double farthest = query.norm + norm_max;
  // The distance from the query to a key of the same norm, at a cosine of kLikelyCosine.
  const double near = std::sqrt(2 - 2 * kLikelyCosine) * query.norm;
  if (plan.options.score == Score::kEuclidean) {
    return {.lowest = -farthest / temperature, .highest = 0, .likely_highest = -near / temperature};
  }
  return {.lowest = -farthest * farthest / temperature,
          .highest = 0,
          .likely_highest = -near * near / temperature};
}

void SketchTerms::Prepare(const ScanPlan& plan, const PositionedBlock& block) {
  const kernels::SketchView& sketch = *block.sketch;
  const std::int64_t stride = sketch.slice_bytes() / static_cast<std::int64_t>(sizeof(float));
  const auto contiguous = [](const Rows& rows) {
    return kernels::RowFloats{.first = rows.data(), .slice_stride = kPanelRows};
  };
  terms_ = {.scales = {.first = sketch.scales(0), .slice_stride = stride},
            .errors = {.first = sketch.errors(0), .slice_stride = stride},
            .norms = {.first = sketch.norms(0), .slice_stride = stride},
            .bias = {}};
  const bool is_cosine = plan.options.score == Score::kCosine;
  if (is_cosine) {
    // A key whose norm is too small to divide by gets an error of its whole norm. So its bound is
    // at least the largest cosine. The cosine with a key of norm 0 is known to be 0.
    kernels::DivideByNorms(sketch, kFloat32NormMin, scales_.data(), errors_.data());
    terms_.scales = contiguous(scales_);
    terms_.errors = contiguous(errors_);
    terms_.norms = {};
  }
  if (plan.options.score == Score::kEuclidean) {
    terms_.root_divisor = static_cast<float>(plan.options.temperature);
  }
  const bool is_distance = IsDistance(plan.options.score);
  if (!is_distance && block.row_mask == nullptr) return;
  const float divisor = static_cast<float>(DivisorOf(plan));
  for (std::int64_t panel = 0; panel < sketch.panel_count; ++panel) {
    const kernels::SketchView::PanelSlots slots = sketch.SlotsOf(panel);
    for (std::int64_t row = 0; row < kPanelRows; ++row) {
      const kernels::SketchView::Slot slot = slots.Of(row);
      const float norm = sketch.norm(slot);
      float bias = is_distance ? -norm * norm / divisor : 0;
      if (!block.MayCount(panel * kPanelRows + row)) bias = static_cast<float>(-kInfiniteLogit);
      bias_[static_cast<std::size_t>(slot.slice * kPanelRows + slot.lane)] = bias;
    }
  }
  terms_.bias = contiguous(bias_);
}

}  // namespace softlookup
