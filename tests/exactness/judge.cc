#include "tests/exactness/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace softlookup::exactness {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// exp(-45) is nothing beside 1.
constexpr double kLogitReach = 45;

bool IsBefore(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.position < b.position);
}

}  // namespace

Judge::Judge(const Question& question, const v1::QueryStats& stats, const float* values,
             const v1::QueryWeights* weights, Tally& tally)
    : question_(question),
      options_(question.options()),
      stats_(stats),
      values_(values),
      weights_(weights),
      tally_(tally),
      mode_(question.mode()),
      oracle_(question),
      counted_(oracle_.candidates()) {}

std::vector<std::string> Judge::Verdict() {
  ++tally_.answers;
  if (!ChooseRows()) {
    ++tally_.close_calls;
    return failures_;
  }
  if (counted_.empty()) {
    exact_ = oracle_.Weigh(counted_, 0);
  } else {
    if (mode_ == v1::MODE_HARD && !ChooseWinner()) return failures_;
    exact_ = oracle_.Weigh(counted_, winner_);
  }
  const bool is_soft = mode_ == v1::MODE_SOFT;
  const double asked = is_soft && options_.has_max_error() ? options_.max_error() : 0;
  const auto largest = static_cast<double>(std::abs(exact_.max_logit));
  if (!counted_.empty()) size_factor_ = std::max(1.0, (largest + kLogitReach) / kLogitSize);
  error_max_ = std::max(kErrorDefault, asked);
  if (exact_.weight_noise > 1e-6L) ++tally_.blurred_answers;
  CheckStats();
  CheckValues();
  if (weights_ != nullptr) CheckWeights();
  return failures_;
}

bool Judge::ScoresAreExact() const {
  return mode_ != v1::MODE_SOFT || options_.top_k() > 0 || options_.has_min_score();
}

void Judge::Require(bool holds, const std::string& what) {
  ++tally_.comparisons;
  if (!holds) failures_.push_back(what);
}

void Judge::CheckNear(const std::string& what, double actual, long double expected,
                      long double bound, long double slack) {
  ++tally_.comparisons;
  if (actual == static_cast<double>(expected)) return;
  const long double error = std::abs(static_cast<long double>(actual) - expected);
  const long double beyond_slack = error - slack;
  if (bound > 0 && beyond_slack > 0) {
    double& worst = tally_.worst[what];
    worst = std::max(worst, static_cast<double>(beyond_slack / bound));
  }
  if (beyond_slack <= bound) return;
  failures_.push_back(
      absl::StrFormat("%s is %.17g, exactly %.17Lg: off by %.3Lg, allowed %.3Lg + %.3Lg", what,
                      actual, expected, error, bound, slack));
}

bool Judge::ChooseRows() {
  const std::size_t before = counted_.size();
  bool is_certain = options_.has_min_score() ? ApplyMinScore() : true;
  if (is_certain && options_.top_k() > 0 && counted_.size() > options_.top_k()) {
    is_certain = ApplyTopK();
  }
  if (is_certain || TakeListedRows()) return true;
  Require(stats_.counted_rows() <= before, "more rows count than there are");
  return false;
}

bool Judge::ApplyMinScore() {
  std::vector<Candidate> kept;
  for (const Candidate& row : counted_) {
    const long double margin = row.score - options_.min_score();
    if (row.score_noise > 0 && std::abs(margin) <= row.score_noise) return false;
    if (margin >= 0) kept.push_back(row);
  }
  counted_ = std::move(kept);
  return true;
}

bool Judge::ApplyTopK() {
  std::vector<Candidate> sorted = counted_;
  const auto cut = sorted.begin() + options_.top_k();
  std::nth_element(sorted.begin(), cut, sorted.end(), IsBefore);
  long double least = std::numeric_limits<long double>::infinity();  // That a kept row can be.
  long double most = -least;                                         // That another can be.
  for (auto row = sorted.begin(); row != sorted.end(); ++row) {
    if (row < cut) least = std::min(least, row->logit - row->logit_noise);
    if (row >= cut) most = std::max(most, row->logit + row->logit_noise);
  }
  if (most >= least) {
    // Those that float64 may take for each other have to be tied, all of them.
    const Candidate* first = nullptr;
    for (auto row = sorted.begin(); row != sorted.end(); ++row) {
      const bool is_near = row < cut ? row->logit - row->logit_noise <= most
                                     : row->logit + row->logit_noise >= least;
      if (!is_near) continue;
      if (first == nullptr) first = &*row;
      if (!oracle_.AreTied(*first, *row)) return false;
    }
  }
  sorted.erase(cut, sorted.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const Candidate& a, const Candidate& b) { return a.position < b.position; });
  counted_ = std::move(sorted);
  return true;
}

bool Judge::TakeListedRows() {
  if (weights_ == nullptr || options_.weights() != v1::WEIGHTS_MODE_ALL) return false;
  const std::set<std::uint64_t> positions(weights_->positions().begin(),
                                          weights_->positions().end());
  std::vector<Candidate> listed;
  const Candidate* least = nullptr;
  long double most_of_others = -kInfinity;
  const bool has_min = options_.has_min_score();
  for (const Candidate& row : oracle_.candidates()) {
    const long double margin = has_min ? row.score - options_.min_score() : 0;
    if (positions.count(row.position) > 0) {
      listed.push_back(row);
      Require(margin >= -row.score_noise,
              absl::StrCat("row ", row.position, " counts below min_score"));
      if (least == nullptr || row.logit + row.logit_noise < least->logit + least->logit_noise) {
        least = &row;
      }
    } else if (!has_min || margin > row.score_noise) {
      most_of_others = std::max(most_of_others, row.logit - row.logit_noise);
    }
  }
  Require(listed.size() == positions.size(), "a row is listed that the filter leaves out");
  const bool is_full = options_.top_k() > 0 && listed.size() == options_.top_k();
  if (options_.top_k() > 0)
    Require(listed.size() <= options_.top_k(), "more than top_k rows count");
  if (is_full) {
    Require(least->logit + least->logit_noise >= most_of_others,
            absl::StrCat("row ", least->position, " counts, and a larger one does not"));
  } else {
    Require(most_of_others == -kInfinity, "a row does not count that has to");
  }
  counted_ = std::move(listed);
  return failures_.empty();
}

bool Judge::ChooseWinner() {
  winner_ = static_cast<std::size_t>(std::min_element(counted_.begin(), counted_.end(), IsBefore) -
                                     counted_.begin());
  const Candidate& best = counted_[winner_];
  for (std::size_t i = 0; i < counted_.size(); ++i) {
    const Candidate& row = counted_[i];
    if (row.logit + row.logit_noise < best.logit - best.logit_noise) continue;
    const bool loses_tie = std::any_of(winners_.begin(), winners_.end(), [&](std::size_t winner) {
      return oracle_.AreTied(counted_[winner], row);
    });
    if (!loses_tie) winners_.push_back(i);
  }
  // The answer says itself which it took.
  for (const std::size_t i : winners_) {
    bool is_it = true;
    for (std::int64_t c = 0; c < question_.value_dim(); ++c) {
      is_it = is_it && values_[c] == static_cast<float>(oracle_.Value(counted_[i], c));
    }
    if (weights_ != nullptr && weights_->positions_size() > 0) {
      is_it = is_it && weights_->positions(0) == counted_[i].position;
    }
    if (is_it) {
      winner_ = i;
      ++tally_.comparisons;
      return true;
    }
  }
  std::string actual, expected;
  for (std::int64_t c = 0; c < std::min<std::int64_t>(question_.value_dim(), 4); ++c) {
    absl::StrAppend(&actual, " ", values_[c]);
    absl::StrAppend(&expected, " ", static_cast<float>(oracle_.Value(best, c)));
  }
  failures_.push_back(
      absl::StrFormat("HARD is not the value of row %d, nor of another of %d that come near: first "
                      "components are%s, expected%s",
                      best.position, winners_.size() - 1, actual, expected));
  return false;
}

void Judge::CheckStats() {
  Require(stats_.counted_rows() == counted_.size(),
          absl::StrCat("counted_rows is ", stats_.counted_rows(), " instead of ", counted_.size()));
  Require(stats_.empty() == counted_.empty(), "`empty` is wrong");
  if (counted_.empty()) {
    Require(stats_.log_sum_exp() == -kInfinity && stats_.max_logit() == -kInfinity &&
                stats_.entropy() == 0 && stats_.error_bound() == 0 && stats_.summed_rows() == 0,
            "the statistics of no rows are wrong");
    return;
  }
  Require(stats_.summed_rows() >= 1 && stats_.summed_rows() <= stats_.counted_rows(),
          absl::StrCat("summed_rows is ", stats_.summed_rows()));
  const bool is_exact = ScoresAreExact();
  CheckNear(is_exact ? "max_logit of exact scores" : "max_logit", stats_.max_logit(),
            exact_.max_logit, error_max_ * size_factor_, exact_.max_logit_noise);
  if (mode_ == v1::MODE_SOFT) return CheckSoftStats();
  Require(stats_.log_sum_exp() == -kInfinity, "log_sum_exp is for SOFT only");
  Require(stats_.entropy() == 0, "entropy is for SOFT only");
  if (mode_ == v1::MODE_HARD) {
    Require(stats_.error_bound() == 0, "error_bound of HARD is not 0");
    Require(stats_.summed_rows() == 1, "summed_rows of HARD is not 1");
  } else {
    Require(stats_.error_bound() == kErrorDefault, "error_bound of LINEAR is not 1e-5");
    Require(stats_.summed_rows() == counted_.size(), "LINEAR leaves out rows");
  }
}

void Judge::CheckSoftStats() {
  Require(stats_.error_bound() >= 0 && stats_.error_bound() <= error_max_,
          absl::StrCat("error_bound is ", stats_.error_bound(), ", allowed ", error_max_));
  const std::string with = options_.max_error() > kErrorDefault ? " with max_error" : "";
  CheckNear(
      absl::StrCat("log_sum_exp", with), stats_.log_sum_exp(), exact_.log_sum_exp,
      error_max_ * size_factor_,
      exact_.weight_noise + exact_.max_logit_noise + 0x1p-50L * (std::abs(exact_.max_logit) + 1));
  const auto count = static_cast<double>(counted_.size());
  CheckNear(
      absl::StrCat("entropy", with), stats_.entropy(), exact_.entropy,
      error_max_ * size_factor_ * (1 + std::max(0.0, std::log(count / error_max_))),
      exact_.weight_noise * (200 + std::log(count)) + 1e-12L * (1 + std::abs(exact_.entropy)));
  Require(stats_.entropy() >= 0, "entropy is below 0");
  CheckSummedRows();
}

void Judge::CheckSummedRows() {
  if (stats_.summed_rows() == counted_.size()) return;
  ++tally_.skipping_answers;
  // No choice of this many rows leaves less weight to the others.
  std::vector<long double> weights;
  for (const Candidate& row : counted_) weights.push_back(row.weight);
  const auto cut = weights.begin() + static_cast<std::ptrdiff_t>(stats_.summed_rows());
  std::nth_element(weights.begin(), cut, weights.end(), std::greater<>());
  long double left_out = 0;
  for (auto weight = cut; weight != weights.end(); ++weight) left_out += *weight;
  CheckNear("weight of rows that are not summed", static_cast<double>(left_out), 0,
            stats_.error_bound() * size_factor_, exact_.weight_noise);
}

void Judge::CheckValues() {
  constexpr long double kFloatMax = std::numeric_limits<float>::max();
  const bool is_soft = mode_ == v1::MODE_SOFT;
  const std::string what =
      is_soft ? options_.max_error() > kErrorDefault ? "SOFT value with max_error, by error_bound"
                : size_factor_ > 1                   ? "SOFT value, large logits, by error_bound"
                : ScoresAreExact()                   ? "SOFT value of exact scores, by error_bound"
                : stats_.summed_rows() < counted_.size() ? "SOFT value of some rows, by error_bound"
                                                         : "SOFT value of all rows, by error_bound"
      : mode_ == v1::MODE_HARD ? "HARD value"
                               : "LINEAR value";
  for (std::int64_t i = 0; i < question_.value_dim(); ++i) {
    if (counted_.empty()) {
      Require(values_[i] == 0, "the value of no rows is not 0");
      continue;
    }
    const long double exact = std::clamp(exact_.values[i], -kFloatMax, kFloatMax);
    const long double rounding = std::abs(exact) * 0x1p-23L + 0x1p-149L;
    if (mode_ == v1::MODE_HARD) {
      CheckNear(what, values_[i], static_cast<float>(exact), 0, 0);
    } else if (mode_ == v1::MODE_LINEAR) {
      CheckNear(what, values_[i], exact, kErrorDefault * exact_.value_sizes[i],
                rounding + 2 * exact_.value_noises[i] + exact_.memory_noise +
                    0x1p-50L * exact_.value_sizes[i]);
    } else {
      const long double slack = rounding + exact_.memory_noise +
                                (2 * exact_.weight_noise + 0x1p-50L) * exact_.value_magnitude;
      const long double bound = stats_.error_bound() * exact_.value_magnitude;
      Require(std::abs(values_[i]) <= exact_.value_magnitude * (1 + 0x1p-20L) + bound + 0x1p-149L,
              "a SOFT value is larger than all values");
      CheckNear(what, values_[i], exact, bound * size_factor_, slack);
      if (size_factor_ > 1 && bound > 0) {
        // Not part of the contract, but good to know.
        double& worst = tally_.worst["SOFT value, large logits, were they small"];
        const long double error = std::abs(values_[i] - exact) - slack;
        worst = std::max(worst, static_cast<double>(error / bound));
      }
    }
  }
}

}  // namespace softlookup::exactness
