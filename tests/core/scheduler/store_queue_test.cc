#include "core/scheduler/store_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/core/scheduler/named_job.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;

class StoreQueueTest : public ::testing::Test {
 protected:
  void Add(std::string name, std::int64_t queries, double cost = 1, double reading_cost = 0) {
    queue_.Add(
        Named(std::move(name),
              {.store = 1, .query_count = queries, .cost = cost, .reading_cost = reading_cost}));
  }
  std::vector<std::string> Take() { return NamesOf(queue_.TakeBatch()); }

  StoreQueue queue_{/*queries_max=*/4};
};

TEST_F(StoreQueueTest, ABatchTakesJobsInOrderUntilItIsFull) {
  Add("a", 2);
  Add("b", 2);
  Add("c", 1);
  Add("large", 9);
  EXPECT_EQ(queue_.size(), 4);
  EXPECT_THAT(Take(), ElementsAre("a", "b"));
  EXPECT_THAT(Take(), ElementsAre("c"));
  EXPECT_THAT(Take(), ElementsAre("large"));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(StoreQueueTest, ABatchReadsTheRowsOnce) {
  for (const char* name : {"a", "b", "next"}) Add(name, 2, /*cost=*/1, /*reading_cost=*/3);
  EXPECT_EQ(queue_.waiting_cost(), 9) << "two batches read";
  const Batch batch = queue_.TakeBatch();
  EXPECT_EQ(batch.store, 1u);
  EXPECT_EQ(batch.cost, 5);
  EXPECT_EQ(batch.reading_part, 3.0 / 5);
  EXPECT_EQ(queue_.waiting_cost(), 4);
  queue_.TakeBatch();
  EXPECT_EQ(queue_.waiting_cost(), 0);
}

TEST_F(StoreQueueTest, AJobJoinsTheLastBatchThatHasRoom) {
  const QueuedJob two{.store = 1, .query_count = 2};
  EXPECT_FALSE(queue_.JoinsLast(two)) << "nothing waits";
  Add("a", 2);
  EXPECT_TRUE(queue_.JoinsLast(two));
  EXPECT_FALSE(queue_.JoinsLast({.store = 1, .query_count = 2, .shares_pass = false}));
  Add("b", 1);
  EXPECT_FALSE(queue_.JoinsLast(two));
}

TEST_F(StoreQueueTest, HoldsOneMoreAsLargeAsTheLastBatchHadThem) {
  Add("a", 2);
  Add("b", 2);
  EXPECT_TRUE(queue_.HoldsOneMore()) << "no size is known yet";
  Take();
  Add("c", 2);
  EXPECT_TRUE(queue_.HoldsOneMore());
  Add("d", 1);
  EXPECT_FALSE(queue_.HoldsOneMore());
}

TEST_F(StoreQueueTest, JobsWithoutAStoreAreBatchesOfTheirOwn) {
  for (const char* name : {"a", "b"}) queue_.Add(Named(name, {.store = kNoStore}));
  EXPECT_THAT(Take(), ElementsAre("a"));
  EXPECT_THAT(Take(), ElementsAre("b"));
}

using StoreQueueDeathTest = StoreQueueTest;

TEST_F(StoreQueueDeathTest, ABatchHasAJob) { EXPECT_DEATH(queue_.TakeBatch(), "no job waits"); }

}  // namespace
}  // namespace softlookup
