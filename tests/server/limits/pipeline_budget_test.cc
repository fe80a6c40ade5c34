#include "server/limits/pipeline_budget.h"

#include <gtest/gtest.h>

namespace softlookup::server {
namespace {

TEST(PipelineBudgetTest, BoundsTheCountOfRequestsUntilTheirResponsesAreWritten) {
  PipelineBudget budget(/*count_max=*/2, /*bytes_max=*/1000);
  budget.OnRead(1);
  EXPECT_TRUE(budget.MayRead());
  budget.OnRead(1);
  EXPECT_FALSE(budget.MayRead());
  budget.OnAnswer(1, 1);
  EXPECT_FALSE(budget.MayRead()) << "nobody has taken the response";
  budget.OnWritten(1);
  EXPECT_TRUE(budget.MayRead());
}

TEST(PipelineBudgetTest, CountsTheBytesOfResponsesThatWait) {
  PipelineBudget budget(/*count_max=*/100, /*bytes_max=*/1000);
  budget.OnRead(1);
  budget.OnRead(1);
  budget.OnAnswer(1, 400);
  EXPECT_TRUE(budget.MayRead());
  budget.OnAnswer(1, 600);
  EXPECT_FALSE(budget.MayRead());
  budget.OnWritten(400);
  EXPECT_TRUE(budget.MayRead());
}

TEST(PipelineBudgetTest, ExpectsResponsesAsLargeAsTheLargestSoFar) {
  PipelineBudget budget(/*count_max=*/100, /*bytes_max=*/1000);
  budget.OnRead(1);
  EXPECT_TRUE(budget.MayRead());
  budget.OnAnswer(1, 500);
  budget.OnWritten(500);
  budget.OnRead(1);
  EXPECT_TRUE(budget.MayRead());
  budget.OnRead(1);
  EXPECT_FALSE(budget.MayRead());
}

TEST(PipelineBudgetTest, AnIdleStreamReadsWhateverItExpects) {
  PipelineBudget budget(/*count_max=*/100, /*bytes_max=*/1000);
  budget.OnRead(5000);
  EXPECT_FALSE(budget.MayRead());
  budget.OnAnswer(5000, 2000);
  budget.OnWritten(2000);
  EXPECT_TRUE(budget.MayRead());
}

}  // namespace
}  // namespace softlookup::server
