#include "core/attention/error_budget.h"

#include <gtest/gtest.h>

namespace softlookup {
namespace {

constexpr double kErrors[] = {0, 1e-7, kErrorBoundDefault, 1e-4, 0.01, 0.4, 1};

TEST(ErrorBudgetTest, TheErrorIsTheDefaultOrTheLargerOneThatIsAskedFor) {
  for (const double max_error : kErrors) {
    EXPECT_EQ(ErrorMax({.max_error = max_error}),
              max_error > 1e-5 ? max_error : kErrorBoundDefault);
  }
}

// A scan of all rows makes errors of logits and of sums.
TEST(ErrorBudgetTest, AScanOfAllRowsStaysWithinTheBound) {
  for (const double max_error : kErrors) {
    const ResolvedOptions options{.max_error = max_error};
    EXPECT_LE(LogitErrorMax(options) + kSumError, ErrorMax(options)) << max_error;
    EXPECT_EQ(ArithmeticError(options, /*looks=*/false), LogitErrorMax(options) + kSumError);
  }
  EXPECT_EQ(LogitErrorMax({.max_error = 0}), kErrorBoundDefault - kSumError);
  EXPECT_EQ(LogitErrorMax({.max_error = 0.4}), 0.1);
}

// With a first look, rows are also left out, in part or as a whole. Weight in panels that are left
// out counts twice.
TEST(ErrorBudgetTest, ALookUsesTheBoundUpAndNoMore) {
  for (const double max_error : kErrors) {
    const ResolvedOptions options{.max_error = max_error};
    const LookBudget budget = LookBudgetOf(options);
    EXPECT_GT(budget.panels, 0) << max_error;
    EXPECT_NEAR(budget.coarse_logits + 2 * budget.panels + budget.rows + kLookSumError,
                ErrorMax(options), 1e-12 * ErrorMax(options));
    EXPECT_EQ(budget.rows, budget.coarse_logits);
    EXPECT_EQ(ArithmeticError(options, /*looks=*/true), budget.coarse_logits + kLookSumError);
  }
}

}  // namespace
}  // namespace softlookup
