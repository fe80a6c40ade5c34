#include "core/attention/partial_state.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/kernels/sum_values.h"

namespace softlookup {
namespace {

// Multiplies the weights of a softmax state by exp(shift), as a reference that is -shift higher
// does, and returns that: `weighted` is about logit - max_logit. shift <= 0.
double ScaleWeights(double shift, PartialState& state) {
  if (shift == 0) return 1;
  const double factor = std::exp(shift);
  state.weighted = factor == 0 ? 0 : factor * (state.weighted + state.weight * shift);
  state.weight *= factor;
  return factor;
}

}  // namespace

void Merge(Mode mode, const PartialState& later, const double* later_sum, std::int64_t value_dim,
           PartialState& state, double* sum) {
  if (later.counted_rows == 0) return;
  SOFTLOOKUP_DCHECK(!std::isnan(later.max_logit) && !std::isnan(state.max_logit));
  SOFTLOOKUP_DCHECK(mode != Mode::kSoft || later.weight > 0.99)
      << "the largest logit alone has the weight 1, not " << later.weight;
  if (state.counted_rows == 0) {
    state = later;
    if (mode != Mode::kHard) std::copy_n(later_sum, value_dim, sum);
    return;
  }
  if (mode == Mode::kSoft) {
    const double max_logit = std::max(state.max_logit, later.max_logit);
    PartialState scaled = later;
    const double later_factor = ScaleWeights(later.max_logit - max_logit, scaled);
    const double factor = ScaleWeights(state.max_logit - max_logit, state);
    kernels::CombineSums(factor, later_sum, later_factor, value_dim, sum);
    state.weight += scaled.weight;
    state.weighted += scaled.weighted;
  } else if (mode == Mode::kLinear) {
    for (std::int64_t i = 0; i < value_dim; ++i) sum[i] += later_sum[i];
    state.weight += later.weight;
  }
  if (later.max_logit > state.max_logit) state.max_position = later.max_position;
  state.max_logit = std::max(state.max_logit, later.max_logit);
  state.counted_rows += later.counted_rows;
}

QueryStats StatsOf(Mode mode, const PartialState& state) {
  QueryStats stats{.log_sum_exp = -std::numeric_limits<double>::infinity(),
                   .max_logit = state.max_logit,
                   .counted_rows = state.counted_rows,
                   .entropy = 0};
  if (mode == Mode::kSoft && state.counted_rows > 0) {
    const double ln_weight = std::log(state.weight);
    stats.log_sum_exp = state.max_logit + ln_weight;
    stats.entropy = std::max(0.0, ln_weight - state.weighted / state.weight);
  }
  return stats;
}

}  // namespace softlookup
