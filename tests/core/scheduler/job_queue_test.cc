#include "core/scheduler/job_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A job that the queue only moves about.
class NamedJob final : public Job {
 public:
  explicit NamedJob(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  void Refuse(absl::Status) override {}
  absl::Status Prepare() override { return absl::OkStatus(); }
  const AttentionTask* task() const override { return nullptr; }
  const CancelToken& cancel() const override { return cancel_; }
  void Finish(absl::StatusOr<AttentionAnswer>, const JobTimes&) override {}

 private:
  const std::string name_;
  const CancelToken cancel_;
};

// A queue whose time is told.
class JobQueueTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kWait = absl::Microseconds(200);
  static constexpr absl::Duration kAnswerTimeMax = absl::Milliseconds(10);

  // Adds a job, unless it is refused.
  bool Add(std::uint64_t store, std::string name, std::int64_t queries = 1, double cost = 1,
           absl::Duration answer_time_max = kAnswerTimeMax) {
    QueuedJob job{.store = store,
                  .query_count = queries,
                  .cost = cost,
                  .reading_cost = reading_cost_,
                  .answer_time_max = answer_time_max};
    refusal_ = queue_.Refusal(job);
    if (refusal_) return false;
    AddAdmitted(store, std::move(name), queries, cost);
    return true;
  }
  void AddAdmitted(std::uint64_t store, std::string name, std::int64_t queries, double cost) {
    QueuedJob job{
        .store = store, .query_count = queries, .cost = cost, .reading_cost = reading_cost_};
    job.job = std::make_unique<NamedJob>(std::move(name));
    queue_.Add(std::move(job), now_);
  }

  // The names of the next batch, which then runs. Empty if there is none.
  std::vector<std::string> Take() {
    std::vector<std::string> names;
    std::optional<Batch> batch = queue_.Take(now_);
    if (!batch) return names;
    store_ = batch->store;
    for (const QueuedJob& job : batch->jobs) {
      names.push_back(static_cast<const NamedJob&>(*job.job).name());
    }
    running_[store_].push_back(*std::move(batch));
    return names;
  }

  // So many jobs of the store's batch are about to be answered.
  void OnAnswers(std::uint64_t store, std::int64_t answered_count) {
    queue_.OnAnswers(running_[store].front(), answered_count, now_);
  }
  // The store's batch has ended.
  void Done(std::uint64_t store, double done_part = 1) {
    queue_.Done(running_[store].front(), now_, done_part);
    running_[store].pop_front();
  }
  void Answer(std::uint64_t store, std::int64_t answered_count) {
    OnAnswers(store, answered_count);
    Done(store);
  }

  absl::Time now_ = absl::UnixEpoch();
  JobQueue queue_{{.queries_max = 4, .wait_max = kWait, .stretch_max = 4}};
  std::map<std::uint64_t, std::deque<Batch>> running_;  // By store.
  double reading_cost_ = 0;
  std::uint64_t store_ = 0;                // Of the last batch.
  std::optional<absl::Duration> refusal_;  // Of the last Add.
};

TEST_F(JobQueueTest, ALoneScanDoesNotWait) {
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_TRUE(Add(1, "a"));
  EXPECT_LE(queue_.NextTime(), now_);
  EXPECT_THAT(Take(), ElementsAre("a"));
  EXPECT_EQ(queue_.NextTime(), absl::InfiniteFuture());
  Done(1);
  EXPECT_TRUE(Add(1, "b"));
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
    AddAdmitted(1, "large", 4, 50);
    AddAdmitted(2, "small", 4, 10);
    AddAdmitted(3, "small", 4, 10);
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

// Has the queue know that work of `kPerSecond` gets done in a second.
class BoundedQueueTest : public JobQueueTest {
 protected:
  static constexpr double kPerSecond = 1e9, kPerMs = 1e6;

  BoundedQueueTest() {
    for (int i = 0; i < 60; ++i) RunOne(kPerSecond / 10, absl::Milliseconds(100));
  }

  void RunOne(double cost, absl::Duration took) {
    Add(9, "measured", 1, cost);
    ASSERT_THAT(Take(), ElementsAre("measured"));
    now_ += took;
    Done(9);
  }
};

TEST_F(BoundedQueueTest, TurnsAwayWhatWouldBeAnsweredTooLate) {
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

TEST_F(BoundedQueueTest, OneThatTakesLongWaitsInProportion) {
  EXPECT_TRUE(Add(1, "huge", 1, 1e6 * kPerMs)) << "where nothing waits";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Add(1, "as huge", 1, 1e6 * kPerMs)) << i;
  EXPECT_FALSE(Add(1, "fifth", 1, 1e6 * kPerMs));
  EXPECT_EQ(*refusal_, absl::Seconds(30)) << "no caller is told to wait for long";
}

TEST_F(BoundedQueueTest, KeepsToTheRateOfLate) {
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
TEST_F(BoundedQueueTest, WorkThatWasCutShortIsNotTakenForDone) {
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(Add(9, "cut", 1, 100 * kPerSecond));
    ASSERT_THAT(Take(), ElementsAre("cut"));
    now_ += absl::Milliseconds(100);
    Done(9, 0);
  }
  EXPECT_TRUE(Add(1, "9 ms", 1, 9 * kPerMs));
  EXPECT_FALSE(Add(1, "2 ms", 1, 2 * kPerMs)) << "the rate is what it was";
}

TEST_F(BoundedQueueTest, WorkThatWasCutShortDidNotDoMoreThanAllOfIt) {
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
TEST_F(BoundedQueueTest, WhatOthersOfABatchGotDoneCounts) {
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

TEST_F(BoundedQueueTest, ALongPassDoesNotMakeTheRestSeemSlow) {
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

TEST_F(BoundedQueueTest, RowsAreReadOnceForABatch) {
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

TEST_F(BoundedQueueTest, ALargeStoreThatIsBehindTurnsNobodyElseAway) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Add(1, "large", 1, 100 * kPerMs));
  EXPECT_FALSE(Add(1, "large", 1, 100 * kPerMs));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Add(2, "small", 1, 0.9 * kPerMs)) << i;
  EXPECT_FALSE(Add(2, "small", 1, kPerMs)) << "as much of the large ones would come between";
}

TEST_F(BoundedQueueTest, ManyStoresTogetherAreBoundedToo) {
  int taken = 0;
  while (Add(100 + taken, "1 ms", 1, 0.99 * kPerMs)) ++taken;
  EXPECT_EQ(taken, 10);
}

TEST_F(BoundedQueueTest, JobsWithoutAStoreAreBoundedAsOneStoreIs) {
  constexpr absl::Duration kMost = absl::Milliseconds(50);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Add(kNoStore, "projection", 1, 9.9 * kPerMs, kMost));
  EXPECT_FALSE(Add(kNoStore, "sixth", 1, 9.9 * kPerMs, kMost));
  EXPECT_TRUE(Add(1, "a", 1, 4.9 * kPerMs)) << "as much of the others comes before it";
  EXPECT_FALSE(Add(1, "b", 1, 2 * kPerMs));
  EXPECT_FALSE(Take().empty());
  EXPECT_FALSE(Take().empty());
  EXPECT_TRUE(Add(kNoStore, "now", 1, 9.9 * kPerMs, kMost));
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
  AddAdmitted(1, "store", 4, 10);
  EXPECT_THAT(Take(), ElementsAre("store"));
  Done(1);
  AddAdmitted(1, "store", 4, 10);
  int others = 0;
  do {
    ASSERT_LT(++others, 20);
    AddAdmitted(kNoStore, "other", 1, 2);
    ASSERT_FALSE(Take().empty());
    Done(store_);
  } while (store_ != 1);
}

TEST_F(JobQueueTest, AShortJobDoesNotWaitBehindLongOnesWithoutAStore) {
  AddAdmitted(kNoStore, "running", 1, 100);
  EXPECT_THAT(Take(), ElementsAre("running"));
  AddAdmitted(kNoStore, "long", 1, 100);
  AddAdmitted(kNoStoreShort, "short", 1, 0);
  EXPECT_THAT(Take(), ElementsAre("short"));
  EXPECT_THAT(Take(), ElementsAre("long"));
}

TEST_F(JobQueueTest, AJobThatDoesNotShareItsScanIsABatchOfItsOwn) {
  Add(1, "a");
  QueuedJob alone{.store = 1, .query_count = 1, .shares_pass = false, .cost = 1};
  alone.job = std::make_unique<NamedJob>("alone");
  queue_.Add(std::move(alone), now_);
  Add(1, "b");
  for (const char* name : {"a", "alone", "b"}) {
    EXPECT_THAT(Take(), ElementsAre(name));
    Done(1);
  }
}

using JobQueueDeathTest = JobQueueTest;

TEST_F(JobQueueDeathTest, AJobMustBeThereAndABatchMustRun) {
  EXPECT_DEATH(queue_.Add({.store = 1, .cost = 1}, now_), "a job of store 1");
  AddAdmitted(1, "a", 1, 1);
  const std::optional<Batch> batch = queue_.Take(now_);
  ASSERT_TRUE(batch);
  queue_.Done(*batch, now_, /*done_part=*/1);
  EXPECT_DEATH(queue_.Done(*batch, now_, /*done_part=*/1), "no batch of store 1 runs");
}

#ifdef SOFTLOOKUP_DCHECKS
TEST_F(JobQueueDeathTest, TimeMustNotGoBack) {
  AddAdmitted(1, "a", 1, 1);
  Take();
  now_ -= absl::Seconds(1);
  EXPECT_DEATH(Done(1), "comes before");
}
#endif

}  // namespace
}  // namespace softlookup
