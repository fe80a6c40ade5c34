#include "core/store/row_mask.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace softlookup {
namespace {

TEST(RowMaskTest, AMaskWithoutRowsIsACopy) {
  const std::vector<std::uint64_t> first = {1027, 1100}, second = {1024, 2047};
  const auto once = WithoutRows(nullptr, 1024, first);
  const auto twice = WithoutRows(once.get(), 1024, second);
  EXPECT_EQ(once->CountFirst(1024), 1022);
  EXPECT_EQ(twice->CountFirst(1024), 1020);
  for (const std::int64_t row : {3, 76}) EXPECT_FALSE((*once)[row]) << row;
  for (const std::int64_t row : {0, 3, 76, 1023}) EXPECT_FALSE((*twice)[row]) << row;
  EXPECT_TRUE((*once)[0]);
}

}  // namespace
}  // namespace softlookup
