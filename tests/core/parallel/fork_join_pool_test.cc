#include "core/parallel/fork_join_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace softlookup {
namespace {

TEST(ForkJoinPoolTest, RunsEveryIterationOnce) {
  ForkJoinPool pool(3, 8);
  for (const std::int64_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> runs(count);
    pool.ForkJoin(count, [&](std::int64_t i) { ++runs[i]; });
    for (const auto& run : runs) ASSERT_EQ(run, 1);
  }
}

TEST(ForkJoinPoolTest, ServesManyCallersAtOnce) {
  ForkJoinPool pool(2, 8);
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        pool.ForkJoin(20, [&](std::int64_t i) { sum += i; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 8 * 50 * 190);
}

TEST(ForkJoinPoolTest, IdleThreadsHelpALoop) {
  ForkJoinPool pool(2, 8);
  // Ends only if two threads are in it at the same time.
  auto* both = new absl::Barrier(2);
  pool.ForkJoin(2, [&](std::int64_t) {
    if (both->Block()) delete both;
  });
}

TEST(ForkJoinPoolTest, EachThreadBeginsWithItsOwnPart) {
  ForkJoinPool pool(2, 8);
  std::map<std::thread::id, std::int64_t> first_before;
  for (int round = 0; round < 5; ++round) {
    absl::Mutex mutex;
    std::map<std::thread::id, std::int64_t> first;
    auto* both = new absl::Barrier(2);
    absl::Notification done;
    ASSERT_TRUE(pool.Post([&] {
      pool.ForkJoin(100, [&](std::int64_t i) {
        {
          absl::MutexLock lock(&mutex);
          if (!first.emplace(std::this_thread::get_id(), i).second) return;
        }
        // Nobody takes a second one before the other has a first one.
        if (both->Block()) delete both;
      });
      done.Notify();
    }));
    done.WaitForNotification();
    EXPECT_THAT(first, ::testing::UnorderedElementsAre(::testing::Pair(::testing::_, 0),
                                                       ::testing::Pair(::testing::_, 50)));
    if (round > 0) {
      EXPECT_EQ(first, first_before);
    }
    first_before = first;
  }
}

TEST(ForkJoinPoolTest, ATaskMayForkEvenOnOneThread) {
  ForkJoinPool pool(1, 8);
  absl::Notification done;
  std::atomic<int> runs{0};
  ASSERT_TRUE(pool.Post([&] {
    pool.ForkJoin(10, [&](std::int64_t) { ++runs; });
    done.Notify();
  }));
  done.WaitForNotification();
  EXPECT_EQ(runs, 10);
}

TEST(ForkJoinPoolTest, AnIterationMayFork) {
  for (const int thread_count : {1, 3}) {
    ForkJoinPool pool(thread_count, 8);
    std::atomic<std::int64_t> sum{0};
    pool.ForkJoin(20, [&](std::int64_t i) {
      pool.ForkJoin(10, [&](std::int64_t j) {
        pool.ForkJoin(2, [&](std::int64_t k) { sum += 100 * i + 10 * j + k; });
      });
    });
    // Each of 400 calls adds the averages of 100 i, of 10 j and of k.
    EXPECT_EQ(sum, 400 * (950 + 45) + 200);
  }
}

TEST(ForkJoinPoolTest, RefusesWhatItsQueueCannotHoldAndKeepsTheRest) {
  absl::Notification go, started;
  std::atomic<int> runs{0};
  {
    ForkJoinPool pool(1, 2);
    ASSERT_TRUE(pool.Post([&] {
      started.Notify();
      go.WaitForNotification();
    }));
    started.WaitForNotification();
    EXPECT_TRUE(pool.Post([&] { ++runs; }));
    EXPECT_TRUE(pool.Post([&] { ++runs; }));
    EXPECT_FALSE(pool.Post([&] { ++runs; }));
    go.Notify();
  }  // Its destructor runs what waits.
  EXPECT_EQ(runs, 2);
}

TEST(ForkJoinPoolDeathTest, HasAThread) { EXPECT_DEATH(ForkJoinPool(0, 1), "0 threads"); }

}  // namespace
}  // namespace softlookup
