#include "client/tool/tuning.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"

namespace softlookup::tool {
namespace {

constexpr std::size_t kTuningCallsMax = 4;  // Calls in progress at a time.
constexpr double kEntropyMax = 45;          // Nats. 2^64 rows of equal weight have 44.4.

// A setting's answer for one row, compared with the row's value.
struct Comparison {
  bool same_largest = false;
  double log_likelihood = 0;
  double squared_error = 0;
  double entropy = 0;  // Nats, the mean over heads.
};

// The answer of one head over some of the rows. Over no rows, log_sum_exp and entropy keep the
// values below, and `values` are zeros.
struct HeadAnswer {
  double log_sum_exp = -std::numeric_limits<double>::infinity();
  double entropy = 0;
  std::vector<double> values;
};

std::size_t HeadCount(const v1::Store& store) { return std::max(store.num_heads(), 1u); }

std::size_t LargestIndex(absl::Span<const float> vector) {
  return std::max_element(vector.begin(), vector.end()) - vector.begin();
}

bool AllFinite(absl::Span<const float> numbers) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [](float each) { return std::isfinite(each); });
}

// Returns a head's answer. Internal if it is not finite, or if its entropy is over kEntropyMax.
absl::StatusOr<HeadAnswer> HeadAnswerFrom(const v1::QueryStats& stats,
                                          absl::Span<const float> values) {
  HeadAnswer answer;
  answer.values.assign(values.begin(), values.end());
  if (stats.log_sum_exp() == answer.log_sum_exp) return answer;  // Over no rows.
  if (!std::isfinite(stats.log_sum_exp()) || !AllFinite(values)) {
    return absl::InternalError("the server sent an answer that is not finite");
  }
  if (!(std::abs(stats.entropy()) <= kEntropyMax)) {
    return absl::InternalError(absl::StrCat("the server sent an entropy of ", stats.entropy(),
                                            " nats, which no number of rows has"));
  }
  answer.log_sum_exp = stats.log_sum_exp();
  answer.entropy = stats.entropy();
  return answer;
}

// Looks up the key of `row` over positions [begin, end). Returns an answer for each head.
absl::StatusOr<std::vector<HeadAnswer>> AskRange(const v1::Store& store, const LeftOutRow& row,
                                                 const Setting& setting, std::uint64_t begin,
                                                 std::uint64_t end, Client* client) {
  const std::size_t heads = HeadCount(store);
  const std::size_t head_dim = store.value_dim() / heads;
  std::vector<HeadAnswer> answers(heads);
  for (HeadAnswer& answer : answers) answer.values.resize(head_dim);
  if (begin == end) return answers;
  LookupOptions options;
  options.attention.set_score(setting.score);
  options.attention.set_temperature(setting.temperature);
  options.attention.set_mode(v1::MODE_SOFT);
  options.attention.set_weights(v1::WEIGHTS_MODE_NONE);
  options.filter.set_begin(begin);
  options.filter.set_end(end);
  CLIENT_ASSIGN_OR_RETURN(const LookupAnswer lookup,
                          client->Lookup(store.name(), row.key, options));
  if (lookup.values.data.size() != heads * head_dim || lookup.stats.size() != heads) {
    return absl::InternalError("the server sent an answer that does not fit the store");
  }
  for (std::size_t h = 0; h < heads; ++h) {
    CLIENT_ASSIGN_OR_RETURN(
        answers[h],
        HeadAnswerFrom(lookup.stats[h], lookup.values.Row(0).subspan(h * head_dim, head_dim)));
  }
  return answers;
}

// Merges the answers over two disjoint sets of rows (docs/concepts.md, Merging). If w_s is the part
// of all weight in set s, the entropy is the sum of w_s (entropy_s - ln w_s). Aborted if both sets
// are empty.
absl::StatusOr<HeadAnswer> Merge(const HeadAnswer& before, const HeadAnswer& after) {
  const double larger = std::max(before.log_sum_exp, after.log_sum_exp);
  if (std::isinf(larger)) return absl::AbortedError("rows were deleted meanwhile: none is left");
  HeadAnswer merged;
  merged.log_sum_exp = larger + std::log(std::exp(before.log_sum_exp - larger) +
                                         std::exp(after.log_sum_exp - larger));
  merged.values.resize(before.values.size());
  for (const HeadAnswer* part : {&before, &after}) {
    const double log_weight = part->log_sum_exp - merged.log_sum_exp;
    const double weight = std::exp(log_weight);
    if (weight == 0) continue;
    merged.entropy += weight * (part->entropy - log_weight);
    for (std::size_t i = 0; i < merged.values.size(); ++i) {
      merged.values[i] += weight * part->values[i];
    }
  }
  return merged;
}

absl::StatusOr<Comparison> Compare(const v1::Store& store, const LeftOutRow& row,
                                   const Setting& setting, Client* client) {
  CLIENT_ASSIGN_OR_RETURN(const std::vector<HeadAnswer> before,
                          AskRange(store, row, setting, 0, row.position, client));
  CLIENT_ASSIGN_OR_RETURN(
      const std::vector<HeadAnswer> after,
      AskRange(store, row, setting, row.position + 1, store.row_count(), client));
  Comparison comparison;
  std::vector<double> answer;
  for (std::size_t h = 0; h < before.size(); ++h) {
    CLIENT_ASSIGN_OR_RETURN(const HeadAnswer merged, Merge(before[h], after[h]));
    comparison.entropy += merged.entropy / static_cast<double>(before.size());
    answer.insert(answer.end(), merged.values.begin(), merged.values.end());
  }
  const std::size_t largest = LargestIndex(row.value.data);
  comparison.same_largest =
      largest ==
      static_cast<std::size_t>(std::max_element(answer.begin(), answer.end()) - answer.begin());
  comparison.log_likelihood = std::log(std::max(answer[largest], kLeastProbability));
  for (std::size_t i = 0; i < answer.size(); ++i) {
    comparison.squared_error += std::pow(answer[i] - row.value.data[i], 2);
  }
  return comparison;
}

// Returns the figures of the setting at `index`. comparisons[r][index] is of its answer for row r.
Figures Summarize(absl::Span<const std::vector<Comparison>> comparisons, std::size_t index) {
  double same_largest = 0, log_likelihood = 0, entropy = 0;
  Figures figures;
  const auto count = static_cast<double>(comparisons.size());
  for (const std::vector<Comparison>& of_row : comparisons) {
    same_largest += of_row[index].same_largest ? 1 : 0;
    log_likelihood += of_row[index].log_likelihood;
    figures.squared_error += of_row[index].squared_error / count;
    entropy += of_row[index].entropy;
  }
  figures.accuracy = same_largest / count;
  figures.log_likelihood = log_likelihood / count;
  figures.perplexity = std::exp(entropy / count);
  return figures;
}

absl::StatusOr<LeftOutRow> RowFromProto(const v1::Row& row, const v1::Store& store) {
  LeftOutRow read{.position = row.position(), .key = {}, .value = {}};
  CLIENT_ASSIGN_OR_RETURN(read.key, FloatMatrix::FromProto(row.key()));
  CLIENT_ASSIGN_OR_RETURN(read.value, FloatMatrix::FromProto(row.value()));
  if (read.position >= store.row_count() || read.key.rows != 1 ||
      read.key.cols != store.key_dim() || read.value.rows != 1 ||
      read.value.cols != store.value_dim()) {
    return absl::InternalError("the server sent a row that does not fit the store");
  }
  if (!AllFinite(read.key.data) || !AllFinite(read.value.data)) {
    return absl::InternalError("the server sent a row that is not finite");
  }
  return read;
}

// Calls `take` with each live row below position store.row_count(), in the order of positions,
// until it fails.
absl::Status ReadLiveRows(const v1::Store& store, absl::Duration read_deadline, Client* client,
                          absl::FunctionRef<absl::Status(const v1::Row&)> take) {
  ReadRowsOptions options;
  options.deadline = read_deadline;
  options.read_mask = {"position", "key", "value"};
  v1::RowFilter filter;
  filter.set_end(store.row_count());
  absl::Status taken;
  CLIENT_RETURN_IF_ERROR(client->ReadRows(
      store.name(), filter,
      [&](const v1::ReadRowsResponse& page) {
        for (const v1::Row& row : page.rows()) taken.Update(take(row));
        return taken.ok();
      },
      options));
  return taken;
}

}  // namespace

absl::Status CheckHeads(const v1::Store& store) {
  const std::size_t heads = HeadCount(store);
  if (store.value_dim() > 0 && heads <= store.value_dim() && store.value_dim() % heads == 0) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("the server sent a store with value_dim ",
                                          store.value_dim(), " and ",
                                          output::Counted(heads, "head")));
}

double FigureNamed(const std::string& by, const Figures& figures) {
  if (by == kAccuracy) return *figures.accuracy;
  if (by == kLogLikelihood) return *figures.log_likelihood;
  return figures.squared_error;
}

std::vector<double> DefaultTemperatures(v1::Score score) {
  if (score == v1::SCORE_COSINE) {  // In [-1, 1]. Other scores can have any size.
    return {0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1};
  }
  return {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100};
}

bool ValuesAreDistributions(absl::Span<const LeftOutRow> rows) {
  return std::all_of(rows.begin(), rows.end(), [](const LeftOutRow& row) {
    const std::vector<float>& value = row.value.data;
    return value.size() > 1 && *std::min_element(value.begin(), value.end()) >= 0 &&
           std::abs(std::accumulate(value.begin(), value.end(), 0.0) - 1) <= 1e-3;
  });
}

absl::StatusOr<std::vector<LeftOutRow>> DrawRows(const v1::Store& store, std::size_t rows_max,
                                                 std::uint64_t seed, absl::Duration read_deadline,
                                                 Client* client) {
  std::mt19937_64 random(seed);
  std::vector<LeftOutRow> rows;
  std::uint64_t seen = 0;
  // Reservoir sampling: the first rows_max rows fill `rows`. Each later row i, from 0, replaces a
  // random one with probability rows_max / (i + 1).
  const auto take = [&](const v1::Row& row) -> absl::Status {
    const std::size_t place = seen < rows_max
                                  ? rows.size()
                                  : std::uniform_int_distribution<std::uint64_t>(0, seen)(random);
    ++seen;
    if (place >= rows_max) return absl::OkStatus();
    if (place == rows.size()) rows.emplace_back();
    CLIENT_ASSIGN_OR_RETURN(rows[place], RowFromProto(row, store));
    return absl::OkStatus();
  };
  CLIENT_RETURN_IF_ERROR(ReadLiveRows(store, read_deadline, client, take));
  std::sort(rows.begin(), rows.end(),
            [](const LeftOutRow& a, const LeftOutRow& b) { return a.position < b.position; });
  return rows;
}

absl::StatusOr<std::size_t> CountTwins(const v1::Store& store, absl::Span<const LeftOutRow> rows,
                                       absl::Duration read_deadline, Client* client) {
  using KeyAndValue = std::pair<std::vector<float>, std::vector<float>>;
  // Positions of those of `rows` of which no twin has been read yet.
  std::map<KeyAndValue, std::vector<std::uint64_t>> alone;
  for (const LeftOutRow& row : rows) {
    alone[{row.key.data, row.value.data}].push_back(row.position);
  }
  std::size_t count = 0;
  CLIENT_RETURN_IF_ERROR(
      ReadLiveRows(store, read_deadline, client, [&](const v1::Row& row) -> absl::Status {
        CLIENT_ASSIGN_OR_RETURN(LeftOutRow read, RowFromProto(row, store));
        const auto same = alone.find({std::move(read.key.data), std::move(read.value.data)});
        if (same == alone.end()) return absl::OkStatus();
        count += std::erase_if(same->second,
                               [&](std::uint64_t position) { return position != read.position; });
        if (same->second.empty()) alone.erase(same);
        return absl::OkStatus();
      }));
  return count;
}

absl::StatusOr<std::vector<Figures>> LeaveOneOut(const v1::Store& store,
                                                 absl::Span<const LeftOutRow> rows,
                                                 absl::Span<const Setting> settings, Client* client,
                                                 absl::FunctionRef<void(std::uint64_t)> progress) {
  std::vector<std::vector<Comparison>> comparisons(rows.size());  // By row, then by setting.
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  absl::Mutex mutex;
  // The first failure. `mutex` guards `error`, `done` and the calls of `progress`.
  absl::Status error;
  std::uint64_t done = 0;  // Rows.
  const auto work = [&] {
    for (std::size_t r; !failed && (r = next++) < rows.size();) {
      for (const Setting& setting : settings) {
        if (failed) return;
        absl::StatusOr<Comparison> comparison = Compare(store, rows[r], setting, client);
        if (!comparison.ok()) {
          const absl::MutexLock lock(&mutex);
          error.Update(comparison.status());
          failed = true;
          return;
        }
        comparisons[r].push_back(*comparison);
      }
      const absl::MutexLock lock(&mutex);
      progress(++done);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::min(kTuningCallsMax, rows.size()); ++i)
    threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  CLIENT_RETURN_IF_ERROR(error);

  const bool distributions = ValuesAreDistributions(rows);
  std::vector<Figures> figures;
  for (std::size_t s = 0; s < settings.size(); ++s) {
    Figures& of_setting = figures.emplace_back(Summarize(comparisons, s));
    if (store.value_dim() == 1) of_setting.accuracy.reset();
    if (!distributions) of_setting.log_likelihood.reset();
  }
  return figures;
}

}  // namespace softlookup::tool
