#include "core/attention/panel_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/testing/random.h"

namespace softlookup {
namespace {

using testing::Draw;

// The bound of a panel of which nothing is known.
constexpr float kUnknown = std::numeric_limits<float>::infinity();

// Masses between 2^-120 and 2^120, some of them 0 or infinite.
std::vector<float> RandomMasses(Draw& draw) {
  const auto spread = static_cast<int>(draw.Int(0, 120));
  std::vector<float> bounds(static_cast<std::size_t>(draw.Int(0, 300)));
  const bool has_unknown = draw.Chance(0.3), has_zeros = draw.Chance(0.3);
  for (float& bound : bounds) {
    bound = std::ldexp(static_cast<float>(draw.Real(1, 2)), static_cast<int>(draw.Int(-spread, 0)));
    if (has_unknown && draw.Chance(0.1)) bound = kUnknown;
    if (has_zeros && draw.Chance(0.1)) bound = 0;
  }
  return bounds;
}

double SumBelow(const std::vector<float>& bounds, float begin, float end) {
  double sum = 0;
  for (const float bound : bounds) sum += bound >= begin && bound < end ? bound : 0;
  return sum;
}

std::int64_t CountFrom(const std::vector<float>& bounds, float cut) {
  return std::count_if(bounds.begin(), bounds.end(), [cut](float bound) { return bound >= cut; });
}

TEST(ChooseByMassTest, LeavesOutNoMoreThanItsPart) {
  Draw draw(testing::FirstSeed());
  for (int round = 0; round < 3000; ++round) {
    const std::vector<float> bounds = RandomMasses(draw);
    const double proved = draw.Real(0, 1);
    const double known = draw.Chance(0.5) ? 0 : std::exp(draw.Real(-90, 10));
    const double part = std::exp(draw.Real(-30, 0)), coarse_part = std::exp(draw.Real(-30, 3));
    const MassChoice choice = ChooseByMass(bounds, proved, known, part, coarse_part);
    const double all = SumBelow(bounds, 0, kUnknown);
    ASSERT_GE(choice.mass, known);
    ASSERT_LE(choice.mass, std::max(known, proved * all) + 1e-12 * (known + all));
    // Tiny masses need not prove anything.
    ASSERT_GE(choice.mass, std::max(known, proved * (all - part * known / 4)) * (1 - 1e-12));
    // What is left out is bounded, and no more than allowed.
    const double left_out = SumBelow(bounds, 0, choice.cut);
    ASSERT_GE(choice.left_out * (1 + 1e-12), left_out);
    // Tiny masses are rounded up.
    ASSERT_LE(choice.left_out, (left_out + 2.5e-7 * part * known) * (1 + 2e-6));
    ASSERT_LE(choice.left_out, part * choice.mass);
    ASSERT_EQ(choice.kept, CountFrom(bounds, choice.cut));
    // What is coarse is no more than allowed, either.
    ASSERT_LE(SumBelow(bounds, choice.cut, choice.fine_cut),
              coarse_part * choice.mass * (1 + 1e-12));
    for (const float bound : bounds) {
      if (bound == kUnknown) {
        ASSERT_GE(bound, choice.cut);
        ASSERT_GE(bound, choice.fine_cut);
      }
      if (bound == 0) {
        ASSERT_LT(bound, choice.cut);
      }
    }
  }
}

// A bin of bounds that differ by less than a sixteenth is left out or kept as one.
TEST(ChooseByMassTest, LeavesOutAsMuchAsItMay) {
  Draw draw(testing::FirstSeed());
  for (int round = 0; round < 1000; ++round) {
    const std::vector<float> bounds = RandomMasses(draw);
    const double part = std::exp(draw.Real(-30, -1));
    const MassChoice choice = ChooseByMass(bounds, 0.5, 0, part, 0);
    float least = kUnknown;
    for (const float bound : bounds) {
      if (bound >= choice.cut) least = std::min(least, bound);
    }
    if (least == kUnknown) continue;
    ASSERT_GT(SumBelow(bounds, 0, least * 1.0625f), part * choice.mass);
    ASSERT_LE(choice.fine_cut, least) << "without a coarse part, all are fine";
  }
}

TEST(ChooseByMassTest, KeepsAllThatCountsIfNothingMayBeLeftOut) {
  const std::vector<float> bounds = {0, 1e-37f, 1, 0, 3e-10f, kUnknown, 1e30f};
  for (const double part : {0.0, 1e-100}) {
    const MassChoice choice = ChooseByMass(bounds, 1, 0, part, 0);
    EXPECT_EQ(choice.kept, 5);
    EXPECT_EQ(choice.left_out, 0);
    EXPECT_GT(choice.cut, 0);
    EXPECT_LE(choice.cut, 1e-37f);
    EXPECT_LE(choice.fine_cut, 1e-37f);
  }
}

TEST(ChooseByMassTest, KeepsTheSmallestMassesIfNothingMayBeLeftOut) {
  const float least = std::numeric_limits<float>::denorm_min();
  for (const float mass : {least, 1e-40f, std::numeric_limits<float>::min()}) {
    const std::vector<float> bounds = {0, mass, mass};
    const MassChoice choice = ChooseByMass(bounds, 1, 0, 0, 0);
    EXPECT_EQ(choice.kept, 2) << mass;
    EXPECT_LE(choice.cut, mass);
    EXPECT_GT(choice.cut, 0);
    EXPECT_EQ(choice.left_out, 0);
  }
}

TEST(ChooseByMassTest, KeepsAllOrNoneOfEqualMasses) {
  for (const float mass : {1e-30f, 1.0f, 1.03f, 1e30f}) {
    const std::vector<float> bounds(100, mass);
    MassChoice choice = ChooseByMass(bounds, 1, 0, 0.99, 0.99);
    EXPECT_EQ(choice.kept, 100);
    EXPECT_EQ(choice.left_out, 0);
    EXPECT_LE(choice.fine_cut, mass);
    // Other rows are known to have more.
    choice = ChooseByMass(bounds, 1, 1e4 * mass, 0.01, 0);
    EXPECT_EQ(choice.kept, 0);
    EXPECT_NEAR(choice.left_out, 100.0 * mass, 1e-3 * mass);
    EXPECT_GT(choice.cut, mass);
    choice = ChooseByMass(bounds, 1, 1e4 * mass, 0.001, 0.01);
    EXPECT_EQ(choice.kept, 100);
    EXPECT_GT(choice.fine_cut, mass);
  }
}

TEST(ChooseByMassTest, KeepsWhatNothingIsKnownOf) {
  const std::vector<float> bounds = {1, kUnknown, 2, kUnknown, 0};
  const MassChoice some = ChooseByMass(bounds, 1, 1e10, 1e-3, 1);
  EXPECT_EQ(some.kept, 2);
  // Both are tiny beside what is known, and rounded up to multiples of 0.561.
  EXPECT_GE(some.left_out, 3);
  EXPECT_LE(some.left_out, 3.37);
  EXPECT_LE(some.cut, kUnknown);
  EXPECT_LE(some.fine_cut, kUnknown);
  const MassChoice all = ChooseByMass({{kUnknown, kUnknown}}, 1, 0, 0.5, 0.5);
  EXPECT_EQ(all.kept, 2);
  EXPECT_EQ(all.mass, 0);
}

TEST(ChooseByMassTest, TakesNoPanelsAndNothingProved) {
  EXPECT_EQ(ChooseByMass({}, 1, 0, 0.5, 0.5).kept, 0);
  EXPECT_EQ(ChooseByMass({{0, 0}}, 1, 0, 0.5, 0.5).kept, 0);
  // EUCLIDEAN proves nothing, and the exact mass of the best may be too small to show.
  const MassChoice choice = ChooseByMass({{1e-30f, 1, 0}}, 0, 0, 0.5, kUnknown);
  EXPECT_EQ(choice.kept, 2);
  EXPECT_EQ(choice.left_out, 0);
}

double Itself(double bound) { return bound; }

TEST(ChooseByRankTest, KeepsTheLargestAndWhatTiesWithTheLastOfThem) {
  Draw draw(testing::FirstSeed());
  for (int round = 0; round < 2000; ++round) {
    const double size = std::exp(draw.Real(-80, 80)), gap = draw.Chance(0.5) ? 0 : size;
    const std::int64_t kinds = draw.Int(1, 100);
    std::vector<float> bounds(static_cast<std::size_t>(draw.Int(1, 200)));
    for (float& bound : bounds) {
      bound = static_cast<float>(size * static_cast<double>(draw.Int(-kinds, kinds)));
      if (draw.Chance(0.05)) bound = draw.Coin() ? kUnknown : -kUnknown;
    }
    const std::int64_t count = draw.Int(1, 220);
    const auto lower_of = [gap](double bound) { return bound - gap; };
    const RankChoice choice = ChooseByRank(bounds, lower_of, count);
    ASSERT_EQ(choice.kept, CountFrom(bounds, choice.cut));
    std::vector<float> sorted;
    for (const float bound : bounds) {
      if (std::abs(bound) < kUnknown) sorted.push_back(bound);
      // Panels without rows are left out, and those of which nothing is known are kept.
      if (std::isinf(bound)) {
        ASSERT_EQ(bound >= choice.cut, bound > 0);
      }
    }
    std::sort(sorted.rbegin(), sorted.rend());
    if (count > static_cast<std::int64_t>(sorted.size())) {
      for (const float bound : sorted) ASSERT_GE(bound, choice.cut);
      continue;
    }
    // As many panels reach this logit as rows are asked for.
    const double reached = lower_of(sorted[static_cast<std::size_t>(count - 1)]);
    for (const float bound : sorted) {
      if (bound >= reached) {
        ASSERT_GE(bound, choice.cut);
      }
    }
    ASSERT_GE(choice.cut, reached - std::abs(reached) * 0x1p-22 - 1e-37);
  }
}

TEST(ChooseByRankTest, RowsBelowTheThresholdAreNeitherKeptNorRanked) {
  const std::vector<float> bounds = {5, -kUnknown, 1, 4, kUnknown, 2, 3};
  const auto kept = [&](std::int64_t count, LogitThreshold threshold) {
    return ChooseByRank(bounds, Itself, count, threshold).kept;
  };
  EXPECT_EQ(kept(2, {.none_below = 1.5, .all_from = 1.6}), 3);
  // The fourth row may not count.
  EXPECT_EQ(kept(4, {.none_below = 1.5, .all_from = 2.5}), 5);
  EXPECT_EQ(kept(4, {.none_below = 2.5, .all_from = 2.6}), 4);
  EXPECT_EQ(kept(100, {.none_below = 2.5, .all_from = 2.6}), 4);
  EXPECT_EQ(kept(1, {.none_below = 1e30, .all_from = 1e30}), 1);
}

// Blocks of others stand between, before and behind a query's own, as zeros.
TEST(ChooseByMassTest, ZerosChangeNoBit) {
  Draw draw(testing::FirstSeed());
  for (int round = 0; round < 500; ++round) {
    const std::vector<float> bounds = RandomMasses(draw);
    const double known = std::exp(draw.Real(-60, 10)), part = std::exp(draw.Real(-20, 0));
    std::vector<float> among;
    for (const float bound : bounds) {
      among.resize(among.size() +
                   static_cast<std::size_t>(draw.Chance(0.1) ? draw.Int(0, 200) : 0));
      among.push_back(bound);
    }
    among.resize(among.size() + static_cast<std::size_t>(draw.Int(0, 2000)));
    const MassChoice alone = ChooseByMass(bounds, 0.1, known, part, part / 2);
    const MassChoice together = ChooseByMass(among, 0.1, known, part, part / 2);
    ASSERT_EQ(alone.cut, together.cut);
    ASSERT_EQ(alone.fine_cut, together.fine_cut);
    ASSERT_EQ(alone.kept, together.kept);
    ASSERT_EQ(alone.left_out, together.left_out);
    ASSERT_EQ(alone.mass, together.mass);
  }
}

TEST(RankCutOfMassesTest, KeepsTheBestRowsHoweverTheyAreSpread) {
  Draw draw(testing::FirstSeed());
  int proved = 0;
  for (int round = 0; round < 2000; ++round) {
    const double reference = draw.Real(-1e3, 1e3), gap = draw.Chance(0.5) ? 0 : draw.Real(0, 3);
    const double spread = draw.Real(0, 90);
    std::vector<float> masses;
    std::vector<double> logits;  // The best of each panel.
    for (std::int64_t panel = draw.Int(1, 200); panel > 0; --panel) {
      const double bound = draw.Real(-spread, 10);
      // From one row of this bound to sixteen, and with all of the excess or none.
      masses.push_back(static_cast<float>(std::exp(bound) * draw.Real(1, 16 * 1.0625)));
      logits.push_back(reference + bound - draw.Real(0, gap));
      if (draw.Chance(0.05)) masses.back() = draw.Coin() ? kUnknown : 0;
    }
    const auto count = static_cast<std::size_t>(draw.Int(1, 20));
    const auto lower_of = [gap](double bound) { return bound - gap; };
    const float cut =
        RankCutOfMasses(masses, reference, lower_of, static_cast<std::int64_t>(count));
    if (cut == kAllMasses) continue;
    ++proved;
    // Those of unknown panels may be any. Without them, as many rows of panels that are kept are
    // above all rows of the others.
    double left_out = -kUnknown;
    std::vector<double> kept;
    for (std::size_t i = 0; i < masses.size(); ++i) {
      if (masses[i] == 0 || masses[i] == kUnknown) continue;
      if (masses[i] >= cut) kept.push_back(logits[i]);
      if (masses[i] < cut) left_out = std::max(left_out, reference + std::log(masses[i]));
    }
    ASSERT_GE(kept.size(), count);
    std::sort(kept.rbegin(), kept.rend());
    ASSERT_GT(kept[count - 1], left_out);
  }
  EXPECT_GT(proved, 1000);
}

TEST(RankCutOfMassesTest, TooFewOrTooSmallMassesProveNothing) {
  EXPECT_EQ(RankCutOfMasses({{1, kUnknown, 0, 2}}, 0, Itself, 3), kAllMasses);
  EXPECT_GT(RankCutOfMasses({{1, kUnknown, 0, 2}}, 0, Itself, 2), kAllMasses);
  EXPECT_EQ(RankCutOfMasses({{1, 0x1p-110f}}, 0, Itself, 2), kAllMasses);
  EXPECT_EQ(RankCutOfMasses({{1, 0x1p-100f}}, 0, Itself, 2), kAllMasses)
      << "its row may be 2^-104 high";
  EXPECT_EQ(RankCutOfMasses({}, 0, Itself, 1), kAllMasses);
}

TEST(ChooseByRankTest, TakesAnyCount) {
  const std::vector<float> bounds = {3, -kUnknown, 1, kUnknown, 2};
  EXPECT_EQ(ChooseByRank(bounds, Itself, 1).kept, 2);
  EXPECT_EQ(ChooseByRank(bounds, Itself, 3).kept, 4);
  EXPECT_EQ(ChooseByRank(bounds, Itself, 4).kept, 4);
  EXPECT_EQ(ChooseByRank(bounds, Itself, std::numeric_limits<std::int64_t>::max()).kept, 4);
  EXPECT_EQ(ChooseByRank({}, Itself, 1).kept, 0);
  EXPECT_EQ(ChooseByRank({{-kUnknown}}, Itself, 1).kept, 0);
  EXPECT_EQ(ChooseByRank({{kUnknown}}, Itself, 1).kept, 1);
}

TEST(ChooseByRankTest, KeepsAllIfNothingIsProved) {
  const auto nothing = [](double) { return -std::numeric_limits<double>::infinity(); };
  const auto little = [](double bound) { return bound - 1e300; };
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  for (const std::int64_t count : {1, 2, 3}) {
    EXPECT_EQ(ChooseByRank({{1, kLowest, 2, -kUnknown}}, nothing, count).kept, 3);
    EXPECT_EQ(ChooseByRank({{1, kLowest, 2, -kUnknown}}, little, count).kept, 3);
  }
}

}  // namespace
}  // namespace softlookup
