#include "core/scheduler/job_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/core/scheduler/job_queue_fixture.h"
#include "tests/core/scheduler/named_job.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JobQueueTest : public JobQueueFixture {
 protected:
  // So many jobs of the store's batch are about to be answered.
  void OnAnswers(std::uint64_t store, std::int64_t answered_count) {
    queue_.OnAnswers(running_[store].front(), answered_count, now_);
  }
  void Answer(std::uint64_t store, std::int64_t answered_count) {
    OnAnswers(store, answered_count);
    Done(store);
  }
};

TEST_F(JobQueueTest, ALoneScanDoesNotWait) {
  EXPECT_THAT(Take(), IsEmpty());
  Add(1, "a");
  EXPECT_LE(queue_.NextTime(), now_);
  EXPECT_THAT(Take(), ElementsAre("a"));
  EXPECT_EQ(queue_.NextTime(), absl::InfiniteFuture());
  Done(1);
  Add(1, "b");
  EXPECT_THAT(Take(), ElementsAre("b"));
}

TEST_F(JobQueueTest, WhatComesWhileItsStoreIsScannedGoesTogether) {
  Add(1, "a");
  EXPECT_THAT(Take(), ElementsAre("a"));
  Add(1, "b");
  Add(1, "c");
  now_ += 10 * kWait;
  EXPECT_THAT(Take(), IsEmpty()) << "one batch a store at a time";
  Done(1);
  EXPECT_THAT(Take(), ElementsAre("b", "c"));
}

// It asks again as soon as it is answered, which is before its batch is done.
TEST_F(JobQueueTest, WhoAsksAloneNeverWaits) {
  reading_cost_ = 1;
  Add(1, "a");
  for (int round = 0; round < 3; ++round) {
    EXPECT_LE(queue_.NextTime(), now_);
    EXPECT_THAT(Take(), ElementsAre("a"));
    now_ += absl::Seconds(1);
    OnAnswers(1, 1);
    Add(1, "a");
    Done(1);
  }
}

// a and b ask again as soon as they are answered.
class ReturningTest : public JobQueueTest {
 protected:
  ReturningTest() {
    reading_cost_ = 1;
    Add(1, "a");
    Add(1, "b");
    EXPECT_THAT(Take(), ElementsAre("a", "b"));
    now_ += kPass;
    Answer(1, 2);
    Add(1, "a");
    EXPECT_THAT(Take(), ElementsAre("a")) << "nobody has been seen to return yet";
    Add(1, "b");
    now_ += kPass;
    Answer(1, 1);
    EXPECT_THAT(Take(), IsEmpty());
    Add(1, "a");
    EXPECT_THAT(Take(), ElementsAre("b", "a"));
    now_ += kPass;
  }

  static constexpr absl::Duration kPass = absl::Seconds(1);
};

TEST_F(ReturningTest, WaitsUntilAllWhoWereAnsweredHaveAskedAgain) {
  Add(1, "other");
  Answer(1, 2);
  EXPECT_EQ(queue_.NextTime(), now_ + kWait);
  Add(1, "a");
  EXPECT_THAT(Take(), IsEmpty());
  Add(1, "b");
  EXPECT_THAT(Take(), ElementsAre("other", "a", "b"));
}

TEST_F(ReturningTest, DoesNotWaitLong) {
  Answer(1, 2);
  EXPECT_EQ(queue_.NextTime(), absl::InfiniteFuture()) << "for nobody's sake";
  now_ += kWait / 2;
  Add(1, "a");
  EXPECT_EQ(queue_.NextTime(), now_ + kWait / 2) << "from the answers on";
  EXPECT_THAT(Take(), IsEmpty());
  now_ += kWait / 2;
  EXPECT_THAT(Take(), ElementsAre("a"));
}

TEST_F(ReturningTest, WaitsNoLongerThanReadingTakes) {
  Answer(1, 2);
  Add(1, "a");
  Add(1, "b");
  EXPECT_THAT(Take(), ElementsAre("a", "b"));
  now_ += kWait;
  Answer(1, 2);
  Add(1, "a");
  // 1 of a cost of 3 is reading.
  EXPECT_NEAR(absl::ToDoubleMicroseconds(queue_.NextTime() - now_),
              absl::ToDoubleMicroseconds(kWait) / 3, 0.01);
}

TEST_F(ReturningTest, WaitsForAsManyAsReturnedBefore) {
  Answer(1, 2);
  Add(1, "a");
  now_ += 2 * kWait;
  EXPECT_THAT(Take(), ElementsAre("a")) << "b has gone";
  Add(1, "c");
  now_ += kPass;
  Answer(1, 1);
  EXPECT_THAT(Take(), ElementsAre("c")) << "half of one is nobody";
}

TEST_F(ReturningTest, WhoIsGivenUpIsNotAwaited) {
  Add(1, "a");
  Add(1, "b");  // Both again, before they were answered.
  Answer(1, 0);
  EXPECT_THAT(Take(), ElementsAre("a", "b"));
}

TEST_F(ReturningTest, DoesNotWaitForWhomItHasNoRoom) {
  Answer(1, 2);
  Add(1, "a", 3);
  Add(1, "b", 3);
  EXPECT_THAT(Take(), ElementsAre("a"));
  now_ += kPass;
  Answer(1, 1);
  EXPECT_THAT(Take(), ElementsAre("b"));
}

TEST_F(ReturningTest, AStoreIsNotForgottenWhileItsScansMayReturn) {
  Add(2, "dear", 1, 1000);
  EXPECT_THAT(Take(), ElementsAre("dear"));
  Add(2, "dear");
  Answer(2, 1);
  EXPECT_THAT(Take(), ElementsAre("dear")) << "the other store has been served less by now";
  Answer(1, 2);
  Add(1, "a");
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(JobQueueTest, DoesNotWaitForAnotherStoresBatch) {
  Add(1, "a");
  EXPECT_THAT(Take(), ElementsAre("a"));
  Add(2, "b");
  EXPECT_THAT(Take(), ElementsAre("b"));
}

TEST_F(ReturningTest, AFullBatchDoesNotWait) {
  for (const char* name : {"c", "d", "e", "f", "g"}) Add(1, name);
  Answer(1, 2);
  EXPECT_THAT(Take(), ElementsAre("c", "d", "e", "f"));
}

TEST_F(JobQueueTest, ScansKeepTheirOrderAndOneLargerThanABatchGoesAlone) {
  Add(1, "a", 3);
  Add(1, "b", 9);
  Add(1, "c", 2);
  Add(1, "d", 2);
  EXPECT_THAT(Take(), ElementsAre("a"));
  Done(1);
  EXPECT_THAT(Take(), ElementsAre("b"));
  Done(1);
  EXPECT_THAT(Take(), ElementsAre("c", "d"));
}

TEST_F(JobQueueTest, TheStoreThatWasServedLeastIsNext) {
  // Store 1 always has large scans waiting, 2 and 3 small ones.
  Add(1, "large", 4, 50);
  EXPECT_THAT(Take(), ElementsAre("large"));
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 12; ++i) {
    Add(1, "large", 4, 50);
    Add(2, "small", 4, 10);
    Add(3, "small", 4, 10);
    Done(i == 0 ? 1 : store_);
    now_ += kWait;
    Take();
    order.push_back(store_);
  }
  EXPECT_LE(std::count(order.begin(), order.end(), 1), 3);
  EXPECT_GE(std::count(order.begin(), order.end(), 1), 1) << "nor is a large one held up for ever";
}

TEST_F(JobQueueTest, AStoreThatWasIdleHasSavedNothingUp) {
  for (int i = 0; i < 10; ++i) {
    Add(1, "a", 4, 10);
    EXPECT_THAT(Take(), ElementsAre("a"));
    Done(1);
  }
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 6; ++i) {
    Add(1, "a", 4, 10);
    Add(2, "b", 4, 10);
    ASSERT_FALSE(Take().empty());
    order.push_back(store_);
    Done(store_);
  }
  EXPECT_EQ(std::count(order.begin(), order.end(), 1), 3);
}

TEST_F(JobQueueTest, JobsWithoutAStoreRunSideBySideEachAlone) {
  Add(kNoStore, "a", 1);
  Add(kNoStore, "b", 1);
  EXPECT_THAT(Take(), ElementsAre("a"));
  EXPECT_LE(queue_.NextTime(), now_);
  EXPECT_THAT(Take(), ElementsAre("b"));
  EXPECT_EQ(queue_.size(), 0);
}

// Each comes when the one before has begun, so there is always one of them waiting.
TEST_F(JobQueueTest, JobsWithoutAStoreDoNotStarveAStore) {
  Add(1, "store", 4, 10);
  EXPECT_THAT(Take(), ElementsAre("store"));
  Done(1);
  Add(1, "store", 4, 10);
  int others = 0;
  do {
    ASSERT_LT(++others, 20);
    Add(kNoStore, "other", 1, 2);
    ASSERT_FALSE(Take().empty());
    Done(store_);
  } while (store_ != 1);
}

TEST_F(JobQueueTest, AShortJobDoesNotWaitBehindLongOnesWithoutAStore) {
  Add(kNoStore, "running", 1, 100);
  EXPECT_THAT(Take(), ElementsAre("running"));
  Add(kNoStore, "long", 1, 100);
  Add(kNoStoreShort, "short", 1, 0);
  EXPECT_THAT(Take(), ElementsAre("short"));
  EXPECT_THAT(Take(), ElementsAre("long"));
}

TEST_F(JobQueueTest, AJobThatDoesNotShareItsScanIsABatchOfItsOwn) {
  Add(1, "a");
  queue_.Add(Named("alone", {.store = 1, .shares_pass = false, .cost = 1}), now_);
  Add(1, "b");
  for (const char* name : {"a", "alone", "b"}) {
    EXPECT_THAT(Take(), ElementsAre(name));
    Done(1);
  }
}

using JobQueueDeathTest = JobQueueTest;

TEST_F(JobQueueDeathTest, AJobMustBeThereAndABatchMustRun) {
  EXPECT_DEATH(queue_.Add({.store = 1, .cost = 1}, now_), "a job of store 1");
  Add(1, "a", 1, 1);
  const std::optional<Batch> batch = queue_.Take(now_);
  ASSERT_TRUE(batch);
  queue_.Done(*batch, now_);
  EXPECT_DEATH(queue_.Done(*batch, now_), "no batch of store 1 runs");
}

}  // namespace
}  // namespace softlookup
