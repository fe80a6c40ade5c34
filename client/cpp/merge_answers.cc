#include "softlookup/merge_answers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cpp/query_weights.h"
#include "client/cpp/status_macros.h"

namespace softlookup {
namespace {

constexpr double kNoRows = -std::numeric_limits<double>::infinity();

// One entry of a QueryWeights.
struct ListedRow {
  std::uint64_t position = 0;
  std::uint64_t id = 0;
  bool has_id = false;
  double weight = 0;
  double score = 0;
  std::uint32_t part = 0;
};

std::vector<ListedRow> ListedRowsOf(const LookupAnswer& answer, std::size_t list) {
  const v1::QueryWeights& weights = answer.weights[list];
  std::vector<ListedRow> rows(weights.positions_size());
  for (int i = 0; i < weights.positions_size(); ++i) {
    const bool may_have_id = weights.ids_size() > 0;
    rows[i] = {.position = weights.positions(i),
               .id = may_have_id ? weights.ids(i) : 0,
               .has_id = weights.has_ids_size() > 0 ? weights.has_ids(i) : may_have_id,
               .weight = weights.weights(i),
               .score = weights.scores(i),
               .part = answer.weight_parts.empty() ? 0 : answer.weight_parts[list][i]};
  }
  return rows;
}

bool IsBefore(const ListedRow& a, const ListedRow& b) {
  return std::tie(b.weight, a.part, a.position) < std::tie(a.weight, b.part, b.position);
}

v1::QueryWeights ToProto(const std::vector<ListedRow>& rows, double remaining) {
  const auto with_id =
      std::count_if(rows.begin(), rows.end(), [](const ListedRow& row) { return row.has_id; });
  const bool some_lack_ids = with_id < static_cast<std::ptrdiff_t>(rows.size());
  v1::QueryWeights weights;
  for (const ListedRow& row : rows) {
    weights.add_positions(row.position);
    if (with_id > 0) weights.add_ids(row.id);
    if (with_id > 0 && some_lack_ids) weights.add_has_ids(row.has_id);
    weights.add_weights(row.weight);
    weights.add_scores(row.score);
  }
  weights.set_remaining_weight(remaining);
  return weights;
}

// ln(exp(a) + exp(b)), of numbers that are finite or kNoRows.
double LogAddExp(double a, double b) {
  const double larger = std::max(a, b);
  return larger == kNoRows ? kNoRows : larger + std::log1p(std::exp(std::min(a, b) - larger));
}

absl::Status Refuse(std::size_t index, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("MergeAnswers: answers[", index, "] ", what));
}

// Returns InvalidArgument if the lists in `answer` do not fit each other or have numbers that
// cannot be merged. `index` is for the message.
absl::Status CheckOne(const LookupAnswer& answer, std::size_t index) {
  const FloatMatrix& values = answer.values;
  const std::size_t lists = answer.stats.size();
  if (values.data.size() != std::uint64_t{values.rows} * values.cols) {
    return Refuse(index, "has values of another size than rows * cols");
  }
  if (values.rows == 0 ? lists > 0 : lists == 0 || lists % values.rows != 0) {
    return Refuse(index, "needs as many stats as queries times heads");
  }
  if (values.rows > 0 && values.cols % (lists / values.rows) != 0) {
    return Refuse(index, "has a number of columns that is no multiple of the number of heads");
  }
  for (const v1::QueryStats& stats : answer.stats) {
    const double lse = stats.log_sum_exp();
    if (std::isnan(lse) || lse == std::numeric_limits<double>::infinity()) {
      return Refuse(index, "has a log_sum_exp that is no number");
    }
    if (lse == kNoRows && !stats.empty()) {
      return Refuse(index, "has no log_sum_exp: only answers of MODE_SOFT can be merged");
    }
  }
  bool fits = answer.weights.empty() || answer.weights.size() == lists;
  fits &= answer.weight_parts.empty() || answer.weight_parts.size() == answer.weights.size();
  for (std::size_t i = 0; fits && i < answer.weights.size(); ++i) {
    fits &= client_internal::ListsFit(answer.weights[i]);
    fits &= answer.weight_parts.empty() ||
            answer.weight_parts[i].size() ==
                static_cast<std::size_t>(answer.weights[i].positions_size());
  }
  if (!fits) return Refuse(index, "has lists of weights that do not fit each other");
  if (!std::all_of(answer.weights.begin(), answer.weights.end(),
                   client_internal::WeightsAreFinite)) {
    return Refuse(index, "has a weight that is not finite");
  }
  return absl::OkStatus();
}

absl::Status CheckParts(absl::Span<const LookupAnswer* const> answers) {
  if (answers.empty()) return absl::InvalidArgumentError("MergeAnswers needs at least one answer");
  const LookupAnswer& first = *answers[0];
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const LookupAnswer& answer = *answers[i];
    CLIENT_RETURN_IF_ERROR(CheckOne(answer, i));
    if (answer.values.rows != first.values.rows || answer.values.cols != first.values.cols ||
        answer.stats.size() != first.stats.size()) {
      return Refuse(i, "has another number of queries, columns or heads than answers[0]");
    }
  }
  return absl::OkStatus();
}

// What part of all weight two answers to one query in one head have. 0 for one over no rows.
struct Shares {
  Shares(double lse, double other_lse)
      : total(LogAddExp(lse, other_lse)),
        mine(lse > kNoRows ? std::exp(lse - total) : 0),
        others(other_lse > kNoRows ? std::exp(other_lse - total) : 0) {}

  // The mean by share of what two answers have. What has no share adds nothing, not even NaN.
  double Mean(double my_number, double others_number) const {
    return (mine > 0 ? my_number * mine : 0) + (others > 0 ? others_number * others : 0);
  }

  double total;  // The log-sum-exp of both.
  double mine;
  double others;
};

// The merged answer of those that were added, in float64. At first, that over no rows.
class RunningMerge {
 public:
  // For answers as large as `shape`.
  RunningMerge(const LookupAnswer& shape, bool has_weights)
      : rows_(shape.values.rows),
        cols_(shape.values.cols),
        values_(shape.values.data.size()),
        stats_(shape.stats.size()),
        lists_(has_weights ? shape.stats.size() : 0),
        remaining_(lists_.size()) {
    for (v1::QueryStats& stats : stats_) {
      stats.set_log_sum_exp(kNoRows);
      stats.set_max_logit(std::numeric_limits<double>::quiet_NaN());
      stats.set_empty(true);
    }
  }

  // `answer` must have passed CheckParts().
  void Add(const LookupAnswer& answer) {
    const std::size_t width = stats_.empty() ? 0 : values_.size() / stats_.size();
    for (std::size_t i = 0; i < stats_.size(); ++i) {
      const Shares shares(stats_[i].log_sum_exp(), answer.stats[i].log_sum_exp());
      for (std::size_t v = i * width; v < (i + 1) * width; ++v) {
        values_[v] = shares.Mean(values_[v], answer.values.data[v]);
      }
      if (!lists_.empty()) AddRows(answer, i, shares);
      AddStats(answer.stats[i], shares, answer.log_sum_exp_error, &stats_[i]);
    }
    log_sum_exp_error_ = std::max(log_sum_exp_error_, answer.log_sum_exp_error);
    parts_ += answer.parts;
  }

  // Call this once, after the last Add().
  LookupAnswer Finish() {
    LookupAnswer answer;
    answer.values = {.rows = rows_, .cols = cols_, .data = {values_.begin(), values_.end()}};
    answer.stats = stats_;
    for (std::size_t i = 0; i < lists_.size(); ++i) {
      std::stable_sort(lists_[i].begin(), lists_[i].end(), IsBefore);
      answer.weights.push_back(ToProto(lists_[i], remaining_[i]));
      std::vector<std::uint32_t>& parts = answer.weight_parts.emplace_back();
      for (const ListedRow& row : lists_[i]) parts.push_back(row.part);
    }
    answer.log_sum_exp_error = log_sum_exp_error_;
    answer.parts = parts_;
    return answer;
  }

 private:
  void AddStats(const v1::QueryStats& other, const Shares& shares, double other_error,
                v1::QueryStats* stats) const {
    stats->set_entropy(shares.Mean(stats->entropy() + (shares.total - stats->log_sum_exp()),
                                   other.entropy() + (shares.total - other.log_sum_exp())));
    // A log-sum-exp that is wrong by e moves its share by at most e / 4. What moves from one answer
    // to the other differs by at most 2.
    const bool both = shares.mine > 0 && shares.others > 0;
    const double moved = both ? (log_sum_exp_error_ + other_error) / 2 : 0;
    stats->set_error_bound(shares.Mean(stats->error_bound(), other.error_bound()) + moved);
    stats->set_log_sum_exp(shares.total);
    stats->set_max_logit(std::fmax(stats->max_logit(), other.max_logit()));
    stats->set_counted_rows(stats->counted_rows() + other.counted_rows());
    stats->set_summed_rows(stats->summed_rows() + other.summed_rows());
    stats->set_empty(stats->empty() && other.empty());
  }

  void AddRows(const LookupAnswer& answer, std::size_t list, const Shares& shares) {
    std::vector<ListedRow>& rows = lists_[list];
    for (ListedRow& row : rows) row.weight *= shares.mine;
    for (ListedRow& row : ListedRowsOf(answer, list)) {
      row.weight *= shares.others;
      row.part += parts_;
      rows.push_back(row);
    }
    remaining_[list] = shares.Mean(remaining_[list], answer.weights[list].remaining_weight());
  }

  std::uint32_t rows_;
  std::uint32_t cols_;
  std::vector<double> values_;
  std::vector<v1::QueryStats> stats_;
  std::vector<std::vector<ListedRow>> lists_;  // Empty if an answer has no weights.
  std::vector<double> remaining_;              // Of each list.
  double log_sum_exp_error_ = 0;
  std::uint32_t parts_ = 0;
};

absl::StatusOr<LookupAnswer> MergeAll(absl::Span<const LookupAnswer* const> answers) {
  CLIENT_RETURN_IF_ERROR(CheckParts(answers));
  const bool has_weights =
      std::none_of(answers.begin(), answers.end(),
                   [](const LookupAnswer* answer) { return answer->weights.empty(); });
  RunningMerge merge(*answers[0], has_weights);
  for (const LookupAnswer* answer : answers) merge.Add(*answer);
  return merge.Finish();
}

}  // namespace

absl::StatusOr<LookupAnswer> MergeAnswers(absl::Span<const LookupAnswer> answers) {
  std::vector<const LookupAnswer*> pointers;
  for (const LookupAnswer& answer : answers) pointers.push_back(&answer);
  return MergeAll(pointers);
}

absl::StatusOr<LookupAnswer> MergeAnswers(const LookupAnswer& first, const LookupAnswer& second) {
  return MergeAll({&first, &second});
}

}  // namespace softlookup
