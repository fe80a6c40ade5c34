#include "core/attention/head_query_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/core/attention/pass_tasks.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using ::softlookup::testing::NormalFloats;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsNull;

class HeadQueryRoundTest : public ::testing::Test {
 protected:
  HeadQueryRoundTest() {
    tasks_.Add(TaskOver(rows_, queries_, 0, 20));
    HeadQueryOrder order(tasks_.all());
    while (const std::optional<HeadQueryRef> next = order.Next()) round_.refs.push_back(*next);
    round_.sums_stride = kPassValueDim;
    BeginRound(round_);
  }

  const TestRows rows_{20, kPassKeyDim, kPassValueDim, 1};
  const std::vector<float> queries_ = NormalFloats(3 * kPassKeyDim, 2);
  PassTasks tasks_;
  HeadQueryRound round_;
};

TEST_F(HeadQueryRoundTest, BeginsWithoutRowsAndWithoutCandidates) {
  ASSERT_EQ(round_.size(), 3);
  EXPECT_THAT(round_.candidates, Each(IsNull()));
  EXPECT_EQ(round_.sums, std::vector<double>(3 * kPassValueDim));
  for (std::int64_t q = 0; q < 3; ++q) EXPECT_EQ(round_.StateOf(q).state.counted_rows, 0u);
  round_.sums[0] = 1;
  round_.Begin();
  EXPECT_EQ(round_.size(), 3);
  EXPECT_EQ(round_.sums, std::vector<double>(3 * kPassValueDim));
}

TEST_F(HeadQueryRoundTest, SortsAllThatIsKnownOfAHeadQuery) {
  const Candidates of_second;
  round_.candidates[1] = &of_second;
  std::vector<double> norms;
  for (std::int64_t q = 0; q < 3; ++q) {
    round_.StateOf(q).state.counted_rows = static_cast<std::uint64_t>(10 + q);
    for (std::int64_t i = 0; i < kPassValueDim; ++i) {
      round_.SumsOf(q)[i] = static_cast<double>(10 * q + i);
    }
    norms.push_back(round_.queries[static_cast<std::size_t>(q)].norm);
  }
  round_.Sort({2, 0, 1});
  EXPECT_THAT(round_.candidates, ElementsAre(IsNull(), IsNull(), &of_second));
  EXPECT_THAT(round_.sums, ElementsAre(20, 21, 22, 23, 0, 1, 2, 3, 10, 11, 12, 13));
  const std::vector<std::int64_t> before = {2, 0, 1};
  for (std::int64_t q = 0; q < 3; ++q) {
    const std::int64_t was = before[static_cast<std::size_t>(q)];
    EXPECT_EQ(round_.RefOf(q).number, was);
    EXPECT_EQ(round_.StateOf(q).state.counted_rows, static_cast<std::uint64_t>(10 + was));
    EXPECT_EQ(round_.queries[static_cast<std::size_t>(q)].norm,
              norms[static_cast<std::size_t>(was)]);
  }
}

std::vector<std::int64_t> NumbersOf(const HeadQueryRound& round) {
  std::vector<std::int64_t> numbers;
  for (const HeadQueryRef& ref : round.refs) numbers.push_back(ref.number);
  return numbers;
}

// Queries of one component each, whose errors are as their magnitudes. Two heads.
TEST(HeadQueryRoundSortTest, SortsTheQueriesOfAHeadByTheirErrors) {
  const TestRows rows(20, kPassKeyDim, kPassValueDim, 1);
  const std::vector<float> magnitudes = {4, 9, 1, 6, 3, 2};
  std::vector<float> queries;
  for (const float magnitude : magnitudes) {
    const std::vector<float> query(kPassKeyDim / 2, magnitude);
    queries.insert(queries.end(), query.begin(), query.end());
  }
  for (const bool causal : {false, true}) {
    AttentionTask task = TaskOver(rows, queries, 0, 20);
    task.num_heads = 2;
    task.options.causal = causal;
    PassTasks tasks;
    tasks.Add(task);
    tasks.Add(task);
    HeadQueryOrder order(tasks.all());
    HeadQueryRound round;
    while (const std::optional<HeadQueryRef> next = order.Next()) round.refs.push_back(*next);
    round.sums_stride = kPassValueDim / 2;
    round.Measure(PassThreads(Pool(), 0));
    round.SortByErrors();
    round.Begin();
    // Three queries: 4 and 9, 1 and 6, 3 and 2. Of each head come first those of the first task.
    EXPECT_EQ(NumbersOf(round),
              causal ? std::vector<std::int64_t>({0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5})
                     : std::vector<std::int64_t>({1, 2, 0, 1, 2, 0, 5, 4, 3, 5, 4, 3}));
    std::vector<const PassTask*> tasks_of_refs;
    for (const HeadQueryRef& ref : round.refs) tasks_of_refs.push_back(ref.task);
    const PassTask* const a = tasks.all()[0];
    const PassTask* const b = tasks.all()[1];
    EXPECT_THAT(tasks_of_refs, ElementsAre(a, a, a, b, b, b, a, a, a, b, b, b));
    for (std::int64_t q = 0; q < round.size(); ++q) {
      const auto measured = round.RefOf(q).task->head_queries().Measure(round.RefOf(q).number);
      EXPECT_EQ(round.StateOf(q).query.components, measured.components);
      EXPECT_EQ(round.queries[static_cast<std::size_t>(q)].components, measured.components);
    }
  }
}

}  // namespace
}  // namespace softlookup
