#include "core/store/revision_waiters.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;

TEST(RevisionWaitersTest, AWaiterRunsOnce) {
  std::vector<absl::Status> heard;
  RevisionWaiter waiter(2, [&](absl::Status status) { heard.push_back(std::move(status)); });
  EXPECT_FALSE(waiter.done());
  waiter.Finish(absl::OkStatus());
  EXPECT_TRUE(waiter.done());
  waiter.Finish(absl::CancelledError());
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_THAT(heard[0], IsOk());
}

TEST(RevisionWaitersTest, TakesThoseWhoseRevisionIsReached) {
  RevisionWaiters waiters;
  for (const std::uint64_t revision : {5, 3, 4, 3, 9}) {
    waiters.Add(std::make_shared<RevisionWaiter>(revision, [](const auto&) {}));
  }
  EXPECT_TRUE(waiters.TakeReached(2).empty());
  const RevisionWaiters::List reached = waiters.TakeReached(4);
  EXPECT_EQ(reached.size(), 3u);
  for (const auto& waiter : reached) EXPECT_LE(waiter->revision(), 4u);
  EXPECT_EQ(waiters.TakeAll().size(), 2u);
  EXPECT_TRUE(waiters.TakeAll().empty());
}

TEST(RevisionWaitersTest, WaitersThatAreDoneDoNotPileUp) {
  RevisionWaiters waiters;
  const auto patient = std::make_shared<RevisionWaiter>(1, [](const auto&) {});
  waiters.Add(patient);
  for (int i = 0; i < 10'000; ++i) {
    const auto cancelled = std::make_shared<RevisionWaiter>(1, [](const auto&) {});
    waiters.Add(cancelled);
    cancelled->Finish(absl::CancelledError());
  }
  const RevisionWaiters::List left = waiters.TakeAll();
  EXPECT_LE(left.size(), 20u);
  EXPECT_EQ(left.front(), patient);
}

}  // namespace
}  // namespace softlookup
