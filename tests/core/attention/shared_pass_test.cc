#include "core/attention/shared_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "core/attention/aligned_blocks.h"
#include "core/attention/head_query_order.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::Pair;

constexpr std::int64_t kKeyDim = 8, kValueDim = 4;

// Tasks of a pass that have begun.
class Tasks {
 public:
  void Add(const AttentionTask& task) {
    const CancelToken& cancel = cancels_.emplace_back();
    const AttentionTask& kept = tasks_.emplace_back(task);
    EXPECT_TRUE(answers_.emplace_back(kept, cancel).Begin().ok());
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

AttentionTask TaskOver(const TestRows& rows, const std::vector<float>& queries, std::uint64_t begin,
                       std::uint64_t end, double temperature = 1, std::int64_t num_heads = 1) {
  AttentionTask task = rows.Task(queries, {.temperature = temperature}, num_heads);
  task.begin = begin;
  task.end = end;
  return task;
}

TEST(HeadQueryOrderTest, HeadQueriesThatShareAScanFollowEachOther) {
  const TestRows rows(20, kKeyDim, kValueDim, 1);
  const std::vector<float> one = NormalFloats(kKeyDim, 2), two = NormalFloats(2 * kKeyDim, 3);
  Tasks tasks;
  tasks.Add(TaskOver(rows, one, 0, 20, 1, 2));
  tasks.Add(TaskOver(rows, one, 0, 20, 0.5, 2));  // Another plan.
  tasks.Add(TaskOver(rows, two, 5, 9, 1, 2));
  HeadQueryOrder order(tasks.all());
  std::vector<HeadQueryRef> refs;
  while (const auto ref = order.Next()) refs.push_back(*ref);
  std::vector<std::pair<std::size_t, std::int64_t>> found;
  for (const HeadQueryRef& ref : refs) {
    EXPECT_EQ(ref.answer, tasks.all()[ref.task_index]);
    found.emplace_back(ref.task_index, ref.number);
  }
  ASSERT_THAT(found, ElementsAre(Pair(0, 0), Pair(2, 0), Pair(2, 1),  // Head 0 of the first plan,
                                 Pair(0, 1), Pair(2, 2), Pair(2, 3),  // head 1 of it,
                                 Pair(1, 0), Pair(1, 1)));            // and the second plan.
  EXPECT_TRUE(order.ShareScan(refs[0], refs[1]));
  EXPECT_TRUE(order.ShareScan(refs[0], refs[2]));
  EXPECT_FALSE(order.ShareScan(refs[2], refs[3])) << "another head";
  EXPECT_FALSE(order.ShareScan(refs[0], refs[6])) << "another temperature";
}

TEST(HeadQueryOrderTest, GoesOnFromACursor) {
  const TestRows rows(20, kKeyDim, kValueDim, 1);
  const std::vector<float> queries = NormalFloats(3 * kKeyDim, 2);
  Tasks tasks;
  tasks.Add(TaskOver(rows, queries, 0, 20));
  HeadQueryOrder order(tasks.all());
  order.Next();
  const HeadQueryOrder::Cursor behind_first = order.cursor();
  while (order.Next()) {
  }
  order.SeekTo(behind_first);
  EXPECT_EQ(order.Next()->number, 1);
  EXPECT_EQ(order.Next()->number, 2);
  EXPECT_FALSE(order.Next());
}

TEST(AlignedBlocksTest, UnitesTheRowsOfAllTasks) {
  const TestRows rows(3000, kKeyDim, kValueDim, 1);
  const std::vector<float> queries = NormalFloats(kKeyDim, 2);
  Tasks tasks;
  tasks.Add(TaskOver(rows, queries, 100, 200));
  tasks.Add(TaskOver(rows, queries, 50, 2100));
  AttentionTask last_block = TaskOver(rows, queries, 2048, 3000);
  last_block.blocks = last_block.blocks.subspan(2);
  tasks.Add(last_block);
  const AlignedBlocks blocks(tasks.all());
  ASSERT_EQ(blocks.count(), 3);
  EXPECT_EQ(blocks.Of(2, 0), nullptr);
  EXPECT_EQ(blocks.Of(2, 1), nullptr);
  EXPECT_EQ(blocks.Of(2, 2)->first_position, 2048);
  EXPECT_EQ(blocks.Of(0, 1)->first_position, 1024);
  const auto bounds = [&](std::int64_t block) {
    return std::pair(blocks.rows(block).begin, blocks.rows(block).end);
  };
  EXPECT_THAT(bounds(0), Pair(50, 1024));
  EXPECT_THAT(bounds(1), Pair(0, 1024));
  EXPECT_THAT(bounds(2), Pair(0, 3000 - 2048));
  EXPECT_EQ(blocks.row_bytes(), (kKeyDim + kValueDim) * 4);
  EXPECT_EQ(blocks.group_of(0), blocks.group_of(2));
}

TEST(AlignedBlocksTest, GroupsFollowTheNumbersOfTheBlocks) {
  const TestRows rows(10 * 1024, 1, 1, 1);
  const std::vector<float> queries = NormalFloats(1, 2);
  Tasks tasks;
  AttentionTask task = TaskOver(rows, queries, 5 * 1024, 10 * 1024);
  task.blocks = task.blocks.subspan(5);
  tasks.Add(task);
  const AlignedBlocks blocks(tasks.all());
  // Blocks 5 to 7, then 8 and 9.
  EXPECT_EQ(blocks.group_of(0), blocks.group_of(2));
  EXPECT_NE(blocks.group_of(2), blocks.group_of(3));
  EXPECT_EQ(blocks.group_of(3), blocks.group_of(4));
}

TEST(SharedPassTest, CountsARowOnceForAllTasks) {
  const TestRows rows(3000, kKeyDim, kValueDim, 1);
  const std::vector<float> queries = NormalFloats(20 * kKeyDim, 2);
  Tasks tasks;
  for (int i = 0; i < 3; ++i) tasks.Add(TaskOver(rows, queries, 0, 3000));
  const ScannedRows scanned = SharedPass(tasks.all(), Pool()).Run();
  EXPECT_EQ(scanned.rows, 3000);
  EXPECT_EQ(scanned.bytes, 3000 * (kKeyDim + kValueDim) * 4);
}

TEST(SharedPassTest, ACancelledTaskLeavesTheOthersTheirBits) {
  const TestRows rows(3000, kKeyDim, kValueDim, 1);
  const std::vector<float> queries = NormalFloats(20 * kKeyDim, 2);
  const AttentionAnswer alone = MustAttend(TaskOver(rows, queries, 0, 3000));
  Tasks tasks;
  for (int i = 0; i < 3; ++i) tasks.Add(TaskOver(rows, queries, 0, 3000));
  tasks.cancel(1).Cancel();
  SharedPass(tasks.all(), Pool()).Run();
  EXPECT_EQ(tasks[0].Take()->values, alone.values);
  EXPECT_THAT(tasks[1].Take(), StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(tasks[2].Take()->values, alone.values);
}

TEST(SharedPassTest, ACancelledTaskLeavesTheOthersTheirBitsWhereRowsAreLeftOut) {
  constexpr std::int64_t kDim = 33;  // Enough for sketches, and for one head.
  const TestRows rows(6000, kDim, kValueDim, 1);
  const std::vector<float> queries = NormalFloats(5 * kDim, 2);
  const AttentionTask task = rows.Task(queries, {.temperature = 0.01});
  const AttentionAnswer alone = MustAttend(task);
  ASSERT_LT(alone.stats[0].summed_rows, alone.stats[0].counted_rows);
  for (const std::size_t cancelled : {0, 1}) {
    Tasks tasks;
    for (int i = 0; i < 2; ++i) tasks.Add(task);
    tasks.cancel(cancelled).Cancel();
    SharedPass(tasks.all(), Pool()).Run();
    EXPECT_EQ(tasks[1 - cancelled].Take()->values, alone.values);
    EXPECT_THAT(tasks[cancelled].Take(), StatusIs(absl::StatusCode::kCancelled, ""));
  }
}

TEST(SharedPassTest, AllCancelledTasksAreNotScanned) {
  const TestRows rows(3000, kKeyDim, kValueDim, 1);
  const std::vector<float> queries = NormalFloats(kKeyDim, 2);
  Tasks tasks;
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
