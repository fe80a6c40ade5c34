#include "core/scheduler/wait_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/scheduler/job_queue_fixture.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;

// A queue whose jobs are refused as the scheduler refuses them. It is known that work of
// `kPerSecond` gets done in a second.
class WaitBoundTest : public JobQueueFixture {
 protected:
  static constexpr double kPerSecond = 1e9, kPerMs = 1e6;
  static constexpr absl::Duration kAnswerTimeMax = absl::Milliseconds(10);

  WaitBoundTest() {
    for (int i = 0; i < 60; ++i) RunOne(kPerSecond / 10, absl::Milliseconds(100));
  }

  // Adds a job, unless it is refused.
  bool Add(std::uint64_t store, std::string name, std::int64_t queries = 1, double cost = 1,
           absl::Duration answer_time_max = kAnswerTimeMax) {
    const QueuedJob job{.store = store,
                        .query_count = queries,
                        .cost = cost,
                        .reading_cost = reading_cost_,
                        .answer_time_max = answer_time_max};
    refusal_ = RetryDelayOf(job, queue_.WorkUntil(job), rate_, /*stretch_max=*/4);
    if (refusal_) return false;
    AddAdmitted(store, std::move(name), queries, cost);
    return true;
  }
  void AddAdmitted(std::uint64_t store, std::string name, std::int64_t queries, double cost) {
    JobQueueFixture::Add(store, std::move(name), queries, cost);
  }

  // The names of the next batch, which then runs. Empty if there is none.
  std::vector<std::string> Take() {
    std::vector<std::string> names = JobQueueFixture::Take();
    if (!names.empty()) runs_[store_].push_back(rate_.Begin(now_));
    return names;
  }

  // The store's first batch has ended, and this part of its work was done.
  void Done(std::uint64_t store, double done_part = 1) {
    const double cost = JobQueueFixture::Done(store).cost;
    rate_.End(runs_[store].front(), cost, done_part * cost, now_);
    runs_[store].pop_front();
  }

  void RunOne(double cost, absl::Duration took) {
    Add(9, "measured", 1, cost);
    ASSERT_THAT(Take(), ElementsAre("measured"));
    now_ += took;
    Done(9);
  }

  WorkRate rate_;
  std::map<std::uint64_t, std::deque<WorkRate::Run>> runs_;  // Of running_, in the same order.
  std::optional<absl::Duration> refusal_;                    // Of the last Add.
};

TEST_F(WaitBoundTest, TurnsAwayWhatWouldBeAnsweredTooLate) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Add(1, "1 ms", 1, 0.99 * kPerMs)) << i;
  EXPECT_FALSE(Add(1, "11th", 1, kPerMs));
  EXPECT_FALSE(Add(1, "small", 1, 0.2 * kPerMs)) << "what is before it takes as long";
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*refusal_), 10, 0.2) << "when all that waits has begun";
  AddAdmitted(1, "admitted", 1, kPerMs);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(Take().empty());
    now_ += absl::Milliseconds(4);
    Done(1);
  }
  EXPECT_TRUE(Add(1, "again", 1, kPerMs));
}

TEST_F(WaitBoundTest, OneThatTakesLongWaitsInProportion) {
  EXPECT_TRUE(Add(1, "huge", 1, 1e6 * kPerMs)) << "where nothing waits";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Add(1, "as huge", 1, 1e6 * kPerMs)) << i;
  EXPECT_FALSE(Add(1, "fifth", 1, 1e6 * kPerMs));
  EXPECT_EQ(*refusal_, absl::Seconds(30)) << "no caller is told to wait for long";
}

TEST_F(WaitBoundTest, KeepsToTheRateOfLate) {
  for (int i = 0; i < 60; ++i) RunOne(kPerSecond / 100, absl::Milliseconds(100));  // A tenth of it.
  EXPECT_TRUE(Add(1, "9 ms", 1, 0.9 * kPerMs));
  EXPECT_FALSE(Add(1, "2 ms", 1, 0.2 * kPerMs));
  EXPECT_THAT(Take(), ElementsAre("9 ms"));
  Done(1);
  now_ += absl::Hours(1);  // In which there was nothing to do.
  EXPECT_TRUE(Add(1, "9 ms", 1, 0.9 * kPerMs));
  EXPECT_FALSE(Add(1, "2 ms", 1, 0.2 * kPerMs));
}

// As deadlines do.
TEST_F(WaitBoundTest, WorkThatWasCutShortIsNotTakenForDone) {
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(Add(9, "cut", 1, 100 * kPerSecond));
    ASSERT_THAT(Take(), ElementsAre("cut"));
    now_ += absl::Milliseconds(100);
    Done(9, 0);
  }
  EXPECT_TRUE(Add(1, "9 ms", 1, 9 * kPerMs));
  EXPECT_FALSE(Add(1, "2 ms", 1, 2 * kPerMs)) << "the rate is what it was";
}

TEST_F(WaitBoundTest, WorkThatWasCutShortDidNotDoMoreThanAllOfIt) {
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(Add(9, "slow", 1, kPerMs));
    ASSERT_THAT(Take(), ElementsAre("slow"));
    now_ += absl::Milliseconds(100);
    Done(9, 0);
  }
  EXPECT_TRUE(Add(1, "9 ms by now", 1, 0.09 * kPerMs));
  EXPECT_FALSE(Add(1, "2 ms by now", 1, 0.02 * kPerMs)) << "at a hundredth of the rate";
}

// So the rate comes back after a pause, though in every batch there is one who gives up.
TEST_F(WaitBoundTest, WhatOthersOfABatchGotDoneCounts) {
  RunOne(kPerMs, absl::Seconds(10));
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(Add(9, "nearly", 1, kPerSecond / 10));
    ASSERT_THAT(Take(), ElementsAre("nearly"));
    now_ += absl::Milliseconds(95);
    Done(9, 0.95);
  }
  EXPECT_TRUE(Add(1, "9 ms", 1, 9 * kPerMs));
  EXPECT_FALSE(Add(1, "2 ms", 1, 2 * kPerMs));
}

TEST_F(WaitBoundTest, ALongPassDoesNotMakeTheRestSeemSlow) {
  ASSERT_TRUE(Add(8, "long", 1, 10 * kPerSecond));
  ASSERT_THAT(Take(), ElementsAre("long"));
  // It has half of the threads.
  for (int i = 0; i < 100; ++i) {
    RunOne(kPerSecond / 20, absl::Milliseconds(100));
    ASSERT_TRUE(Add(1, "9 ms", 1, 9 * kPerMs)) << i;
    ASSERT_FALSE(Add(1, "2 ms", 1, 2 * kPerMs)) << i;
    ASSERT_FALSE(Take().empty());
    now_ += absl::Milliseconds(18);
    Done(1);
  }
  Done(8, 0);
  EXPECT_TRUE(Add(1, "9 ms", 1, 9 * kPerMs));
  EXPECT_FALSE(Add(1, "2 ms", 1, 2 * kPerMs));
}

TEST_F(WaitBoundTest, RowsAreReadOnceForABatch) {
  reading_cost_ = 4 * kPerMs;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Add(1, "1 ms", 1, kPerMs)) << i;
  EXPECT_NEAR(queue_.waiting_cost(), 8 * kPerMs, 1);
  EXPECT_TRUE(Add(1, "next batch", 1, kPerMs)) << "13 ms are within four times 5";
  EXPECT_NEAR(queue_.waiting_cost(), 13 * kPerMs, 1);
  EXPECT_TRUE(Add(1, "with it", 1, kPerMs));
  EXPECT_NEAR(queue_.waiting_cost(), 14 * kPerMs, 1);
  EXPECT_EQ(Take().size(), 4u);
  EXPECT_NEAR(queue_.waiting_cost(), 6 * kPerMs, 1);
  Done(1);
  EXPECT_EQ(Take().size(), 2u);
  EXPECT_EQ(queue_.waiting_cost(), 0);
}

TEST_F(WaitBoundTest, ALargeStoreThatIsBehindTurnsNobodyElseAway) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Add(1, "large", 1, 100 * kPerMs));
  EXPECT_FALSE(Add(1, "large", 1, 100 * kPerMs));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Add(2, "small", 1, 0.9 * kPerMs)) << i;
  EXPECT_FALSE(Add(2, "small", 1, kPerMs)) << "as much of the large ones would come between";
}

TEST_F(WaitBoundTest, ManyStoresTogetherAreBoundedToo) {
  int taken = 0;
  while (Add(100 + taken, "1 ms", 1, 0.99 * kPerMs)) ++taken;
  EXPECT_EQ(taken, 10);
}

TEST_F(WaitBoundTest, JobsWithoutAStoreAreBoundedAsOneStoreIs) {
  constexpr absl::Duration kMost = absl::Milliseconds(50);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Add(kNoStore, "projection", 1, 9.9 * kPerMs, kMost));
  EXPECT_FALSE(Add(kNoStore, "sixth", 1, 9.9 * kPerMs, kMost));
  EXPECT_TRUE(Add(1, "a", 1, 4.9 * kPerMs)) << "as much of the others comes before it";
  EXPECT_FALSE(Add(1, "b", 1, 2 * kPerMs));
  EXPECT_FALSE(Take().empty());
  EXPECT_FALSE(Take().empty());
  EXPECT_TRUE(Add(kNoStore, "now", 1, 9.9 * kPerMs, kMost));
}

}  // namespace
}  // namespace softlookup
