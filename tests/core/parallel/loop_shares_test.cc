#include "core/parallel/loop_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

namespace softlookup {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<std::int64_t> TakeAll(LoopShares& shares, int own) {
  std::vector<std::int64_t> taken;
  while (const std::optional<std::int64_t> i = shares.Take(own)) taken.push_back(*i);
  return taken;
}

TEST(LoopSharesTest, BeginsWithTheOwnShareAndGoesOnWithTheNext) {
  LoopShares shares(7, 3);  // Shares of 2, 2 and 3 iterations.
  EXPECT_THAT(TakeAll(shares, 1), ElementsAre(2, 3, 4, 5, 6, 0, 1));
  EXPECT_EQ(shares.Take(0), std::nullopt);
}

TEST(LoopSharesTest, ThreadsBeyondTheSharesBeginWithOneOfThem) {
  LoopShares shares(4, 2);
  EXPECT_EQ(shares.Take(3), 2);
  EXPECT_EQ(shares.Take(1), 3);
  EXPECT_EQ(shares.Take(0), 0);
}

TEST(LoopSharesTest, ThreadsTakeEachIterationOnce) {
  constexpr std::int64_t kCount = 10'000;
  LoopShares shares(kCount, 3);
  std::vector<std::atomic<int>> taken(kCount);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&shares, &taken, t] {
      for (const std::int64_t i : TakeAll(shares, t)) ++taken[static_cast<std::size_t>(i)];
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int> counts(taken.begin(), taken.end());
  EXPECT_THAT(counts, Each(1));
}

}  // namespace
}  // namespace softlookup
