#include "core/attention/head_query_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/core/attention/pass_tasks.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using ::softlookup::testing::NormalFloats;
using ::testing::ElementsAre;
using ::testing::Pair;

TEST(HeadQueryOrderTest, HeadQueriesThatShareAScanFollowEachOther) {
  const TestRows rows(20, kPassKeyDim, kPassValueDim, 1);
  const std::vector<float> one = NormalFloats(kPassKeyDim, 2),
                           two = NormalFloats(2 * kPassKeyDim, 3);
  PassTasks tasks;
  tasks.Add(TaskOver(rows, one, 0, 20, 1, 2));
  tasks.Add(TaskOver(rows, one, 0, 20, 0.5, 2));  // Another plan.
  tasks.Add(TaskOver(rows, two, 5, 9, 1, 2));
  HeadQueryOrder order(tasks.all());
  std::vector<HeadQueryRef> refs;
  while (const auto ref = order.Next()) refs.push_back(*ref);
  std::vector<std::pair<std::size_t, std::int64_t>> found;
  for (const HeadQueryRef& ref : refs) {
    EXPECT_EQ(ref.task, tasks.all()[ref.task_index]);
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

TEST(HeadQueryOrderTest, TheAgeOfRowsSeparatesHeadQueriesOnlyIfItDecays) {
  const TestRows rows(20, kPassKeyDim, kPassValueDim, 1);
  const std::vector<float> query = NormalFloats(kPassKeyDim, 2);
  PassTasks tasks;
  for (const double ln_decay : {0.0, -0.5}) {
    for (const std::uint64_t age_end : {20, 20, 30}) {
      AttentionTask task = TaskOver(rows, query, 0, 20);
      task.options.ln_decay = ln_decay;
      task.age_end = age_end;
      tasks.Add(task);
    }
  }
  HeadQueryOrder order(tasks.all());
  std::vector<HeadQueryRef> refs;
  while (const auto ref = order.Next()) refs.push_back(*ref);
  ASSERT_EQ(refs.size(), 6u);
  EXPECT_TRUE(order.ShareScan(refs[0], refs[1]));
  EXPECT_TRUE(order.ShareScan(refs[0], refs[2])) << "without decay, ages do not matter";
  EXPECT_FALSE(order.ShareScan(refs[2], refs[3])) << "another decay";
  EXPECT_TRUE(order.ShareScan(refs[3], refs[4]));
  EXPECT_FALSE(order.ShareScan(refs[3], refs[5])) << "other ages";
}

TEST(HeadQueryOrderTest, GoesOnFromACursor) {
  const TestRows rows(20, kPassKeyDim, kPassValueDim, 1);
  const std::vector<float> queries = NormalFloats(3 * kPassKeyDim, 2);
  PassTasks tasks;
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

}  // namespace
}  // namespace softlookup
