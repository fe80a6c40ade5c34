#ifndef SOFTLOOKUP_TESTS_CORE_ATTENTION_PLAYED_PASS_H_
#define SOFTLOOKUP_TESTS_CORE_ATTENTION_PLAYED_PASS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/attention/task_answer.h"
#include "tests/core/attention/test_rows.h"

namespace softlookup {

// Component `i` of the value of the row at `position`, in RowsWithKnownValues.
inline double KnownValue(std::uint64_t position, std::int64_t i) {
  return static_cast<double>(10 * position) + static_cast<double>(i);
}

inline constexpr std::int64_t kKnownRows = 2500, kKnownDim = 4;

// Rows of several blocks. Their keys are 0: nothing here scores them.
inline const TestRows& RowsWithKnownValues() {
  static const TestRows& rows = *[] {
    std::vector<float> values;
    for (std::int64_t p = 0; p < kKnownRows; ++p) {
      for (std::int64_t i = 0; i < kKnownDim; ++i) {
        values.push_back(static_cast<float>(KnownValue(static_cast<std::uint64_t>(p), i)));
      }
    }
    return new TestRows(kKnownRows, kKnownDim, kKnownDim,
                        std::vector<float>(kKnownRows * kKnownDim), values);
  }();
  return rows;
}

inline const std::vector<float>& OneQuery() {
  static const auto& query = *new std::vector<float>{1, 2, 3, 4};
  return query;
}

// The task refers to `queries`.
inline AttentionTask TaskOf(const ResolvedOptions& options, std::int64_t num_heads = 1,
                            const std::vector<float>& queries = OneQuery()) {
  return RowsWithKnownValues().Task(queries, options, num_heads);
}

inline std::vector<std::uint64_t> PositionsOf(const QueryWeights& weights) {
  std::vector<std::uint64_t> positions;
  for (const WeightedRow& row : weights.rows) positions.push_back(row.position);
  return positions;
}

// Plays the pass that a TaskAnswer needs. The test says what it finds, and nothing is scanned.
class PlayedPass {
 public:
  // What the task refers to must outlive this object.
  explicit PlayedPass(const AttentionTask& task, absl::Time deadline = absl::InfiniteFuture())
      : task_(task), cancel_(deadline), answer_(task_, cancel_) {}

  // Begins the answer and its head queries.
  absl::Status Begin() {
    const absl::Status status = answer_.Begin();
    for (std::int64_t q = 0; status.ok() && q < head_queries().count(); ++q) {
      double* sums =
          sums_.emplace_back(head_queries().sums_values() ? head_queries().head_value_dim() : 0)
              .data();
      states_.push_back(head_queries().Begin(q, head_queries().Measure(q), collectors_, sums));
    }
    return status;
  }

  // Lets a head query find `rows`, all at once, as if they were one block.
  void Find(std::int64_t head_query, const std::vector<CountedRow>& rows) {
    HeadQueryState& found = state(head_query);
    const std::int64_t first_component =
        head_queries().HeadOf(head_query) * head_queries().head_value_dim();
    PartialState later{.counted_rows = rows.size(),
                       .summed_rows = head_queries().sums_values() ? rows.size() : 0};
    for (const CountedRow& row : rows) {
      if (row.logit > later.max_logit) later.max_position = row.position;
      later.max_logit = std::max(later.max_logit, row.logit);
    }
    std::vector<double>& sums = sums_[static_cast<std::size_t>(head_query)];
    std::vector<double> later_sums(sums.size());
    for (const CountedRow& row : rows) {
      const double shifted = row.logit - later.max_logit;
      const double weight =
          head_queries().merge_mode() == Mode::kLinear ? row.logit : std::exp(shifted);
      later.weight += weight;
      later.weighted += weight * shifted;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        later_sums[i] +=
            weight * KnownValue(row.position, first_component + static_cast<std::int64_t>(i));
      }
    }
    Merge(head_queries().merge_mode(), later, later_sums, found.state, absl::MakeSpan(sums));
    for (TopRows* collector : {found.query.top_rows, found.query.first_rows}) {
      if (collector != nullptr) collector->Add(rows);
    }
  }

  // Counts what all head queries list, and finishes them.
  void Finish() {
    for (const HeadQueryState& found : states_) answer_.CountListed(found);
    for (std::int64_t q = 0; q < head_queries().count(); ++q) {
      answer_.FinishHeadQuery(q, state(q), sums_[static_cast<std::size_t>(q)].data());
    }
  }

  // Finishes all head queries and returns the answer, which must be OK.
  AttentionAnswer MustFinish() {
    Finish();
    absl::StatusOr<AttentionAnswer> answer = answer_.Take();
    EXPECT_THAT(answer, testing::IsOk());
    return answer.ok() ? *std::move(answer) : AttentionAnswer{};
  }

  TaskAnswer& answer() { return answer_; }
  HeadQueries& head_queries() { return answer_.pass_task().head_queries(); }
  CancelToken& cancel() { return cancel_; }
  HeadQueryState& state(std::int64_t head_query) {
    return states_.at(static_cast<std::size_t>(head_query));
  }

 private:
  const AttentionTask task_;
  CancelToken cancel_;
  TaskAnswer answer_;
  std::deque<TopRows> collectors_;
  std::vector<std::vector<double>> sums_;
  std::vector<HeadQueryState> states_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_TESTS_CORE_ATTENTION_PLAYED_PASS_H_
