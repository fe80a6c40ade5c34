#include "server/limits/pipeline_budget.h"

#include <gtest/gtest.h>

namespace softlookup::server {
namespace {

TEST(PipelineBudgetTest, BoundsTheCountOfRequestsUntilTheirResponsesAreWritten) {
  PipelineBudget budget(/*count_max=*/2, /*bytes_max=*/1000);
  budget.OnRead(1);
  EXPECT_TRUE(budget.HasRoom());
  budget.OnRead(1);
  EXPECT_FALSE(budget.HasRoom());
  budget.OnAnswer(1, 1);
  EXPECT_FALSE(budget.HasRoom()) << "nobody has taken the response";
  budget.OnWritten(1);
  EXPECT_TRUE(budget.HasRoom());
}

TEST(PipelineBudgetTest, CountsTheBytesOfResponsesThatWait) {
  PipelineBudget budget(/*count_max=*/100, /*bytes_max=*/1000);
  budget.OnRead(1);
  budget.OnRead(1);
  budget.OnAnswer(1, 400);
  EXPECT_TRUE(budget.HasRoom());
  budget.OnAnswer(1, 600);
  EXPECT_FALSE(budget.HasRoom());
  budget.OnWritten(400);
  EXPECT_TRUE(budget.HasRoom());
}

TEST(PipelineBudgetTest, ExpectsResponsesAsLargeAsTheLargestSoFar) {
  PipelineBudget budget(/*count_max=*/100, /*bytes_max=*/1000);
  budget.OnRead(1);
  EXPECT_TRUE(budget.HasRoom());
  budget.OnAnswer(1, 500);
  budget.OnWritten(500);
  budget.OnRead(1);
  EXPECT_TRUE(budget.HasRoom());
  budget.OnRead(1);
  EXPECT_FALSE(budget.HasRoom());
}

TEST(PipelineBudgetTest, AnIdleStreamReadsWhateverItExpects) {
  PipelineBudget budget(/*count_max=*/100, /*bytes_max=*/1000);
  budget.OnRead(5000);
  EXPECT_FALSE(budget.HasRoom());
  budget.OnAnswer(5000, 2000);
  budget.OnWritten(2000);
  EXPECT_TRUE(budget.HasRoom());
}

}  // namespace
}  // namespace softlookup::server
