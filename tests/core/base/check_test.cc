#include "core/base/check.h"

#include <gtest/gtest.h>

namespace softlookup {
namespace {

TEST(CheckTest, AFailedOneNamesItsPlaceItsConditionAndTheValues) {
  const int rows = 3;
  EXPECT_DEATH(SOFTLOOKUP_CHECK(rows == 4) << "rows: " << rows,
               "check_test.cc:[0-9]+: check failed: rows == 4 rows: 3");
}

TEST(CheckTest, OneThatHoldsStreamsNothing) {
  int streamed = 0;
  SOFTLOOKUP_CHECK(true) << ++streamed;
  EXPECT_EQ(streamed, 0);
}

// The macro must not take an `else` that is another's.
TEST(CheckTest, IsOneStatement) {
  bool is_else = false;
  if (is_else)
    SOFTLOOKUP_CHECK(false);
  else
    is_else = true;
  EXPECT_TRUE(is_else);
}

TEST(CheckTest, ADebugCheckIsOnlyEvaluatedInDebugBuilds) {
#ifdef SOFTLOOKUP_DCHECKS
  EXPECT_DEATH(SOFTLOOKUP_DCHECK(false) << "in a debug build", "in a debug build");
#else
  int evaluated = 0;
  SOFTLOOKUP_DCHECK(++evaluated == 0);
  EXPECT_EQ(evaluated, 0);
#endif
}

}  // namespace
}  // namespace softlookup
