#include "core/attention/pass_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;

TEST(PassThreadsTest, ASmallPassRunsInOrderOnTheCallersThread) {
  ForkJoinPool pool(2, 1);
  const PassThreads threads(pool, kInlineCostMax);
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<std::int64_t> order;
  threads.ForEach(3, [&](std::int64_t i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST(PassThreadsTest, ThePoolHelpsALargePass) {
  ForkJoinPool pool(2, 1);
  const PassThreads threads(pool, 2 * kInlineCostMax);
  // Ends only if two threads are in it at the same time.
  auto* both = new absl::Barrier(2);
  threads.ForEach(2, [&](std::int64_t) {
    if (both->Block()) delete both;
  });
}

}  // namespace
}  // namespace softlookup
