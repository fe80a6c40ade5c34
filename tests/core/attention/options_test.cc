#include "core/attention/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

absl::StatusOr<ResolvedOptions> Resolve(const AttentionOptions& options) {
  return ResolveOptions(options, Score::kDot, /*default_temperature=*/2, {.top_weights_max = 10});
}

// The status must be INVALID_ARGUMENT and name the field.
void ExpectRefused(const AttentionOptions& options, const std::string& field) {
  EXPECT_THAT(Resolve(options).status(), StatusIs(absl::StatusCode::kInvalidArgument, field));
}

TEST(OptionsTest, WhatIsNotSetHasTheStoresDefaultOrTheContracts) {
  const auto resolved = Resolve({});
  ASSERT_THAT(resolved, IsOk());
  EXPECT_EQ(resolved->score, Score::kDot);
  EXPECT_EQ(resolved->temperature, 2);
  EXPECT_EQ(resolved->mode, Mode::kSoft);
  EXPECT_EQ(resolved->top_k, 0u);
  EXPECT_EQ(resolved->min_score, -HUGE_VAL);
  EXPECT_EQ(resolved->ln_decay, 0);
  EXPECT_FALSE(resolved->causal);
  EXPECT_EQ(resolved->weights, WeightsMode::kNone);
  EXPECT_EQ(resolved->top_weights, kTopWeightsDefault);
  EXPECT_EQ(resolved->max_error, 0);
}

TEST(OptionsTest, WhatIsSetIsUsed) {
  AttentionOptions options;
  options.score = Score::kCosine;
  options.temperature = 0.5;
  options.mode = Mode::kHard;
  options.top_k = 3;
  options.min_score = -1;
  options.recency_decay = 0.5;
  options.causal = true;
  options.causal_offset = 7;
  options.weights = WeightsMode::kTop;
  options.top_weights = 10;
  options.max_error = 0.01;
  const auto resolved = Resolve(options);
  ASSERT_THAT(resolved, IsOk());
  EXPECT_EQ(resolved->score, Score::kCosine);
  EXPECT_EQ(resolved->temperature, 0.5);
  EXPECT_EQ(resolved->mode, Mode::kHard);
  EXPECT_EQ(resolved->top_k, 3u);
  EXPECT_EQ(resolved->min_score, -1);
  EXPECT_EQ(resolved->ln_decay, std::log(0.5));
  EXPECT_TRUE(resolved->causal);
  EXPECT_EQ(resolved->causal_offset, 7u);
  EXPECT_EQ(resolved->weights, WeightsMode::kTop);
  EXPECT_EQ(resolved->top_weights, 10);
  EXPECT_EQ(resolved->max_error, 0.01);
}

TEST(OptionsTest, TheEndsOfARangeAreInIt) {
  for (const double temperature : {kTemperatureMin, kTemperatureMax}) {
    AttentionOptions options;
    options.temperature = temperature;
    EXPECT_THAT(Resolve(options), IsOk()) << temperature;
  }
  for (const double max_error : {0.0, 1.0}) {
    AttentionOptions options;
    options.max_error = max_error;
    EXPECT_THAT(Resolve(options), IsOk()) << max_error;
  }
  AttentionOptions options;
  options.recency_decay = 1;
  EXPECT_THAT(Resolve(options), IsOk());
}

TEST(OptionsTest, WhatIsOutOfItsRangeIsNamed) {
  for (const double temperature : {std::nextafter(kTemperatureMin, 0),
                                   std::nextafter(kTemperatureMax, HUGE_VAL), std::nan("")}) {
    AttentionOptions options;
    options.temperature = temperature;
    ExpectRefused(options, "options.temperature");
  }
  for (const double max_error : {-1e-300, std::nextafter(1.0, 2), std::nan("")}) {
    AttentionOptions options;
    options.max_error = max_error;
    ExpectRefused(options, "options.max_error");
  }
  for (const double recency_decay : {0.0, std::nextafter(1.0, 2), std::nan("")}) {
    AttentionOptions options;
    options.recency_decay = recency_decay;
    ExpectRefused(options, "options.recency_decay");
  }
  for (const double min_score : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    AttentionOptions options;
    options.min_score = min_score;
    ExpectRefused(options, "options.min_score");
  }
  AttentionOptions options;
  options.top_weights = 11;
  ExpectRefused(options, "options.top_weights");
}

}  // namespace
}  // namespace softlookup
