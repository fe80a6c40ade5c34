#include "client/recall/posner_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

namespace softlookup::recall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Similarity kCosine = Similarity::Cosine();

double Norm(absl::Span<const float> vector) {
  double square = 0;
  for (const float component : vector) square += double{component} * component;
  return std::sqrt(square);
}

// FNV-1a over the bits of every component.
std::uint64_t Fingerprint(const FloatMatrix& matrix) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const float component : matrix.data) {
    hash = (hash ^ std::bit_cast<std::uint32_t>(component)) * 0x100000001b3;
  }
  return hash;
}

TEST(PosnerTrialsTest, CueKindsDifferByTheCueAlone) {
  const PosnerDesign design{.item_count = 6, .dim = 32, .trial_count = 50};
  const PosnerTrials trials = MakePosnerTrials(design);
  ASSERT_EQ(trials.items.rows, 6u);
  ASSERT_EQ(trials.valid_queries.rows, 50u);
  ASSERT_EQ(trials.invalid_queries.rows, 50u);
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_NEAR(Norm(trials.items.Row(i)), 1, 1e-6);
  for (std::uint32_t t = 0; t < 50; ++t) {
    const auto target = trials.items.Row(trials.targets[t]);
    const auto lure = trials.items.Row(trials.lures[t]);
    const auto valid = trials.valid_queries.Row(t);
    const auto invalid = trials.invalid_queries.Row(t);
    EXPECT_NEAR(Norm(valid), 1, 1e-6);
    EXPECT_NEAR(Norm(invalid), 1, 1e-6);
    EXPECT_GT(kCosine(valid, target), kCosine(invalid, target)) << "trial " << t;
    EXPECT_LT(kCosine(valid, lure), kCosine(invalid, lure)) << "trial " << t;
  }
}

TEST(PosnerTrialsTest, WithoutACueBothKindsAskTheSame) {
  const PosnerTrials trials = MakePosnerTrials({.cue_strength = 0});
  EXPECT_EQ(trials.valid_queries.data, trials.invalid_queries.data);
}

TEST(PosnerTrialsTest, WithoutNoiseTheValidQueryIsTheTarget) {
  const PosnerTrials trials = MakePosnerTrials({.noise = 0});
  for (std::uint32_t t = 0; t < trials.targets.size(); ++t) {
    EXPECT_NEAR(kCosine(trials.valid_queries.Row(t), trials.items.Row(trials.targets[t])), 1, 1e-6);
  }
}

TEST(PosnerTrialsTest, EveryTargetMeetsEveryLureEquallyOften) {
  const PosnerTrials trials =
      MakePosnerTrials({.item_count = 5, .dim = 2, .trial_count = 5 * 4 * 3});
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> counts;
  for (std::size_t t = 0; t < trials.targets.size(); ++t) {
    EXPECT_NE(trials.targets[t], trials.lures[t]);
    ++counts[{trials.targets[t], trials.lures[t]}];
  }
  EXPECT_EQ(counts.size(), 5u * 4);
  for (const auto& [pair, count] : counts) EXPECT_EQ(count, 3);
}

TEST(PosnerTrialsTest, TwoMemoriesAreEnough) {
  const PosnerTrials trials = MakePosnerTrials({.item_count = 2, .dim = 1, .trial_count = 3});
  EXPECT_THAT(trials.targets, ElementsAre(0, 1, 0));
  EXPECT_THAT(trials.lures, ElementsAre(1, 0, 1));
}

// The fingerprints come from an implementation of the header's definition in Python.
TEST(PosnerTrialsTest, TheSeedDecidesEveryBit) {
  const PosnerTrials one = MakePosnerTrials({.seed = 1});
  EXPECT_EQ(Fingerprint(one.items), 0xf2a854eaa051d8bb);
  EXPECT_EQ(Fingerprint(one.valid_queries), 0xcea403e4c1bc4441);
  EXPECT_EQ(Fingerprint(one.invalid_queries), 0x5653fb244cbcbfc1);
  const PosnerTrials two = MakePosnerTrials({.seed = 2});
  EXPECT_NE(one.items.data, two.items.data);
  EXPECT_NE(one.valid_queries.data, two.valid_queries.data);
}

// What a server has to find, from Similarity in float64.
double ExpectedAccuracy(const PosnerTrials& trials, const FloatMatrix& queries,
                        double temperature) {
  double sum = 0;
  for (std::uint32_t t = 0; t < queries.rows; ++t) {
    double weights = 0;
    const double target = kCosine(queries.Row(t), trials.items.Row(trials.targets[t]));
    for (std::uint32_t i = 0; i < trials.items.rows; ++i) {
      const double score = kCosine(queries.Row(t), trials.items.Row(i));
      weights += std::exp((score - target) / temperature);
    }
    sum += 1 / weights;
  }
  return sum / queries.rows;
}

TEST(PosnerTrialsTest, ValidCuesHelpAtEveryTemperatureAndBothFallToChance) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const PosnerTrials trials = MakePosnerTrials({.seed = seed});
    for (const double temperature : {0.01, 0.1, 1.0, 10.0, 100.0, 1000.0}) {
      const double valid = ExpectedAccuracy(trials, trials.valid_queries, temperature);
      const double invalid = ExpectedAccuracy(trials, trials.invalid_queries, temperature);
      EXPECT_GT(valid, invalid) << "seed " << seed << ", temperature " << temperature;
      if (temperature == 1000) {
        EXPECT_NEAR(valid, 1.0 / 20, 1e-4) << "seed " << seed;
        EXPECT_NEAR(invalid, 1.0 / 20, 1e-4) << "seed " << seed;
      }
    }
  }
}

TEST(PosnerSvgTest, DrawsBothCueKindsAndTheChanceLevel) {
  const std::vector<PosnerPoint> points = {{0.1, {0.9, 0.1}, {0.6, 0.2}},
                                           {10, {0.26, 1.3}, {0.25, 1.3}}};
  const std::string svg = PosnerSvg({.item_count = 4}, points);
  for (const char* part :
       {">valid cue<", ">invalid cue<", ">chance, 1/4<", " dashed\"", "temperature", "accuracy"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
}

}  // namespace
}  // namespace softlookup::recall
