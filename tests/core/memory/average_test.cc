#include "core/memory/average.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/random.h"

namespace softlookup {
namespace {

TEST(AverageMemoryTest, AWindowOfOneRowAfterAMillionIsThatRow) {
  constexpr std::int64_t kRows = 1'000'000;
  const std::vector<float> rows = softlookup::testing::NormalFloats(kRows + 1, 3, 1000);
  AverageMemory sums(1, 1);
  for (std::int64_t i = 0; i < kRows; ++i) sums.Add(&rows[i], 1, &rows[i]);
  const AverageMemory before = sums;
  sums.Add(&rows[kRows], 1, &rows[kRows]);
  const MemoryValue average = sums.ReadSince(before);
  EXPECT_EQ(average.weight, 1);
  EXPECT_DOUBLE_EQ(average.key[0], rows[kRows]);
}

TEST(AverageMemoryTest, SmallRowsSurviveAmongHugeOnes) {
  AverageMemory sums(1, 1);
  const AverageMemory start = sums;
  const float huge = 1e30f, small = 1, minus_huge = -1e30f;
  sums.Add(&huge, 1, &huge);
  const AverageMemory after_huge = sums;
  sums.Add(&small, 1, &small);
  EXPECT_DOUBLE_EQ(sums.ReadSince(after_huge).key[0], 1);
  sums.Add(&minus_huge, 1, &minus_huge);
  EXPECT_DOUBLE_EQ(sums.ReadSince(start).key[0], 1.0 / 3);
}

TEST(AverageMemoryTest, OfNoRowsIsZeroWithWeightZero) {
  const AverageMemory sums(2, 3);
  const MemoryValue average = sums.Read();
  EXPECT_EQ(average.weight, 0);
  EXPECT_THAT(average.key, ::testing::ElementsAre(0, 0));
  EXPECT_THAT(average.value, ::testing::ElementsAre(0, 0, 0));
}

TEST(AverageMemoryTest, TakesStridedKeys) {
  AverageMemory sums(2, 1);
  const AverageMemory start = sums;
  const float key[] = {1, -1, 2, -1};
  const float value = 5;
  sums.Add(key, 2, &value);
  EXPECT_THAT(sums.ReadSince(start).key, ::testing::ElementsAre(1, 2));
}

}  // namespace
}  // namespace softlookup
