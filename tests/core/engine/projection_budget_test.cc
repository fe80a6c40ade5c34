#include "core/engine/projection_budget.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>

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

TEST(ProjectionBudgetTest, ItsEndWaitsForWhatIsTaken) {
  bool is_given_back = false;
  std::thread projecting;
  {
    ProjectionBudget budget(100);
    projecting = std::thread([taken = budget.Take(10), &is_given_back]() mutable {
      is_given_back = true;
      taken.reset();
    });
  }
  EXPECT_TRUE(is_given_back);
  projecting.join();
}

}  // namespace
}  // namespace softlookup
