#include "core/base/part_count.h"

#include <gtest/gtest.h>

namespace softlookup {
namespace {

TEST(PartCountTest, TheLastPartMayBeSmaller) {
  EXPECT_EQ(PartCount(0, 4), 0);
  EXPECT_EQ(PartCount(1, 4), 1);
  EXPECT_EQ(PartCount(4, 4), 1);
  EXPECT_EQ(PartCount(5, 4), 2);
}

}  // namespace
}  // namespace softlookup
