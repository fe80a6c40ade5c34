#include "core/attention/answer_writer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/attention/listed_weight.h"
#include "core/base/error.h"

namespace softlookup {
namespace {

// Rows that are weighed or sorted between two checks of Continues. This is at most a few
// milliseconds' work.
constexpr std::size_t kRowsBetweenChecks = 1 << 15;

// Sorts the items. Stops and returns false once the work is cancelled.
template <typename T, typename Less>
bool SortInSteps(std::vector<T>& items, const Less& less, Continues continues) {
  const auto at = [&](std::size_t index) {
    return items.begin() + static_cast<std::ptrdiff_t>(std::min(index, items.size()));
  };
  for (std::size_t i = 0; i < items.size(); i += kRowsBetweenChecks) {
    if (!continues()) return false;
    std::sort(at(i), at(i + kRowsBetweenChecks), less);
  }
  for (std::size_t run = kRowsBetweenChecks; run < items.size(); run *= 2) {
    for (std::size_t i = 0; i < items.size(); i += 2 * run) {
      if (!continues()) return false;
      std::inplace_merge(at(i), at(i + run), at(i + 2 * run), less);
    }
  }
  return true;
}

// Returns the weight of a row in LINEAR mode.
double LinearWeight(const AnswerShape& shape, const CountedRow& row) {
  const bool is_memory = shape.memory && shape.memory->position == row.position;
  return is_memory ? row.logit * shape.memory->multiplicity : row.logit;
}

// Returns the least bytes that the answer takes, without its listed weights.
std::int64_t FixedBytes(const AnswerShape& shape) {
  // The bytes of a message's tag and length, and of log_sum_exp and max_logit, which a message has
  // unless they are 0.
  constexpr std::int64_t kStatsBytes = 2 + 2 * 9;
  constexpr std::int64_t kListBytes = 2;
  return shape.query_count * shape.value_dim * 4 +
         shape.head_query_count() * (kStatsBytes + (shape.lists_rows() ? kListBytes : 0));
}

}  // namespace

void SortRows(RankBy rank_by, std::vector<CountedRow>& rows, Continues continues) {
  SortInSteps(
      rows,
      [rank_by](const CountedRow& a, const CountedRow& b) { return ComesBefore(rank_by, a, b); },
      continues);
}

SelectedRows WeighSelected(const AnswerShape& shape, std::vector<CountedRow> rows,
                           Continues continues) {
  SortInSteps(rows, RanksBefore, continues);
  SelectedRows selected{.state = {.counted_rows = rows.size(), .summed_rows = rows.size()}};
  PartialState& state = selected.state;
  if (!rows.empty()) {
    state.max_logit = rows.front().logit;
    state.max_position = rows.front().position;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % kRowsBetweenChecks == 0 && !continues()) break;
    const CountedRow& row = rows[i];
    const double shifted = row.logit - state.max_logit;
    const double weight = shape.mode == Mode::kLinear ? LinearWeight(shape, row)
                          : shape.mode == Mode::kHard ? (i == 0 ? 1.0 : 0.0)
                                                      : std::exp(shifted);
    state.weight += weight;
    if (shape.mode == Mode::kSoft && weight > 0) state.weighted += weight * shifted;
    if (weight != 0) selected.weighed.push_back({.position = row.position, .weight = weight});
  }
  selected.rows = std::move(rows);
  return selected;
}

AnswerWriter::AnswerWriter(const AnswerShape& shape, std::int64_t bytes_max)
    : shape_(shape), bytes_max_(bytes_max), bytes_(FixedBytes(shape)) {}

void AnswerWriter::Begin() {
  const auto count = static_cast<std::size_t>(shape_.head_query_count());
  answer_.values.resize(static_cast<std::size_t>(shape_.query_count * shape_.value_dim));
  answer_.stats.resize(count);
  if (shape_.lists_rows()) answer_.weights.resize(count);
}

void AnswerWriter::CountListed(std::uint64_t counted_rows) {
  if (!shape_.lists_rows()) return;
  std::uint64_t listed = counted_rows;
  if (shape_.weights == WeightsMode::kTop) {
    listed = std::min(listed, static_cast<std::uint64_t>(shape_.top_weights));
  }
  if (shape_.selects_rows()) listed = std::min(listed, shape_.selected_max);
  bytes_ += static_cast<std::int64_t>(listed) * kListedRowBytesMin;
}

absl::Status AnswerWriter::CheckSize() const {
  if (!is_too_large()) return absl::OkStatus();
  return MakeError(reasons::kAnswerTooLarge,
                   absl::StrCat("The answer would need at least ", bytes_, " bytes; the limit is ",
                                bytes_max_, ". Ask for fewer queries or fewer weights"),
                   {{"bytes", absl::StrCat(bytes_)}, {"limit", absl::StrCat(bytes_max_)}});
}

void AnswerWriter::WriteSums(std::size_t result, const PartialState& state,
                             absl::Span<const double> sum, double arithmetic_error) {
  // The answer is query-major, and so are a query's heads: results and their values lie alike.
  const std::size_t offset = result * static_cast<std::size_t>(shape_.head_value_dim());
  WriteValues(shape_.mode, state, sum, answer_.values.data() + offset);
  QueryStats& stats = answer_.stats[result];
  stats = StatsOf(shape_.mode, state, arithmetic_error);
  // StatsOf can return a little more than error_max. It divides the weight left out by the weight
  // of the other rows. The budget is a part of the weight of all rows.
  stats.error_bound = std::min(stats.error_bound, shape_.error_max);
}

void AnswerWriter::ListWeights(std::size_t result, const PartialState& state, RankedRows rows,
                               Continues continues) {
  if (!shape_.lists_rows()) return;
  const Mode mode = shape_.mode;
  const double ln_weight = mode == Mode::kSoft ? std::log(state.weight) : 0;
  const auto weigh = [&](const CountedRow& row) {
    const double weight = mode == Mode::kLinear ? LinearWeight(shape_, row)
                          : mode == Mode::kHard
                              ? (row.position == state.max_position ? 1.0 : 0.0)
                              : ListedWeight(row.logit, state.max_logit, ln_weight);
    return WeightedRow{.position = row.position, .weight = weight, .score = row.score};
  };
  QueryWeights& weights = answer_.weights[result];
  weights.rows.reserve(rows.best.size() + rows.first.size() + 1);
  for (const CountedRow& row : rows.best) weights.rows.push_back(weigh(row));
  for (const CountedRow& row : rows.first) weights.rows.push_back(weigh(row));
  if (rows.unranked_memory) weights.rows.push_back(weigh(*rows.unranked_memory));
  const auto comes_first = [](const WeightedRow& a, const WeightedRow& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.position < b.position;
  };
  if (!SortInSteps(weights.rows, comes_first, continues)) return;
  // A row that is among both the best and the first ones is listed once.
  const auto same_row = [](const auto& a, const auto& b) { return a.position == b.position; };
  weights.rows.erase(std::unique(weights.rows.begin(), weights.rows.end(), same_row),
                     weights.rows.end());
  if (shape_.weights == WeightsMode::kTop) {
    const auto top_weights = static_cast<std::size_t>(shape_.top_weights);
    weights.rows.resize(std::min(weights.rows.size(), top_weights));
  }
  if (weights.rows.size() == state.counted_rows) return;  // No weight remains.
  double listed = 0;
  for (const WeightedRow& row : weights.rows) listed += row.weight;
  const double total = mode == Mode::kLinear ? state.weight : 1;
  weights.remaining_weight = mode == Mode::kLinear ? total - listed : std::max(0.0, total - listed);
}

}  // namespace softlookup
