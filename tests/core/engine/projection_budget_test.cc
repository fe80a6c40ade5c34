#include "core/engine/projection_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"

namespace softlookup {
namespace {

TEST(ProjectionBudgetTest, RefusesWhatGoesBeyondTheLimitUntilBytesAreGivenBack) {
  ProjectionBudget budget(100);
  std::optional<ProjectionBudget::Taken> first = budget.Take(60);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(budget.Take(41).has_value());
  const std::optional<ProjectionBudget::Taken> second = budget.Take(40);
  EXPECT_TRUE(second.has_value());
  EXPECT_FALSE(budget.Take(1).has_value());
  first.reset();
  EXPECT_TRUE(budget.Take(60).has_value());
}

TEST(ProjectionBudgetTest, AnAppendOfAnySizeIsCountedIfItIsTheOnlyOne) {
  ProjectionBudget budget(100);
  const std::optional<ProjectionBudget::Taken> large = budget.Take(1000);
  EXPECT_TRUE(large.has_value());
  EXPECT_FALSE(budget.Take(1).has_value());
}

TEST(ProjectionBudgetTest, BytesThatAreMovedAreGivenBackOnce) {
  ProjectionBudget budget(100);
  {
    std::optional<ProjectionBudget::Taken> taken = budget.Take(100);
    const ProjectionBudget::Taken moved = *std::move(taken);
    taken.reset();
    EXPECT_FALSE(budget.Take(1).has_value());
  }
  const std::optional<ProjectionBudget::Taken> all = budget.Take(100);
  EXPECT_TRUE(all.has_value());
  EXPECT_FALSE(budget.Take(1).has_value());
}

// The thread keeps what it has taken until the budget's end has begun. It then lets others run, so
// that an end that did not wait would be over before the bytes are given back.
TEST(ProjectionBudgetTest, ItsEndWaitsForWhatIsTaken) {
  absl::Notification ends;
  std::atomic<bool> has_ended{false};
  bool ended_before = true;
  std::thread projecting;
  {
    ProjectionBudget budget(100);
    projecting = std::thread([taken = budget.Take(10), &ends, &has_ended, &ended_before]() mutable {
      ends.WaitForNotification();
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      ended_before = has_ended;
      taken.reset();
    });
    ends.Notify();
  }
  has_ended = true;
  projecting.join();
  EXPECT_FALSE(ended_before);
}

}  // namespace
}  // namespace softlookup
