#include "tests/benchmarks/sampled_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/reference.h"

namespace softlookup::testing {
namespace {

double LargestMagnitude(const MatrixView& matrix) {
  float magnitude_max = 0;
  for (std::int64_t i = 0; i < matrix.rows * matrix.cols; ++i) {
    magnitude_max = std::max(magnitude_max, std::abs(matrix.data[i]));
  }
  return magnitude_max;
}

double LargestMagnitude(const std::vector<double>& components) {
  double magnitude_max = 0;
  for (const double component : components) {
    magnitude_max = std::max(magnitude_max, std::abs(component));
  }
  return magnitude_max;
}

// Returns the largest |difference| between `expected` and as many floats from `ours` on.
double LargestDifference(const std::vector<double>& expected, const float* ours) {
  double difference_max = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(ours[i] - expected[i]);
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    difference_max = std::max(difference_max, difference);
  }
  return difference_max;
}

// 0 in units of 0 is 0.
double InUnits(double difference, double unit) { return difference == 0 ? 0 : difference / unit; }

}  // namespace

SampledReference::SampledReference(const ResolvedOptions& options, const MatrixView& queries,
                                   const MatrixView& keys, const MatrixView& values,
                                   ForkJoinPool& pool) {
  const std::int64_t count = std::min(queries.rows, kSampleMax);
  const double value_magnitude = LargestMagnitude(values);
  answers_.resize(static_cast<std::size_t>(count));
  pool.ForkJoin(count, [&](std::int64_t i) {
    Answer& answer = answers_[i];
    answer.index = count == 1 ? 0 : i * (queries.rows - 1) / (count - 1);
    ReferenceAnswer reference = ReferenceAttend(
        {.options = options,
         .queries = {.data = queries.row(answer.index), .rows = 1, .cols = queries.cols},
         .keys = keys,
         .values = values});
    double weight_sum = 0;
    for (const double weight : reference.weights[0]) weight_sum += std::abs(weight);
    answer.unit = value_magnitude * weight_sum;
    answer.components = std::move(reference.values);
  });
}

double SampledReference::TrueError(const std::vector<float>& values) const {
  double error_max = 0;
  for (const Answer& answer : answers_) {
    const float* ours = values.data() + answer.index * answer.components.size();
    error_max =
        std::max(error_max, InUnits(LargestDifference(answer.components, ours), answer.unit));
  }
  return error_max;
}

double SampledReference::MaxRelativeError(const std::vector<float>& values) const {
  double error_max = 0;
  for (const Answer& answer : answers_) {
    const float* ours = values.data() + answer.index * answer.components.size();
    error_max = std::max(error_max, InUnits(LargestDifference(answer.components, ours),
                                            LargestMagnitude(answer.components)));
  }
  return error_max;
}

}  // namespace softlookup::testing
