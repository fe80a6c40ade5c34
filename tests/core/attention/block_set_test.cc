#include "core/attention/block_set.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace softlookup {
namespace {

TEST(BlockSetTest, HasTheBlocksThatWereAdded) {
  BlockSet set(130);
  for (std::int64_t block = 0; block < 130; ++block) EXPECT_FALSE(set.Has(block)) << block;
  for (const std::int64_t block : {0, 63, 64, 129}) set.Add(block);
  for (std::int64_t block = 0; block < 130; ++block) {
    EXPECT_EQ(set.Has(block), block == 0 || block == 63 || block == 64 || block == 129) << block;
  }
}

TEST(BlockSetTest, AddsThoseOfAnotherSet) {
  BlockSet set(65), other(65);
  set.Add(3);
  other.Add(3);
  other.Add(64);
  set.AddAll(other);
  EXPECT_TRUE(set.Has(3));
  EXPECT_TRUE(set.Has(64));
  EXPECT_FALSE(set.Has(4));
  EXPECT_FALSE(set.Has(63));
}

TEST(BlockSetDeathTest, SetsOfTwoPassesAreNotMixed) {
  BlockSet set(64);
  EXPECT_DEATH(set.AddAll(BlockSet(65)), "1 words and 2");
}

}  // namespace
}  // namespace softlookup
