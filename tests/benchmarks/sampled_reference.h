#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_SAMPLED_REFERENCE_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_SAMPLED_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/matrix_view.h"
#include "core/parallel/fork_join_pool.h"

namespace softlookup::testing {

// The float64 answers to a few of a batch's queries, SOFT and SCALED_DOT, over rows that come batch
// after batch and are not kept: core/attention/reference.h wants all of them at once.
class SampledReference {
 public:
  static constexpr std::int64_t kSampleMax = 4;

  // `queries` must outlive this.
  SampledReference(const MatrixView& queries, std::int64_t value_dim, double temperature)
      : logit_scale_(1 / (std::sqrt(static_cast<double>(queries.cols)) * temperature)) {
    const std::int64_t count = std::min(queries.rows, kSampleMax);
    for (std::int64_t i = 0; i < count; ++i) {
      // Spread from the first to the last.
      const std::int64_t index = count == 1 ? 0 : i * (queries.rows - 1) / (count - 1);
      answers_.push_back({.index = index, .query = queries.row(index)});
      answers_.back().sums.resize(static_cast<std::size_t>(value_dim));
    }
  }

  void AddRows(const MatrixView& keys, const MatrixView& values, ForkJoinPool& pool) {
    pool.ForkJoin(static_cast<std::int64_t>(answers_.size()), [&](std::int64_t i) {
      for (std::int64_t row = 0; row < keys.rows; ++row) {
        AddRow(keys.row(row), keys.cols, values.row(row), answers_[i]);
      }
    });
  }

  // `values` is the batch's answer, [T, value_dim]. The largest |difference| of a query over the
  // largest |component| of its answer; infinite if something is not a number.
  double MaxRelativeError(const std::vector<float>& values) const {
    double error_max = 0;
    for (const Answer& answer : answers_) {
      const float* ours = values.data() + answer.index * answer.sums.size();
      double difference_max = 0, component_max = 0;
      for (std::size_t i = 0; i < answer.sums.size(); ++i) {
        const double component = answer.sums[i] / answer.weight_sum;
        const double difference = std::abs(ours[i] - component);
        if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
        difference_max = std::max(difference_max, difference);
        component_max = std::max(component_max, std::abs(component));
      }
      error_max = std::max(error_max, difference_max / component_max);
    }
    return error_max;
  }

 private:
  struct Answer {
    std::int64_t index = 0;  // In the batch.
    const float* query = nullptr;
    double logit_max = -std::numeric_limits<double>::infinity();
    // Both with weights exp(logit - logit_max).
    double weight_sum = 0;
    std::vector<double> sums;
  };

  void AddRow(const float* key, std::int64_t key_dim, const float* value, Answer& answer) const {
    double dot = 0;
    for (std::int64_t i = 0; i < key_dim; ++i) {
      dot += static_cast<double>(answer.query[i]) * key[i];
    }
    const double logit = dot * logit_scale_;
    if (logit > answer.logit_max) {
      const double shrink = std::exp(answer.logit_max - logit);
      answer.logit_max = logit;
      answer.weight_sum *= shrink;
      for (double& sum : answer.sums) sum *= shrink;
    }
    const double weight = std::exp(logit - answer.logit_max);
    answer.weight_sum += weight;
    for (std::size_t i = 0; i < answer.sums.size(); ++i) answer.sums[i] += weight * value[i];
  }

  const double logit_scale_;
  std::vector<Answer> answers_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_SAMPLED_REFERENCE_H_
