#include "core/attention/shared_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/core/attention/begun_tasks.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::StatusIs;

TEST(SharedPassTest, CountsARowOnceForAllTasks) {
  const TestRows rows(3000, kPassKeyDim, kPassValueDim, 1);
  const std::vector<float> queries = NormalFloats(20 * kPassKeyDim, 2);
  BegunTasks tasks;
  for (int i = 0; i < 3; ++i) tasks.Add(TaskOver(rows, queries, 0, 3000));
  const ScannedRows scanned = SharedPass(tasks.all(), Pool()).Run();
  EXPECT_EQ(scanned.rows, 3000);
  EXPECT_EQ(scanned.bytes, 3000 * (kPassKeyDim + kPassValueDim) * 4);
}

TEST(SharedPassTest, ACancelledTaskLeavesTheOthersTheirBits) {
  const TestRows rows(3000, kPassKeyDim, kPassValueDim, 1);
  const std::vector<float> queries = NormalFloats(20 * kPassKeyDim, 2);
  const AttentionAnswer alone = MustAttend(TaskOver(rows, queries, 0, 3000));
  BegunTasks tasks;
  for (int i = 0; i < 3; ++i) tasks.Add(TaskOver(rows, queries, 0, 3000));
  tasks.cancel(1).Cancel();
  SharedPass(tasks.all(), Pool()).Run();
  EXPECT_EQ(tasks[0].Take()->values, alone.values);
  EXPECT_THAT(tasks[1].Take(), StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(tasks[2].Take()->values, alone.values);
}

TEST(SharedPassTest, ACancelledTaskLeavesTheOthersTheirBitsWhereRowsAreLeftOut) {
  constexpr std::int64_t kDim = 33;  // Enough for sketches, and for one head.
  const TestRows rows(6000, kDim, kPassValueDim, 1);
  const std::vector<float> queries = NormalFloats(5 * kDim, 2);
  const AttentionTask task = rows.Task(queries, {.temperature = 0.01});
  const AttentionAnswer alone = MustAttend(task);
  ASSERT_LT(alone.stats[0].summed_rows, alone.stats[0].counted_rows);
  for (const std::size_t cancelled : {0, 1}) {
    BegunTasks tasks;
    for (int i = 0; i < 2; ++i) tasks.Add(task);
    tasks.cancel(cancelled).Cancel();
    SharedPass(tasks.all(), Pool()).Run();
    EXPECT_EQ(tasks[1 - cancelled].Take()->values, alone.values);
    EXPECT_THAT(tasks[cancelled].Take(), StatusIs(absl::StatusCode::kCancelled, ""));
  }
}

TEST(SharedPassTest, AllCancelledTasksAreNotScanned) {
  const TestRows rows(3000, kPassKeyDim, kPassValueDim, 1);
  const std::vector<float> queries = NormalFloats(kPassKeyDim, 2);
  BegunTasks tasks;
  tasks.Add(TaskOver(rows, queries, 0, 3000));
  tasks.cancel(0).Cancel();
  EXPECT_EQ(SharedPass(tasks.all(), Pool()).Run().rows, 0);
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
