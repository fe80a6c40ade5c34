#include "core/attention/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/score_pair.h"

namespace softlookup {

ReferenceAnswer ReferenceAttend(const ReferenceTask& task) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const ResolvedOptions& options = task.options;
  const std::int64_t row_count = task.keys.rows;
  const std::int64_t key_dim = task.queries.cols / task.num_heads;
  const std::int64_t value_dim = task.values.cols / task.num_heads;
  ReferenceAnswer answer;
  answer.values.resize(task.queries.rows * task.values.cols);
  for (std::int64_t t = 0; t < task.queries.rows; ++t) {
    for (std::int64_t head = 0; head < task.num_heads; ++head) {
      std::vector<double> scores(row_count), logits(row_count), weights(row_count);
      std::vector<std::int64_t> counted;
      for (std::int64_t j = 0; j < row_count; ++j) {
        scores[j] = ScorePair(options.score, task.queries.row(t) + head * key_dim,
                              task.keys.row(j) + head * key_dim, key_dim);
        logits[j] =
            scores[j] / options.temperature +
            (static_cast<double>(task.age_end) - 1 - static_cast<double>(j)) * options.ln_decay;
        const bool counts =
            (task.allowed.empty() || task.allowed[j]) && scores[j] >= options.min_score &&
            (!options.causal || static_cast<std::uint64_t>(j) <=
                                    options.causal_offset + static_cast<std::uint64_t>(t));
        if (counts) counted.push_back(j);
      }
      if (options.top_k > 0 && counted.size() > options.top_k) {
        std::stable_sort(counted.begin(), counted.end(),
                         [&](auto a, auto b) { return logits[a] > logits[b]; });
        counted.resize(options.top_k);
        std::sort(counted.begin(), counted.end());
      }
      QueryStats stats{.log_sum_exp = -kInfinity,
                       .max_logit = -kInfinity,
                       .counted_rows = counted.size(),
                       .entropy = 0};
      std::int64_t best = -1;
      for (const std::int64_t j : counted) {
        if (logits[j] > stats.max_logit) best = j;
        stats.max_logit = std::max(stats.max_logit, logits[j]);
      }
      double weight_sum = 0;
      for (const std::int64_t j : counted) {
        weights[j] = options.mode == Mode::kLinear ? logits[j]
                     : options.mode == Mode::kHard ? (j == best ? 1.0 : 0.0)
                                                   : std::exp(logits[j] - stats.max_logit);
        weight_sum += weights[j];
      }
      if (options.mode == Mode::kSoft && !counted.empty()) {
        stats.log_sum_exp = stats.max_logit + std::log(weight_sum);
        for (const std::int64_t j : counted) {
          weights[j] /= weight_sum;
          if (weights[j] > 0) stats.entropy -= weights[j] * std::log(weights[j]);
        }
      }
      double* value = answer.values.data() + t * task.values.cols + head * value_dim;
      for (const std::int64_t j : counted) {
        const float* row = task.values.row(j) + head * value_dim;
        for (std::int64_t i = 0; i < value_dim; ++i) value[i] += weights[j] * row[i];
      }
      answer.stats.push_back(stats);
      answer.weights.push_back(std::move(weights));
      answer.scores.push_back(std::move(scores));
    }
  }
  return answer;
}

}  // namespace softlookup
