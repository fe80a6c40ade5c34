#include "core/kernels/float32_sums.h"

#include <gtest/gtest.h>

namespace softlookup::kernels {
namespace {

constexpr Float32Sums kSums{.chain_dims = 40, .run_dims = 160};

TEST(Float32SumsTest, ATermOfAChainIsRoundedOnceForItselfAndOnceForEachLaterTerm) {
  EXPECT_EQ(kSums.Roundings(1), 1);
  EXPECT_EQ(kSums.Roundings(39), 39);
  EXPECT_EQ(kSums.Roundings(40), 40);
}

TEST(Float32SumsTest, EachLevelOfTheTreeOfChainsRoundsOnceMore) {
  EXPECT_EQ(kSums.Roundings(41), 41);  // Two chains.
  EXPECT_EQ(kSums.Roundings(80), 41);
  EXPECT_EQ(kSums.Roundings(81), 42);  // Three.
  EXPECT_EQ(kSums.Roundings(160), 42);
  EXPECT_EQ(kSums.Roundings(161), 42);  // A run ends: its sum is added in float64.
}

TEST(Float32SumsTest, ALaterRunHasTheLevelsOfItsOwnTerms) {
  EXPECT_EQ(kSums.Levels(160, 161), 0);
  EXPECT_EQ(kSums.Levels(160, 201), 1);
  EXPECT_EQ(kSums.Levels(160, 320), 2);
}

}  // namespace
}  // namespace softlookup::kernels
