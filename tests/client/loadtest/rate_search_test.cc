#include "client/loadtest/rate_search.h"

#include <gtest/gtest.h>

namespace softlookup::loadtest {
namespace {

// Searches where rates up to `limit` hold; returns the number of tries.
int Search(double limit, RateSearch* search) {
  int steps = 0;
  while (search->Next().has_value()) {
    search->Tried(*search->Next() <= limit);
    ++steps;
  }
  return steps;
}

TEST(RateSearchTest, FindsTheLimitToItsPrecisionFromBelowAndFromAbove) {
  for (const double limit : {3.0, 77.0, 1000.0, 123456.0}) {
    for (const double first : {0.5, 100.0, 100000.0, 1e6}) {
      RateSearch search(first, 0.05, 60);
      EXPECT_LE(Search(limit, &search), 40);
      EXPECT_LE(search.held(), limit);
      EXPECT_GE(search.held() * 1.05, limit * (1 - 1e-9)) << "from " << first;
      EXPECT_GT(search.failed(), limit);
    }
  }
}

TEST(RateSearchTest, EndsWhereNothingHolds) {
  RateSearch search(100, 0.05, 60);
  EXPECT_LE(Search(0, &search), 12);
  EXPECT_EQ(search.held(), 0);
}

TEST(RateSearchTest, EndsAfterItsSteps) {
  RateSearch search(1, 0.05, 5);
  EXPECT_EQ(Search(1e30, &search), 5);
  EXPECT_EQ(search.held(), 16);
  EXPECT_EQ(search.failed(), 0);
}

}  // namespace
}  // namespace softlookup::loadtest
