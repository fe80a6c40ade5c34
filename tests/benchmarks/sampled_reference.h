#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_SAMPLED_REFERENCE_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_SAMPLED_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "core/attention/options.h"
#include "core/base/matrix_view.h"
#include "core/parallel/fork_join_pool.h"

namespace softlookup::testing {

// The float64 answers of core/attention/reference.h to some of a batch's queries.
class SampledReference {
 public:
  static constexpr std::int64_t kSampleMax = 64;

  // Computes the answers to at most kSampleMax of `queries`, spread from the first to the last.
  SampledReference(const ResolvedOptions& options, const MatrixView& queries,
                   const MatrixView& keys, const MatrixView& values, ForkJoinPool& pool);

  // The methods below compare `values` with the sampled answers. `values` is the batch's answer,
  // [T, value_dim]. They return infinity if something is not a number.

  // Returns the largest |difference| in units of what the weights can make of the values: the
  // largest |component| of a value times the sum of |weights|. That sum is 1 unless the mode is
  // LINEAR.
  double TrueError(const std::vector<float>& values) const;

  // Returns the largest |difference| of a query over the largest |component| of its answer.
  double MaxRelativeError(const std::vector<float>& values) const;

 private:
  struct Answer {
    std::int64_t index = 0;  // In the batch.
    double unit = 0;         // Of TrueError().
    std::vector<double> components;
  };

  std::vector<Answer> answers_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_SAMPLED_REFERENCE_H_
