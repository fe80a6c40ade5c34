#include "softlookup/partial_answer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "core/attention/top_rows.h"
#include "core/base/check.h"
#include "core/kernels/sum_values.h"

namespace softlookup {
namespace {

// Rescales the sums of a softmax state to a largest logit of max_logit - shift. `shift` must not be
// above 0. Multiplies `weight` and left_out by exp(shift), and adjusts `weighted`. The caller must
// set max_logit. Returns exp(shift).
double ScaleWeights(double shift, PartialState& state) {
  if (shift == 0) return 1;
  const double factor = std::exp(shift);
  state.weighted = factor == 0 ? 0 : factor * (state.weighted + state.weight * shift);
  state.weight *= factor;
  state.left_out *= factor;
  return factor;
}

// Appends `later` to `earlier`. Both must be in the order `rank_by`. Then restores the order, and
// keeps the first `count_max` rows.
void MergeRanked(RankBy rank_by, std::size_t count_max, const std::vector<CountedRow>& later,
                 std::vector<CountedRow>& earlier) {
  const auto middle = static_cast<std::ptrdiff_t>(earlier.size());
  earlier.insert(earlier.end(), later.begin(), later.end());
  std::inplace_merge(
      earlier.begin(), earlier.begin() + middle, earlier.end(),
      [rank_by](const CountedRow& a, const CountedRow& b) { return ComesBefore(rank_by, a, b); });
  earlier.resize(std::min(earlier.size(), count_max));
}

void MergeRows(const AnswerShape& shape, RankedRows later, RankedRows& earlier) {
  if (later.unranked_memory) earlier.unranked_memory = later.unranked_memory;
  std::size_t best_max = std::numeric_limits<std::size_t>::max();
  if (shape.selects_rows()) {
    best_max = shape.selected_max;
  } else if (shape.weights == WeightsMode::kTop) {
    best_max = static_cast<std::size_t>(shape.top_weights);
  }
  MergeRanked(OrderOfBestRows(shape), best_max, later.best, earlier.best);
  MergeRanked(RankBy::kPosition, static_cast<std::size_t>(shape.top_weights), later.first,
              earlier.first);
}

}  // namespace

void Merge(Mode mode, const PartialState& later, absl::Span<const double> later_sum,
           PartialState& state, absl::Span<double> sum) {
  if (later.counted_rows == 0) return;
  SOFTLOOKUP_DCHECK(mode == Mode::kHard || later_sum.size() == sum.size())
      << later_sum.size() << " components into " << sum.size();
  SOFTLOOKUP_DCHECK(!std::isnan(later.max_logit) && !std::isnan(state.max_logit));
  SOFTLOOKUP_DCHECK(mode != Mode::kSoft || later.weight > 0.99)
      << "the largest logit alone has the weight 1, not " << later.weight;
  SOFTLOOKUP_DCHECK(later.summed_rows <= later.counted_rows)
      << later.summed_rows << " rows summed of " << later.counted_rows;
  SOFTLOOKUP_DCHECK(later.left_out >= 0) << later.left_out << " left out";
  if (state.counted_rows == 0) {
    state = later;
    if (mode != Mode::kHard) std::copy(later_sum.begin(), later_sum.end(), sum.begin());
    return;
  }
  if (mode == Mode::kSoft) {
    const double max_logit = std::max(state.max_logit, later.max_logit);
    PartialState scaled = later;
    const double later_factor = ScaleWeights(later.max_logit - max_logit, scaled);
    const double factor = ScaleWeights(state.max_logit - max_logit, state);
    kernels::CombineSums(factor, later_sum.data(), later_factor,
                         static_cast<std::int64_t>(sum.size()), sum.data());
    state.weight += scaled.weight;
    state.weighted += scaled.weighted;
    state.left_out += scaled.left_out;
  } else if (mode == Mode::kLinear) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += later_sum[i];
    state.weight += later.weight;
  }
  if (later.max_logit > state.max_logit) state.max_position = later.max_position;
  state.max_logit = std::max(state.max_logit, later.max_logit);
  state.counted_rows += later.counted_rows;
  state.summed_rows += later.summed_rows;
}

QueryStats StatsOf(Mode mode, const PartialState& state, double arithmetic_error) {
  QueryStats stats{.log_sum_exp = -std::numeric_limits<double>::infinity(),
                   .max_logit = state.max_logit,
                   .counted_rows = state.counted_rows,
                   .entropy = 0};
  if (state.counted_rows == 0) return stats;
  stats.summed_rows = mode == Mode::kHard ? 1 : state.summed_rows;
  if (mode == Mode::kSoft) {
    const double ln_weight = std::log(state.weight);
    stats.log_sum_exp = state.max_logit + ln_weight;
    stats.entropy = std::max(0.0, ln_weight - state.weighted / state.weight);
    stats.error_bound = arithmetic_error + 2 * state.left_out / state.weight;
  } else if (mode == Mode::kLinear) {
    stats.error_bound = kErrorBoundDefault;
  }
  return stats;
}

void WriteValues(Mode mode, const PartialState& state, absl::Span<const double> sum,
                 float* values) {
  constexpr double kMax = std::numeric_limits<float>::max();
  if (state.counted_rows == 0) {
    std::fill_n(values, sum.size(), 0.0f);
    return;
  }
  const double divisor = mode == Mode::kSoft ? state.weight : 1;
  std::transform(sum.begin(), sum.end(), values, [&](double component) {
    return static_cast<float>(std::clamp(component / divisor, -kMax, kMax));
  });
}

void Merge(const AnswerShape& shape, PartialAnswer later, PartialAnswer& earlier) {
  MergeRows(shape, std::move(later.rows), earlier.rows);
  if (later.state.counted_rows == 0) return;
  earlier.arithmetic_error = std::max(earlier.arithmetic_error, later.arithmetic_error);
  if (earlier.state.counted_rows == 0) {
    earlier.state = later.state;
    earlier.sum = std::move(later.sum);
    return;
  }
  if (shape.mode == Mode::kHard && later.state.max_logit > earlier.state.max_logit) {
    earlier.sum = std::move(later.sum);
  }
  Merge(shape.mode, later.state, later.sum, earlier.state, absl::MakeSpan(earlier.sum));
}

}  // namespace softlookup
