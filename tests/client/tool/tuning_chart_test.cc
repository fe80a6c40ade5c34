#include "client/tool/tuning_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "client/output/vocabulary.h"
#include "tests/client/drawn_chart.h"
#include "tests/client/malformed.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::DrawnChart;
using ::softlookup::testing::DrawnPoint;
using ::softlookup::testing::Malformed;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two scores and three temperatures. The best is `best`.
Tuning TwoScores(const std::string& by, std::size_t best) {
  Tuning tuning;
  tuning.store.set_name("points");
  tuning.store.set_live_row_count(9);
  tuning.rows.resize(7);
  tuning.by = by;
  tuning.best = best;
  for (const v1::Score score : {v1::SCORE_COSINE, v1::SCORE_SQUARED_EUCLIDEAN}) {
    for (const double temperature : {0.05, 0.7, 20.0}) {
      tuning.settings.push_back({score, temperature});
      const auto i = static_cast<double>(tuning.figures.size());
      tuning.figures.push_back({.accuracy = 0.4 + 0.1 * i,
                                .log_likelihood = -0.1 - 0.37 * i,
                                .squared_error = 0.02 + 0.3 * i,
                                .perplexity = 2});
    }
  }
  return tuning;
}

// The figures of settings [begin, begin + 3) are the line's, `error` off at most.
void ExpectLine(const Tuning& tuning, std::size_t begin, const std::vector<DrawnPoint>& line,
                double error) {
  ASSERT_THAT(line, SizeIs(3));
  for (std::size_t i = 0; i < 3; ++i) {
    const double temperature = tuning.settings[begin + i].temperature;
    EXPECT_NEAR(line[i].x, temperature, 2e-3 * temperature);
    EXPECT_NEAR(line[i].y, FigureNamed(tuning.by, tuning.figures[begin + i]), error);
  }
}

TEST(TuningChartTest, ALineOfEachScoreHasItsFiguresAndARingMarksTheBest) {
  struct Case {
    std::string by;
    std::size_t best;
    double error;  // A thousandth of the axis.
    std::string label;
  };
  for (const Case& each :
       {Case{kAccuracy, 5, 1e-3, "accuracy, a part of the rows"},
        Case{kLogLikelihood, 0, 2e-3, "mean log-likelihood of a row, nats"},
        Case{kSquaredError, 0, 2e-3,
             "mean squared error of a row, in the square of the values' unit"}}) {
    SCOPED_TRACE(each.by);
    const Tuning tuning = TwoScores(each.by, each.best);
    const std::string svg = TuningSvg(tuning);
    EXPECT_EQ(Malformed(svg), "");
    const DrawnChart chart(svg);
    ASSERT_THAT(chart.Lines(1), SizeIs(1));
    ASSERT_THAT(chart.Lines(2), SizeIs(1));
    ExpectLine(tuning, 0, chart.Lines(1)[0], each.error);
    ExpectLine(tuning, 3, chart.Lines(2)[0], each.error);
    ASSERT_THAT(chart.Rings(6), SizeIs(1));
    const double best_temperature = tuning.settings[each.best].temperature;
    EXPECT_NEAR(chart.Rings(6)[0].x, best_temperature, 2e-3 * best_temperature);
    EXPECT_NEAR(chart.Rings(6)[0].y, FigureNamed(each.by, tuning.figures[each.best]), each.error);
    for (const std::string text :
         {"cosine", "squared-euclidean", "best", "temperature, in the score's unit (log scale)"}) {
      EXPECT_TRUE(chart.HasText(text)) << text;
    }
    EXPECT_TRUE(chart.HasText(each.label));
  }
}

TEST(TuningChartTest, TextsNameTheBestSettingTheStoreAndItsRows) {
  const DrawnChart chart(TuningSvg(TwoScores(kLogLikelihood, 1)));
  EXPECT_TRUE(chart.HasText("Which temperature has the best log-likelihood?"));
  EXPECT_TRUE(chart.HasText(
      "best: cosine at temperature 0.7; 7 of 9 rows left out, one at a time, of points"));
}

TEST(TuningChartTest, ALongNameIsShortenedToTheRoomOfTheSubtitle) {
  Tuning tuning = TwoScores(kLogLikelihood, 1);
  tuning.store.set_name(std::string(200, 'n'));
  const std::string text =
      "best: cosine at temperature 0.7; 7 of 9 rows left out, one at a time, of ";
  const std::string shortened = std::string(105 - text.size() - 3, 'n') + "...";
  EXPECT_TRUE(DrawnChart(TuningSvg(tuning)).HasText(text + shortened));
  tuning.store.set_name(std::string(105 - text.size(), 'n'));
  EXPECT_TRUE(DrawnChart(TuningSvg(tuning)).HasText(text + tuning.store.name()));
  // Of a name, there always is something to see.
  tuning.store.set_live_row_count(std::numeric_limits<std::uint64_t>::max());
  tuning.settings[1] = {v1::SCORE_SQUARED_EUCLIDEAN, 123456};
  tuning.store.set_name(std::string(200, 'n'));
  EXPECT_THAT(TuningSvg(tuning), HasSubstr(", one at a time, of nnnnnnnnn...</text>"));
}

TEST(TuningChartTest, OneRowIsNotCalledRows) {
  Tuning tuning = TwoScores(kLogLikelihood, 1);
  tuning.rows.resize(1);
  tuning.store.set_live_row_count(1);
  EXPECT_THAT(TuningSvg(tuning), HasSubstr("; 1 of 1 row left out, one at a time, of points<"));
}

TEST(TuningChartTest, NoScoresLineHasTheColorOfTheRing) {
  Tuning tuning;
  tuning.by = kSquaredError;
  for (const std::string& word : output::Words<v1::Score>()) {
    for (const double temperature : {0.1, 1.0}) {
      tuning.settings.push_back({output::FromWord<v1::Score>(word), temperature});
      tuning.figures.push_back({.squared_error = temperature});
    }
  }
  ASSERT_THAT(tuning.settings, SizeIs(10));
  const DrawnChart chart(TuningSvg(tuning));
  for (const int color : {1, 2, 3, 4, 5}) EXPECT_THAT(chart.Lines(color), SizeIs(1));
  EXPECT_THAT(chart.Lines(6), IsEmpty());
  EXPECT_THAT(chart.Rings(6), SizeIs(1));
}

TEST(TuningChartTest, AScoreGivenTwiceHasTwoLines) {
  Tuning tuning = TwoScores(kAccuracy, 0);
  for (Setting& setting : tuning.settings) setting.score = v1::SCORE_DOT;
  const DrawnChart chart(TuningSvg(tuning));
  ASSERT_THAT(chart.Lines(1), SizeIs(1));
  ASSERT_THAT(chart.Lines(2), SizeIs(1));
  ExpectLine(tuning, 3, chart.Lines(2)[0], 1e-3);
}

TEST(TuningChartTest, OneSettingIsEnough) {
  Tuning tuning = TwoScores(kLogLikelihood, 0);
  tuning.settings.resize(1);
  tuning.figures.resize(1);
  const DrawnChart chart(TuningSvg(tuning));
  ASSERT_THAT(chart.Rings(6), SizeIs(1));
  EXPECT_NEAR(chart.Rings(6)[0].y, -0.1, 1e-3);
}

}  // namespace
}  // namespace softlookup::tool
