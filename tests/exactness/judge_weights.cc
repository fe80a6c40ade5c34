// The listed weights of an answer.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/exactness/judge.h"

namespace softlookup::exactness {

void Judge::CheckWeights() {
  const v1::QueryWeights& list = *weights_;
  const int size = list.positions_size();
  std::uint64_t expected = counted_.size();
  if (options_.weights() == v1::WEIGHTS_MODE_TOP) {
    const std::uint64_t top = options_.top_weights() == 0 ? 10 : options_.top_weights();
    expected = std::min(expected, top);
  }
  Require(static_cast<std::uint64_t>(size) == expected,
          absl::StrCat(size, " weights are listed instead of ", expected));
  Require(list.weights_size() == size && list.scores_size() == size &&
              (list.ids_size() == 0 || list.ids_size() == size) &&
              (list.has_ids_size() == 0 || list.has_ids_size() == list.ids_size()),
          "the lists of weights are not parallel");
  if (!failures_.empty()) return;
  std::vector<bool> listed(counted_.size());
  bool has_ids = false;
  long double listed_weight = 0;
  for (int i = 0; i < size; ++i) {
    const auto row = RowAt(list.positions(i));
    const std::size_t index = static_cast<std::size_t>(row - counted_.begin());
    if (row == counted_.end() || row->position != list.positions(i) || listed[index]) {
      return Require(false, absl::StrCat("position ", list.positions(i),
                                         " is listed twice or does not count"));
    }
    listed[index] = true;
    listed_weight += row->weight;
    if (!row->is_memory) has_ids = has_ids || question_.store->row(row->position).id.has_value();
    CheckListedRow(i, *row);
  }
  Require((list.ids_size() > 0) == has_ids, "ids are listed where no row has one, or are not");
  long double total = 0;
  for (const Candidate& row : counted_) total += row.weight;
  const bool is_linear = mode_ == v1::MODE_LINEAR;
  const long double noise =
      is_linear ? 0x1p-40L * exact_.weight_sizes : 2 * exact_.weight_noise + 1e-12L;
  CheckNear(is_linear ? "remaining_weight of LINEAR" : "remaining_weight", list.remaining_weight(),
            total - listed_weight,
            mode_ == v1::MODE_HARD
                ? 0
                : error_max_ * size_factor_ * (is_linear ? exact_.weight_sizes : 1),
            noise);
  CheckListedTies();
  CheckUnlistedRows(listed);
}

std::vector<Candidate>::const_iterator Judge::RowAt(std::uint64_t position) const {
  return std::partition_point(counted_.begin(), counted_.end(), [&](const Candidate& candidate) {
    return candidate.position < position;
  });
}

void Judge::CheckListedRow(int index, const Candidate& row) {
  const v1::QueryWeights& list = *weights_;
  const double weight = list.weights(index);
  const long double off = std::expm1(std::min(2 * row.logit_noise, 100.0L));
  if (mode_ == v1::MODE_HARD) {
    Require(weight == static_cast<double>(row.weight),
            absl::StrCat("row ", row.position, " has the weight ", weight, " in HARD"));
  } else if (mode_ == v1::MODE_LINEAR) {
    CheckNear("weight of LINEAR", weight, row.weight, kErrorDefault * std::abs(row.weight),
              2 * row.logit_noise * row.multiplicity);
  } else {
    // As an answer whose values are 1 in this row and 0 elsewhere, and in proportion to itself.
    const long double slack = row.weight * (off + exact_.weight_noise) + 1e-30L;
    CheckNear("weight", weight, row.weight, error_max_ * size_factor_, slack);
    CheckNear("weight, as a part of itself", weight, row.weight,
              std::expm1(2.5L * error_max_ * size_factor_) * row.weight, slack);
  }
  const long double row_factor = std::max(1.0L, std::abs(row.logit) / kLogitSize);
  CheckNear("score", list.scores(index), row.score,
            ScoresAreExact() ? 0 : error_max_ * row_factor * question_.temperature(),
            row.score_noise + 0x1p-50L * std::abs(row.score) +
                question_.temperature() * 2 * row.logit_noise);
  if (list.ids_size() > 0) {
    const auto id = row.is_memory ? std::nullopt : question_.store->row(row.position).id;
    Require(list.ids(index) == id.value_or(0),
            absl::StrCat("row ", row.position, " has the id ", list.ids(index), " instead of ",
                         id.value_or(0)));
    Require(id.has_value() == (list.has_ids_size() == 0 || list.has_ids(index)),
            absl::StrCat("row ", row.position, ": has_ids is wrong"));
  }
  if (index == 0) return;
  const double before = list.weights(index - 1);
  Require(
      before > weight || (before == weight && list.positions(index - 1) < list.positions(index)),
      absl::StrCat("rows ", list.positions(index - 1), " and ", list.positions(index),
                   " of the weights ", before, " and ", weight, " are in the wrong order"));
}

void Judge::CheckListedTies() {
  if (!ScoresAreExact() || mode_ == v1::MODE_HARD) return;
  // Rows that are tied have the same weight, so the list has them side by side.
  const v1::QueryWeights& list = *weights_;
  for (int i = 1; i < list.positions_size(); ++i) {
    const auto a = RowAt(list.positions(i - 1)), b = RowAt(list.positions(i));
    if (!oracle_.AreTied(*a, *b)) continue;
    Require(list.weights(i - 1) == list.weights(i) && a->position < b->position,
            absl::StrCat("tied rows ", a->position, " and ", b->position,
                         " differ in weight or are out of order"));
  }
}

void Judge::CheckUnlistedRows(const std::vector<bool>& listed) {
  if (mode_ == v1::MODE_HARD) {
    // After the winner come the lowest positions.
    std::uint64_t last = 0, first_unlisted = kNever;
    for (std::size_t i = 0; i < counted_.size(); ++i) {
      if (i == winner_) continue;
      if (listed[i]) last = counted_[i].position;
      if (!listed[i]) first_unlisted = std::min(first_unlisted, counted_[i].position);
    }
    return Require(last < first_unlisted || last == 0,
                   "HARD lists a later row before an earlier one");
  }
  const Candidate* least = nullptr;
  for (std::size_t i = 0; i < counted_.size(); ++i) {
    if (listed[i] && (least == nullptr || counted_[i].weight < least->weight)) least = &counted_[i];
  }
  if (least == nullptr) return;
  const bool is_linear = mode_ == v1::MODE_LINEAR;
  std::uint64_t last_of_tied = 0;
  for (std::size_t i = 0; i < counted_.size(); ++i) {
    const Candidate& row = counted_[i];
    if (listed[i] && oracle_.AreTied(row, *least)) last_of_tied = row.position;
  }
  for (std::size_t i = 0; i < counted_.size(); ++i) {
    if (listed[i]) continue;
    const Candidate& row = counted_[i];
    const long double noise = row.logit_noise + least->logit_noise;
    // Ranked by logits in float64 where scores are exact, else within their bound.
    const long double excess = is_linear ? row.weight - least->weight : row.logit - least->logit;
    long double allowed =
        is_linear ? 2 * noise * std::max(row.multiplicity, least->multiplicity) : noise;
    if (!ScoresAreExact()) allowed += 2 * error_max_ * size_factor_;
    // A server may list weights so near to each other as equal ones, and then by position.
    if (!is_linear) allowed += 1e-11L;
    ++tally_.comparisons;
    if (excess > allowed && row.weight > 1e-300L) {
      return Require(false, absl::StrCat("row ", row.position, " is not listed, and row ",
                                         least->position, " is, which weighs less"));
    }
    if (ScoresAreExact() && oracle_.AreTied(row, *least) && row.position < last_of_tied) {
      return Require(false, absl::StrCat("row ", row.position, " is not listed, and row ",
                                         last_of_tied, " is, which is tied with it"));
    }
  }
}

}  // namespace softlookup::exactness
