#include "core/batch/batch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct NamedScan : Scan {
  explicit NamedScan(std::string name) : name(std::move(name)) {}
  const std::string name;
};

// A queue whose clock is told.
class BatchQueueTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kWait = absl::Microseconds(200);

  bool Add(std::uint64_t store, std::string name, std::int64_t queries = 1, double cost = 1,
           bool is_admitted = false) {
    WaitingScan scan{.store = store,
                     .query_count = queries,
                     .cost = cost,
                     .reading_cost = reading_cost_,
                     .scan = std::make_unique<NamedScan>(std::move(name))};
    refusal_ = queue_.Add(scan, now_, is_admitted);
    const bool added = !refusal_;
    EXPECT_EQ(added, scan.scan == nullptr) << "what is refused stays the caller's";
    return added;
  }

  // The names of the batch that comes next; none if there is none.
  std::vector<std::string> Take() {
    std::vector<std::string> names;
    const std::optional<Batch> batch = queue_.Take(now_);
    if (!batch) return names;
    store_ = batch->store;
    for (const auto& scan : batch->scans) {
      names.push_back(static_cast<const NamedScan&>(*scan).name);
    }
    return names;
  }

  // The batch of a store was run, and so many of its scans are answered.
  void Answer(std::uint64_t store, std::int64_t scan_count) {
    queue_.Answers(store, scan_count, now_);
    queue_.Done(store, now_, /*done_part=*/1);
  }

  absl::Time now_ = absl::UnixEpoch();
  BatchQueue queue_{{.queries_max = 4,
                     .wait_max = kWait,
                     .answer_max = absl::Milliseconds(10),
                     .stretch_max = 4}};
  double reading_cost_ = 0;
  std::uint64_t store_ = 0;                // Of the last batch.
  std::optional<absl::Duration> refusal_;  // Of the last Add.
};

TEST_F(BatchQueueTest, ALoneScanDoesNotWait) {
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_TRUE(Add(1, "a"));
  EXPECT_LE(queue_.NextTime(), now_);
  EXPECT_THAT(Take(), ElementsAre("a"));
  EXPECT_EQ(queue_.NextTime(), absl::InfiniteFuture());
  queue_.Done(1, now_, /*done_part=*/1);
  EXPECT_TRUE(Add(1, "b"));
  EXPECT_THAT(Take(), ElementsAre("b"));
}

TEST_F(BatchQueueTest, WhatComesWhileItsStoreIsScannedGoesTogether) {
  Add(1, "a");
  EXPECT_THAT(Take(), ElementsAre("a"));
  Add(1, "b");
  Add(1, "c");
  now_ += 10 * kWait;
  EXPECT_THAT(Take(), IsEmpty()) << "one batch a store at a time";
  queue_.Done(1, now_, /*done_part=*/1);
  EXPECT_THAT(Take(), ElementsAre("b", "c"));
}

// It asks again as soon as it is answered, which is before its batch is done.
TEST_F(BatchQueueTest, WhoAsksAloneNeverWaits) {
  reading_cost_ = 1;
  Add(1, "a");
  for (int round = 0; round < 3; ++round) {
    EXPECT_LE(queue_.NextTime(), now_);
    EXPECT_THAT(Take(), ElementsAre("a"));
    now_ += absl::Seconds(1);
    queue_.Answers(1, 1, now_);
    Add(1, "a");
    queue_.Done(1, now_, /*done_part=*/1);
  }
}

// a and b ask again as soon as they are answered.
class ReturningTest : public BatchQueueTest {
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

TEST_F(BatchQueueTest, DoesNotWaitForAnotherStoresBatch) {
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

TEST_F(BatchQueueTest, ScansKeepTheirOrderAndOneLargerThanABatchGoesAlone) {
  Add(1, "a", 3);
  Add(1, "b", 9);
  Add(1, "c", 2);
  Add(1, "d", 2);
  EXPECT_THAT(Take(), ElementsAre("a"));
  queue_.Done(1, now_, /*done_part=*/1);
  EXPECT_THAT(Take(), ElementsAre("b"));
  queue_.Done(1, now_, /*done_part=*/1);
  EXPECT_THAT(Take(), ElementsAre("c", "d"));
}

TEST_F(BatchQueueTest, TheStoreThatWasServedLeastIsNext) {
  // Store 1 always has large scans waiting, 2 and 3 small ones.
  Add(1, "large", 4, 50);
  EXPECT_THAT(Take(), ElementsAre("large"));
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 12; ++i) {
    Add(1, "large", 4, 50, /*is_admitted=*/true);
    Add(2, "small", 4, 10, /*is_admitted=*/true);
    Add(3, "small", 4, 10, /*is_admitted=*/true);
    queue_.Done(i == 0 ? 1 : store_, now_, /*done_part=*/1);
    now_ += kWait;
    Take();
    order.push_back(store_);
  }
  EXPECT_LE(std::count(order.begin(), order.end(), 1), 3);
  EXPECT_GE(std::count(order.begin(), order.end(), 1), 1) << "nor is a large one held up for ever";
}

TEST_F(BatchQueueTest, AStoreThatWasIdleHasSavedNothingUp) {
  for (int i = 0; i < 10; ++i) {
    Add(1, "a", 4, 10);
    EXPECT_THAT(Take(), ElementsAre("a"));
    queue_.Done(1, now_, /*done_part=*/1);
  }
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 6; ++i) {
    Add(1, "a", 4, 10);
    Add(2, "b", 4, 10);
    ASSERT_FALSE(Take().empty());
    order.push_back(store_);
    queue_.Done(store_, now_, /*done_part=*/1);
  }
  EXPECT_EQ(std::count(order.begin(), order.end(), 1), 3);
}

// Has the queue know that work of `kPerSecond` gets done in a second.
class BoundedQueueTest : public BatchQueueTest {
 protected:
  static constexpr double kPerSecond = 1e9, kPerMs = 1e6;

  BoundedQueueTest() {
    for (int i = 0; i < 60; ++i) RunOne(kPerSecond / 10, absl::Milliseconds(100));
  }

  void RunOne(double cost, absl::Duration took) {
    Add(9, "measured", 1, cost);
    ASSERT_THAT(Take(), ElementsAre("measured"));
    now_ += took;
    queue_.Done(9, now_, /*done_part=*/1);
  }
};

TEST_F(BoundedQueueTest, TurnsAwayWhatWouldBeAnsweredTooLate) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Add(1, "1 ms", 1, 0.99 * kPerMs)) << i;
  EXPECT_FALSE(Add(1, "11th", 1, kPerMs));
  EXPECT_FALSE(Add(1, "small", 1, 0.2 * kPerMs)) << "what is before it takes as long";
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*refusal_), 10, 0.2) << "when all that waits has begun";
  EXPECT_TRUE(Add(1, "admitted", 1, kPerMs, /*is_admitted=*/true));
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(Take().empty());
    queue_.Done(1, now_ += absl::Milliseconds(4), /*done_part=*/1);
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
  queue_.Done(1, now_, /*done_part=*/1);
  now_ += absl::Hours(1);  // In which there was nothing to do.
  EXPECT_TRUE(Add(1, "9 ms", 1, 0.9 * kPerMs));
  EXPECT_FALSE(Add(1, "2 ms", 1, 0.2 * kPerMs));
}

// As deadlines do.
TEST_F(BoundedQueueTest, WorkThatWasCutShortIsNotTakenForDone) {
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(Add(9, "cut", 1, 100 * kPerSecond));
    ASSERT_THAT(Take(), ElementsAre("cut"));
    queue_.Done(9, now_ += absl::Milliseconds(100), /*done_part=*/0);
  }
  EXPECT_TRUE(Add(1, "9 ms", 1, 9 * kPerMs));
  EXPECT_FALSE(Add(1, "2 ms", 1, 2 * kPerMs)) << "the rate is what it was";
}

TEST_F(BoundedQueueTest, WorkThatWasCutShortDidNotDoMoreThanAllOfIt) {
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(Add(9, "slow", 1, kPerMs));
    ASSERT_THAT(Take(), ElementsAre("slow"));
    queue_.Done(9, now_ += absl::Milliseconds(100), /*done_part=*/0);
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
    queue_.Done(9, now_ += absl::Milliseconds(95), /*done_part=*/0.95);
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
    queue_.Done(1, now_ += absl::Milliseconds(18), /*done_part=*/1);
  }
  queue_.Done(8, now_, /*done_part=*/0);
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
  queue_.Done(1, now_, /*done_part=*/1);
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

TEST_F(BoundedQueueTest, ARefusalIsKnownBeforehand) {
  WaitingScan scan{.store = 1, .query_count = 1, .cost = 9 * kPerMs};
  EXPECT_EQ(queue_.Refusal(scan), std::nullopt);
  EXPECT_TRUE(Add(1, "9 ms", 1, 9 * kPerMs));
  scan.cost = 2 * kPerMs;
  EXPECT_NE(queue_.Refusal(scan), std::nullopt);
  EXPECT_FALSE(Add(1, "2 ms", 1, 2 * kPerMs));
}

TEST_F(BoundedQueueTest, OtherWorkIsBoundedByItself) {
  constexpr absl::Duration kMost = absl::Milliseconds(50);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(queue_.AddTask(9.9 * kPerMs, kMost), std::nullopt);
  EXPECT_NE(queue_.AddTask(9.9 * kPerMs, kMost), std::nullopt);
  EXPECT_TRUE(Add(1, "a", 1, 4.9 * kPerMs)) << "no more of it comes before than of its own store";
  EXPECT_FALSE(Add(1, "b", 1, 2 * kPerMs));
  const WorkRate::Piece task = queue_.BeginTask(9.9 * kPerMs, now_);
  EXPECT_EQ(queue_.AddTask(9.9 * kPerMs, kMost), std::nullopt);
  queue_.EndTask(task, 9.9 * kPerMs, now_ + absl::Milliseconds(10), /*done_part=*/1);
}

}  // namespace
}  // namespace softlookup
