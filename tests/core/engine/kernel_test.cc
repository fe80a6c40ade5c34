#include "softlookup/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/kernels/amx/tiles.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::LookupAndWait;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::StatusIs;

TEST(KernelTest, EachOfThreeHasAName) {
  for (const Kernel kernel : {Kernel::kAuto, Kernel::kAmx, Kernel::kSimd}) {
    EXPECT_EQ(KernelOfName(NameOf(kernel)), kernel);
  }
  EXPECT_EQ(KernelOfName("AMX"), std::nullopt);
  EXPECT_EQ(KernelOfName(NameOf(Kernel::kPortableTiles)), std::nullopt);
}

TEST(KernelTest, AutoIsSimdOnEveryMachine) {
  EXPECT_EQ(ChooseKernel(Kernel::kSimd)->kernel, Kernel::kSimd);
  const absl::StatusOr<KernelChoice> automatic = ChooseKernel(Kernel::kAuto);
  ASSERT_THAT(automatic, IsOk());
  EXPECT_EQ(automatic->kernel, Kernel::kSimd);
  EXPECT_EQ(automatic->why, "the default");
}

TEST(KernelTest, AmxIsRefusedWithTheReasonWhereItIsNot) {
  const absl::StatusOr<KernelChoice> amx = ChooseKernel(Kernel::kAmx);
  if (kernels::AmxIsUsable()) {
    ASSERT_THAT(amx, IsOk());
    EXPECT_EQ(amx->kernel, Kernel::kAmx);
  } else {
    EXPECT_THAT(amx, StatusIs(absl::StatusCode::kFailedPrecondition, kernels::WhyNotAmx()));
  }
}

// What a lookup of three queries over a few blocks gives.
LookupResult Answer(Kernel kernel, const AttentionOptions& options) {
  constexpr std::int64_t kRows = 3000, kDim = 64, kQueries = 3;
  const auto engine = Engine::Create({.kernel = kernel});
  EXPECT_THAT(engine->CreateStore({.name = "s", .key_dim = kDim, .value_dim = kDim}), IsOk());
  const std::vector<float> keys = NormalFloats(kRows * kDim, 1);
  const std::vector<float> values = NormalFloats(kRows * kDim, 2);
  const std::vector<float> queries = NormalFloats(kQueries * kDim, 3);
  EXPECT_THAT(
      AppendAndWait(*engine, {.store = "s",
                              .keys = {.data = keys.data(), .rows = kRows, .cols = kDim},
                              .values = {.data = values.data(), .rows = kRows, .cols = kDim}}),
      IsOk());
  const absl::StatusOr<LookupResult> result =
      LookupAndWait(*engine, {.store = "s",
                              .queries = {.data = queries.data(), .rows = kQueries, .cols = kDim},
                              .options = options});
  EXPECT_THAT(result, IsOk());
  return *result;
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest;
}

TEST(KernelTest, TilesTakeProductsAndGiveTheirOwnLastBits) {
  for (const Score score : {Score::kDot, Score::kScaledDot}) {
    const AttentionOptions options{.score = score, .temperature = 4};
    const LookupResult simd = Answer(Kernel::kSimd, options);
    const LookupResult tiles = Answer(Kernel::kPortableTiles, options);
    EXPECT_NE(simd.values, tiles.values);
    EXPECT_LT(LargestDifference(simd.values, tiles.values), 2e-6);
    EXPECT_NEAR(simd.stats[0].log_sum_exp, tiles.stats[0].log_sum_exp, 1e-5);
  }
}

TEST(KernelTest, WhatIsNoProductOrDecidesWhichRowsCountIsTheSameInEveryKernel) {
  const AttentionOptions all_options[] = {
      {.score = Score::kCosine},
      {.score = Score::kEuclidean},
      {.score = Score::kSquaredEuclidean, .temperature = 20},
      {.score = Score::kScaledDot, .mode = Mode::kHard},
      {.score = Score::kScaledDot, .top_k = 7},
      {.score = Score::kScaledDot, .min_score = 0.5},
  };
  for (const AttentionOptions& options : all_options) {
    EXPECT_EQ(Answer(Kernel::kSimd, options).values,
              Answer(Kernel::kPortableTiles, options).values);
  }
}

// Logits are in the thousands, and what is kept of a product in tiles is too little.
TEST(KernelTest, TilesLeaveSharpSoftmaxesToFloat64) {
  const AttentionOptions sharp{.score = Score::kScaledDot, .temperature = 0.001};
  EXPECT_EQ(Answer(Kernel::kSimd, sharp).values, Answer(Kernel::kPortableTiles, sharp).values);
}

}  // namespace
}  // namespace softlookup
