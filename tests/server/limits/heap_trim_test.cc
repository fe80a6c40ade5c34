#include "server/limits/heap_trim.h"

#include <gtest/gtest.h>

namespace softlookup::server {
namespace {

TEST(TrimDecisionTest, WantsWhatHasGrownSinceTheLastTime) {
  TrimDecision decision(100);
  EXPECT_TRUE(decision.Wants(150));
  decision.OnTrimmed(120);
  EXPECT_FALSE(decision.Wants(219));
  EXPECT_TRUE(decision.Wants(220));
  decision.OnTrimmed(220);  // It was all in use.
  EXPECT_FALSE(decision.Wants(300));
  EXPECT_FALSE(decision.Wants(50));  // Now it is not.
  EXPECT_TRUE(decision.Wants(150));
}

}  // namespace
}  // namespace softlookup::server
