#include "client/tool/lookup_printer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace softlookup::tool {
namespace {

using ::testing::HasSubstr;

TEST(WeightTextTest, IsShortForSmallAndForLargeWeights) {
  EXPECT_EQ(WeightText(0), "0.0000");
  EXPECT_EQ(WeightText(-0.0), "0.0000");
  EXPECT_EQ(WeightText(0.00002), "2.0e-05");
  EXPECT_EQ(WeightText(-0.25), "-0.2500");
  EXPECT_EQ(WeightText(999999), "999999.0000");
  EXPECT_EQ(WeightText(1e6), "1e+06");
  EXPECT_EQ(WeightText(-1234567), "-1.235e+06");
  EXPECT_EQ(WeightText(9e76), "9e+76");
}

// What is printed for rows with these weights.
std::string Printed(const std::vector<double>& weights, double score = 1) {
  LookupAnswer answer;
  answer.values = {.rows = 1, .cols = 1, .data = {0}};
  answer.stats.resize(1);
  v1::QueryWeights& listed = answer.weights.emplace_back();
  for (const double weight : weights) {
    listed.add_positions(0);
    listed.add_scores(score);
    listed.add_weights(weight);
  }
  std::ostringstream out;
  Session session;
  session.out = &out;
  PrintAttention(answer, session);
  return out.str();
}

TEST(LookupPrinterTest, ABarShowsTheLargestWeightAtFullLength) {
  const std::string out = Printed({4, -2, 0});
  EXPECT_THAT(out, HasSubstr("  4.0000  " + std::string(kBarWidth, '#') + "\n"));
  EXPECT_THAT(out, HasSubstr(" -2.0000  " + std::string(kBarWidth / 2, '-') + "\n"));
  EXPECT_THAT(out, HasSubstr("  0.0000\n"));
}

TEST(LookupPrinterTest, AScoreOfZeroHasNoSign) {
  EXPECT_THAT(Printed({-0.0}, -0.0), HasSubstr("         0      0  0.0000\n"));
}

TEST(LookupPrinterTest, AWeightThatIsNotFiniteHasNoBar) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Printed({kNan, 1}), HasSubstr("  1.0000  " + std::string(kBarWidth, '#') + "\n"));
  EXPECT_THAT(Printed({kInfinity, 1}), HasSubstr("     inf\n"));
  EXPECT_THAT(Printed({-kInfinity, 1}), HasSubstr("    -inf\n"));
}

}  // namespace
}  // namespace softlookup::tool
