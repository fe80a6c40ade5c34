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
                     .scan = std::make_unique<NamedScan>(std::move(name))};
    const bool added = queue_.Add(scan, now_, is_admitted);
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

  absl::Time now_ = absl::UnixEpoch();
  BatchQueue queue_{{.queries_max = 4, .wait_max = kWait, .waiting_cost_max = 100}};
  std::uint64_t store_ = 0;  // Of the last batch.
};

TEST_F(BatchQueueTest, ALoneScanDoesNotWait) {
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_TRUE(Add(1, "a"));
  EXPECT_EQ(queue_.NextTime(), now_);
  EXPECT_THAT(Take(), ElementsAre("a"));
  EXPECT_EQ(queue_.NextTime(), absl::InfiniteFuture());
  queue_.Done(1);
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
  queue_.Done(1);
  EXPECT_THAT(Take(), ElementsAre("b", "c"));
}

// It asks again as soon as it is answered, which is before its batch is done.
TEST_F(BatchQueueTest, WhoAsksAloneNeverWaits) {
  Add(1, "a");
  EXPECT_THAT(Take(), ElementsAre("a"));
  Add(1, "a again");
  queue_.Done(1);
  EXPECT_EQ(queue_.NextTime(), now_);
  EXPECT_THAT(Take(), ElementsAre("a again"));
}

TEST_F(BatchQueueTest, WhatComesLateWaitsForThoseWhoAskAgainButNotLong) {
  Add(1, "a");
  Add(1, "b");
  EXPECT_THAT(Take(), ElementsAre("a", "b"));
  Add(1, "late");
  queue_.Done(1);
  EXPECT_EQ(queue_.NextTime(), now_ + kWait);
  now_ += kWait / 2;
  EXPECT_THAT(Take(), IsEmpty());
  Add(1, "again");
  now_ += kWait / 2;
  EXPECT_THAT(Take(), ElementsAre("late", "again")) << "as long as the first waits";
}

TEST_F(BatchQueueTest, DoesNotWaitForAnotherStoresBatch) {
  Add(1, "a");
  EXPECT_THAT(Take(), ElementsAre("a"));
  Add(2, "b");
  EXPECT_THAT(Take(), ElementsAre("b"));
}

TEST_F(BatchQueueTest, AFullBatchDoesNotWait) {
  Add(1, "a");
  EXPECT_THAT(Take(), ElementsAre("a"));
  for (const char* name : {"b", "c", "d", "e"}) Add(1, name);
  queue_.Done(1);
  EXPECT_THAT(Take(), ElementsAre("b", "c", "d", "e"));
  for (const char* name : {"f", "g", "h", "i", "j"}) Add(1, name);
  queue_.Done(1);
  EXPECT_THAT(Take(), ElementsAre("f", "g", "h", "i"));
  queue_.Done(1);
  EXPECT_THAT(Take(), IsEmpty());
  now_ += kWait;
  EXPECT_THAT(Take(), ElementsAre("j"));
}

TEST_F(BatchQueueTest, ScansKeepTheirOrderAndOneLargerThanABatchGoesAlone) {
  Add(1, "a", 3);
  Add(1, "b", 9);
  Add(1, "c", 2);
  Add(1, "d", 2);
  EXPECT_THAT(Take(), ElementsAre("a"));
  queue_.Done(1);
  EXPECT_THAT(Take(), ElementsAre("b"));
  queue_.Done(1);
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
    queue_.Done(i == 0 ? 1 : store_);
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
    queue_.Done(1);
  }
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 6; ++i) {
    Add(1, "a", 4, 10);
    Add(2, "b", 4, 10);
    ASSERT_FALSE(Take().empty());
    order.push_back(store_);
    queue_.Done(store_);
  }
  EXPECT_EQ(std::count(order.begin(), order.end(), 1), 3);
}

TEST_F(BatchQueueTest, TurnsAwayWhatWouldWaitBeyondItsBound) {
  EXPECT_TRUE(Add(1, "huge", 1, 1000)) << "an empty queue takes anything";
  EXPECT_FALSE(Add(2, "b"));
  EXPECT_TRUE(Add(2, "admitted", 1, 1, /*is_admitted=*/true));
  EXPECT_THAT(Take(), ElementsAre("huge"));
  EXPECT_TRUE(Add(2, "c", 1, 99));
  EXPECT_FALSE(Add(2, "d"));
}

}  // namespace
}  // namespace softlookup
