#include "client/loadtest/verifier.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/loadtest/kept_rows.h"
#include "client/output/figure_text.h"
#include "softlookup/v1/lookup.pb.h"

namespace softlookup::loadtest {
namespace {

constexpr std::uint32_t kChunkRows = 1024;  // Filled rows generated at a time.
constexpr int kQueriesOfAnswer = 2;         // Most queries checked per answer.
constexpr int kListedMax = 1024;            // Most listed weights checked per query.
constexpr double kLogitBound = 128;         // Largest |logit| for which kTolerance holds.

// Computes a soft lookup in float64, over rows that are added one at a time.
struct SoftLookup {
  double logit_max = -std::numeric_limits<double>::infinity();
  double logit_size = 0;     // Largest |logit|.
  double value_size = 0;     // Largest |component| of a value.
  double weight_sum = 0;     // Sum of exp(logit - logit_max).
  std::vector<double> sums;  // Sum of exp(logit - logit_max) * value.

  void Add(double logit, absl::Span<const float> value) {
    if (logit > logit_max) {
      const double shrink = std::exp(logit_max - logit);
      logit_max = logit;
      weight_sum *= shrink;
      for (double& sum : sums) sum *= shrink;
    }
    logit_size = std::max(logit_size, std::abs(logit));
    const double weight = std::exp(logit - logit_max);
    weight_sum += weight;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += weight * value[i];
      value_size = std::max(value_size, std::abs(double{value[i]}));
    }
  }

  double log_sum_exp() const { return logit_max + std::log(weight_sum); }
};

// The check of one query of an answer.
struct Check {
  std::size_t answer = 0;  // Index among all answers.
  std::uint64_t row_count = 0;
  std::vector<float> query;
  std::vector<float> values;
  v1::QueryStats stats;
  v1::QueryWeights weights;
  std::uint64_t weights_asked = 0;
  double max_error = 0;
  std::unordered_map<std::uint64_t, double> logits;  // By listed position; filled in by AddRow().
  // The largest logits of the rows added so far, as many as the answer lists positions. Empty if
  // the answer lists all rows, or none.
  std::priority_queue<double, std::vector<double>, std::greater<>> largest_logits;

  SoftLookup expected;
  bool done = false;
  double error = 0;
  std::string wrong;  // What is wrong; empty if nothing is.
};

void AddRow(std::uint64_t position, absl::Span<const float> key, absl::Span<const float> value,
            Check* check) {
  double dot = 0;
  for (std::size_t i = 0; i < key.size(); ++i) dot += double{check->query[i]} * key[i];
  const double logit = dot / std::sqrt(static_cast<double>(key.size()));
  check->expected.Add(logit, value);
  const auto listed = check->logits.find(position);
  if (listed != check->logits.end()) listed->second = logit;
  const auto listed_count = static_cast<std::uint64_t>(check->weights.positions_size());
  if (listed_count == 0 || listed_count >= check->row_count) return;
  check->largest_logits.push(logit);
  if (check->largest_logits.size() > listed_count) check->largest_logits.pop();
}

// Returns the largest difference of a component from the expected one, in the unit of kTolerance.
double ValuesError(const Check& check) {
  double difference = 0;
  for (std::size_t i = 0; i < check.values.size(); ++i) {
    if (!std::isfinite(check.values[i])) return std::numeric_limits<double>::infinity();
    const double component = check.expected.sums[i] / check.expected.weight_sum;
    difference = std::max(difference, std::abs(check.values[i] - component));
  }
  return difference == 0 ? 0 : difference / check.expected.value_size;
}

std::string CheckWeights(const Check& check, double tolerance) {
  const v1::QueryWeights& weights = check.weights;
  if (weights.weights_size() != weights.positions_size()) {
    return absl::StrCat(output::Counted(weights.weights_size(), "weight"), " for ",
                        output::Counted(weights.positions_size(), "position"));
  }
  const std::uint64_t least = std::min(check.weights_asked, check.row_count);
  if (static_cast<std::uint64_t>(weights.positions_size()) < least) {
    return absl::StrCat("the number of weights listed is ", weights.positions_size(), ", not ",
                        least);
  }
  const double lse = check.expected.log_sum_exp();
  const std::set<std::uint64_t> positions(weights.positions().begin(), weights.positions().end());
  if (positions.size() < static_cast<std::size_t>(weights.positions_size())) {
    return "a row is listed twice";
  }
  const double largest = std::exp(check.expected.logit_max - lse);
  const double least_listed =
      check.largest_logits.empty() ? 0 : std::exp(check.largest_logits.top() - lse);
  for (int i = 0; i < std::min(kListedMax, weights.positions_size()); ++i) {
    const double expected = std::exp(check.logits.at(weights.positions(i)) - lse);
    if (expected < least_listed - tolerance * largest) {
      return absl::StrCat("row ", weights.positions(i), " is listed, though others weigh more");
    }
    if (weights.positions(i) < check.row_count &&
        std::abs(weights.weights(i) - expected) <= tolerance * largest) {
      continue;
    }
    return absl::StrCat("the weight of row ", weights.positions(i), " is ", weights.weights(i),
                        ", not ", expected);
  }
  double sum = weights.remaining_weight();
  for (const double weight : weights.weights()) sum += weight;
  if (weights.positions_size() == 0 || std::abs(sum - 1) <= 1e-4) return "";
  return absl::StrCat("the weights' sum is ", sum);
}

// Compares the answer with the expected one, and sets `error`, `wrong` and `done` of `check`. All
// rows must have been added.
void Compare(Check* check) {
  const double rounding = kTolerance * std::max(1.0, check->expected.logit_size / kLogitBound);
  const double tolerance = std::max(check->max_error, rounding);
  const double lse = check->expected.log_sum_exp();
  const double lse_tolerance = std::max(check->max_error, rounding * std::max(1.0, std::abs(lse)));
  check->error = check->row_count == 0 ? 0 : ValuesError(*check);
  if (check->stats.counted_rows() != check->row_count) {
    check->wrong = absl::StrCat(output::Counted(check->stats.counted_rows(), "row"),
                                " counted, not ", check->row_count);
  } else if (!(check->error <= tolerance)) {
    check->wrong = absl::StrCat("values are off by ", check->error, " of the largest component; ",
                                tolerance, " is allowed");
  } else if (check->row_count > 0 &&
             !(std::abs(check->stats.log_sum_exp() - lse) <= lse_tolerance)) {
    check->wrong = absl::StrCat("log_sum_exp is ", check->stats.log_sum_exp(), ", not ", lse);
  } else {
    check->wrong = CheckWeights(*check, tolerance);
  }
  check->done = true;
}

// The rows of a store whose contents are known.
struct KnownRows {
  // First position of each appended batch, and its number in RowSource, in ascending order of
  // positions.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> batches;
  std::uint64_t row_count = 0;  // Known rows from position 0 to the first gap.
};

KnownRows KnownRowsOf(std::uint32_t store, const VerifiedStores& stores,
                      const std::vector<Evidence::Append>& appends) {
  KnownRows known{.batches = {}, .row_count = stores.filled_rows};
  for (const Evidence::Append& append : appends) {
    if (append.store == store && append.row_count == stores.append_rows) {
      known.batches.emplace_back(append.first_position, append.content);
    }
  }
  std::sort(known.batches.begin(), known.batches.end());
  for (const auto& [first, batch] : known.batches) {
    if (first != known.row_count) break;
    known.row_count += stores.append_rows;
  }
  return known;
}

// Calls `each` with the known rows as the store keeps them, chunk by chunk from position 0 on.
// Stops when `each` returns false, or at the first gap.
void ForEachChunk(const RowSource& source, const VerifiedStores& stores, std::uint32_t store,
                  const KnownRows& known,
                  const std::function<bool(std::uint64_t first, const RowSource::Rows&)>& each) {
  const auto give = [&](std::uint64_t first, RowSource::Rows rows) {
    RoundAsKept(stores.storage, &rows.keys);
    RoundAsKept(stores.storage, &rows.values);
    return each(first, rows);
  };
  for (std::uint64_t row = 0; row < stores.filled_rows; row += kChunkRows) {
    const auto count =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(kChunkRows, stores.filled_rows - row));
    if (!give(row, source.FilledRows(store, row, count))) return;
  }
  for (const auto& [first, batch] : known.batches) {
    if (first >= known.row_count) break;
    if (!give(first, source.AppendedRows(batch, stores.append_rows))) return;
  }
}

void RunChecks(const RowSource& source, const VerifiedStores& stores, std::uint32_t store,
               const KnownRows& known, const std::atomic<bool>& interrupted,
               absl::Span<Check*> checks) {
  ForEachChunk(source, stores, store, known, [&](std::uint64_t first, const auto& rows) {
    for (Check* check : checks) {
      if (interrupted) return false;
      for (std::uint32_t r = 0; r < rows.keys.rows && first + r < check->row_count; ++r) {
        AddRow(first + r, rows.keys.Row(r), rows.values.Row(r), check);
      }
    }
    return true;
  });
  if (interrupted) return;
  for (Check* check : checks) Compare(check);
}

// Runs the checks of one store, divided among as many threads as there are cores.
void RunInParallel(const RowSource& source, const VerifiedStores& stores, std::uint32_t store,
                   const KnownRows& known, const std::atomic<bool>& interrupted,
                   absl::Span<Check*> checks) {
  const std::size_t threads_max = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t part = (checks.size() + threads_max - 1) / threads_max;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < checks.size(); i += part) {
    threads.emplace_back([&, mine = checks.subspan(i, part)] {
      RunChecks(source, stores, store, known, interrupted, mine);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Adds the checks of an answer to `checks`. Returns what is wrong if the answer does not fit the
// request; empty if it does.
std::string AddChecks(const RowSource& source, const VerifiedStores& stores,
                      const v1::LookupResponse& response, std::uint32_t content, std::size_t answer,
                      std::vector<Check>* checks) {
  const auto values = FloatMatrix::FromProto(response.values());
  if (!values.ok() || values->rows != stores.queries || values->cols != source.value_dim() ||
      response.stats_size() != static_cast<int>(stores.queries) ||
      (response.weights_size() > 0 &&
       response.weights_size() != static_cast<int>(stores.queries))) {
    return "its shape does not fit the queries";
  }
  if (stores.weights > 0 && response.weights_size() == 0) {
    return "it has no weights, which were asked for";
  }
  const FloatMatrix queries = source.Queries(content, stores.queries);
  const int count = std::min<int>(kQueriesOfAnswer, stores.queries);
  for (int i = 0; i < count; ++i) {
    // The choice of `q` depends on the answer's index, so that different answers are checked by
    // different queries.
    const auto q =
        static_cast<std::uint32_t>((answer + i * (stores.queries + 1) / 2) % stores.queries);
    Check check;
    check.answer = answer;
    check.row_count = response.row_count();
    check.weights_asked = stores.weights;
    check.max_error = stores.max_error;
    check.query.assign(queries.Row(q).begin(), queries.Row(q).end());
    check.values.assign(values->Row(q).begin(), values->Row(q).end());
    check.stats = response.stats(q);
    if (response.weights_size() > 0) check.weights = response.weights(q);
    for (int w = 0; w < std::min(kListedMax, check.weights.positions_size()); ++w) {
      check.logits[check.weights.positions(w)] = -std::numeric_limits<double>::infinity();
    }
    check.expected.sums.resize(source.value_dim());
    checks->push_back(std::move(check));
  }
  return "";
}

}  // namespace

std::uint64_t WeightsAskedFor(const v1::AttentionOptions& attention) {
  constexpr std::uint32_t kTopByDefault = 10;
  switch (attention.weights()) {
    case v1::WEIGHTS_MODE_TOP:
      return attention.top_weights() > 0 ? attention.top_weights() : kTopByDefault;
    case v1::WEIGHTS_MODE_ALL:
      return std::numeric_limits<std::uint64_t>::max();
    default:
      return 0;
  }
}

Verification Verify(const RowSource& rows, const VerifiedStores& stores,
                    const std::vector<Evidence::Answer>& answers,
                    const std::vector<Evidence::Append>& appends,
                    const std::atomic<bool>* interrupted) {
  static const std::atomic<bool> never = false;
  if (interrupted == nullptr) interrupted = &never;
  Verification result;
  std::map<std::size_t, std::string> wrong;  // By index of the answer.
  std::set<std::size_t> unchecked;
  std::map<std::uint32_t, std::vector<Check>> checks_of_stores;
  std::map<std::uint32_t, KnownRows> known_rows;
  for (std::size_t a = 0; a < answers.size(); ++a) {
    if (*interrupted) {
      unchecked.insert(a);
      continue;
    }
    const Evidence::Answer& answer = answers[a];
    if (!known_rows.contains(answer.store)) {
      known_rows[answer.store] = KnownRowsOf(answer.store, stores, appends);
    }
    const std::uint64_t rows_min = std::max(stores.filled_rows, answer.rows_min);
    v1::LookupResponse response;
    std::string text;
    if (!Parse(answer.bytes, &response)) {
      text = "it does not parse";
    } else if (response.row_count() < rows_min) {
      text =
          absl::StrCat("it saw ", output::Counted(response.row_count(), "row"), " of ", rows_min);
    } else if (response.row_count() > known_rows[answer.store].row_count) {
      unchecked.insert(a);
    } else {
      text = AddChecks(rows, stores, response, answer.content, a, &checks_of_stores[answer.store]);
    }
    if (!text.empty()) wrong[a] = std::move(text);
  }
  for (auto& [store, checks] : checks_of_stores) {
    std::vector<Check*> pointers;
    for (Check& check : checks) pointers.push_back(&check);
    RunInParallel(rows, stores, store, known_rows[store], *interrupted, absl::MakeSpan(pointers));
    for (const Check& check : checks) {
      result.error_max = std::max(result.error_max, check.error);
      if (!check.done) unchecked.insert(check.answer);
      if (!check.wrong.empty()) wrong.emplace(check.answer, check.wrong);
    }
  }
  for (const auto& [answer, text] : wrong) unchecked.erase(answer);
  result.interrupted = *interrupted;
  result.unchecked = static_cast<int>(unchecked.size());
  result.answers = static_cast<int>(answers.size() - unchecked.size());
  result.wrong = static_cast<int>(wrong.size());
  if (!wrong.empty()) result.first_wrong = wrong.begin()->second;
  return result;
}

}  // namespace softlookup::loadtest
