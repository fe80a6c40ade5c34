#include "core/attention/shared_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "core/attention/task_answer.h"
#include "tests/core/attention/pass_tasks.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::StatusIs;

// Answers to the tasks of a pass, begun.
class BegunAnswers {
 public:
  void Add(const AttentionTask& task) {
    const CancelToken& cancel = cancels_.emplace_back();
    const AttentionTask& kept = tasks_.emplace_back(task);
    EXPECT_THAT(answers_.emplace_back(kept, cancel).Begin(), IsOk());
    pointers_.push_back(&answers_.back());
  }
  absl::Span<TaskAnswer* const> all() const { return pointers_; }
  CancelToken& cancel(std::size_t task) { return cancels_[task]; }
  TaskAnswer& operator[](std::size_t task) { return answers_[task]; }

 private:
  std::deque<CancelToken> cancels_;
  std::deque<AttentionTask> tasks_;
  std::deque<TaskAnswer> answers_;
  std::vector<TaskAnswer*> pointers_;
};

TEST(SharedPassTest, CountsARowOnceForAllTasks) {
  const TestRows rows(3000, kPassKeyDim, kPassValueDim, 1);
  const std::vector<float> queries = NormalFloats(20 * kPassKeyDim, 2);
  BegunAnswers answers;
  for (int i = 0; i < 3; ++i) answers.Add(TaskOver(rows, queries, 0, 3000));
  const ScannedRows scanned = SharedPass(answers.all(), Pool()).Run();
  EXPECT_EQ(scanned.rows, 3000);
  EXPECT_EQ(scanned.bytes, 3000 * (kPassKeyDim + kPassValueDim) * 4);
}

TEST(SharedPassTest, ACancelledTaskLeavesTheOthersTheirBits) {
  const TestRows rows(3000, kPassKeyDim, kPassValueDim, 1);
  const std::vector<float> queries = NormalFloats(20 * kPassKeyDim, 2);
  const AttentionAnswer alone = MustAttend(TaskOver(rows, queries, 0, 3000));
  BegunAnswers answers;
  for (int i = 0; i < 3; ++i) answers.Add(TaskOver(rows, queries, 0, 3000));
  answers.cancel(1).Cancel();
  SharedPass(answers.all(), Pool()).Run();
  EXPECT_EQ(answers[0].Take()->values, alone.values);
  EXPECT_THAT(answers[1].Take(), StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(answers[2].Take()->values, alone.values);
}

TEST(SharedPassTest, ACancelledTaskLeavesTheOthersTheirBitsWhereRowsAreLeftOut) {
  constexpr std::int64_t kDim = 33;  // Enough for sketches, and for one head.
  const TestRows rows(6000, kDim, kPassValueDim, 1);
  const std::vector<float> queries = NormalFloats(5 * kDim, 2);
  const AttentionTask task = rows.Task(queries, {.temperature = 0.01});
  const AttentionAnswer alone = MustAttend(task);
  ASSERT_LT(alone.stats[0].summed_rows, alone.stats[0].counted_rows);
  for (const std::size_t cancelled : {0, 1}) {
    BegunAnswers answers;
    for (int i = 0; i < 2; ++i) answers.Add(task);
    answers.cancel(cancelled).Cancel();
    SharedPass(answers.all(), Pool()).Run();
    EXPECT_EQ(answers[1 - cancelled].Take()->values, alone.values);
    EXPECT_THAT(answers[cancelled].Take(), StatusIs(absl::StatusCode::kCancelled, ""));
  }
}

TEST(SharedPassTest, AllCancelledTasksAreNotScanned) {
  const TestRows rows(3000, kPassKeyDim, kPassValueDim, 1);
  const std::vector<float> queries = NormalFloats(kPassKeyDim, 2);
  BegunAnswers answers;
  answers.Add(TaskOver(rows, queries, 0, 3000));
  answers.cancel(0).Cancel();
  EXPECT_EQ(SharedPass(answers.all(), Pool()).Run().rows, 0);
}

// A round has few head queries when each may collect many best rows, so the pass has several.
TEST(SharedPassTest, SeveralRoundsHaveTheBitsOfOne) {
  const TestRows rows(40'000, 4, 1, 1);
  const std::vector<float> queries = NormalFloats(40 * 4, 2);
  const ResolvedOptions options{.top_k = 20'000};
  const AttentionTask together = rows.Task(queries, options);
  ASSERT_GT(40 * TopRows::BytesMax(20'000), 2 * kCollectorBytesMax);
  const AttentionAnswer answer = MustAttend(together);
  for (std::int64_t t : {0, 16, 39}) {
    const std::vector<float> one(queries.begin() + t * 4, queries.begin() + (t + 1) * 4);
    EXPECT_EQ(MustAttend(rows.Task(one, options)).values[0], answer.values[t]) << "query " << t;
  }
}

}  // namespace
}  // namespace softlookup
