#include "client/tool/tuning_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "tests/client/drawn_chart.h"
#include "tests/client/malformed.h"
#include "tests/client/tool/scripted_tool_test.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::DrawnChart;
using ::softlookup::testing::DrawnPoint;
using ::softlookup::testing::Malformed;
using ::testing::HasSubstr;
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
    ASSERT_THAT(chart.Rings(5), SizeIs(1));
    const double best_temperature = tuning.settings[each.best].temperature;
    EXPECT_NEAR(chart.Rings(5)[0].x, best_temperature, 2e-3 * best_temperature);
    EXPECT_NEAR(chart.Rings(5)[0].y, FigureNamed(each.by, tuning.figures[each.best]), each.error);
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
  ASSERT_THAT(chart.Rings(5), SizeIs(1));
  EXPECT_NEAR(chart.Rings(5)[0].y, -0.1, 1e-3);
}

// A store of two rows, in which every answer has `component_` in both components.
class TunePlotTest : public ScriptedToolTest {
 protected:
  TunePlotTest() {
    store_.set_row_count(2);
    store_.set_live_row_count(2);
    canned_.pages.resize(1);
    for (int position = 0; position < 2; ++position) {
      v1::Row& row = *canned_.pages[0].add_rows();
      row.set_position(position);
      Fill(1, 1, row.mutable_key());
      Fill(2, 0.5, row.mutable_value());
    }
    canned_.Serve(&service_);
    service_.lookup = [this](auto*, const auto&, v1::LookupResponse* response) {
      Fill(2, component_, response->mutable_values());
      response->add_stats();
      return grpc::Status::OK;
    };
  }

  static void Fill(std::uint32_t cols, float component, v1::Matrix* matrix) {
    matrix->set_rows(1);
    matrix->set_cols(cols);
    for (std::uint32_t i = 0; i < cols; ++i) matrix->add_values(component);
  }

  std::atomic<float> component_ = 0.5;
};

TEST_F(TunePlotTest, AnswersThatAreNotFiniteAreAnErrorAndNotDrawn) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/plot.svg";
  for (const float component :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    component_ = component;
    const Outcome outcome = Run({"tune", "people", "--plot", path});
    EXPECT_EQ(outcome.exit_code, ExitCode::kOther);
    EXPECT_THAT(outcome.error, HasSubstr("an answer that is not finite"));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  component_ = 0.5;
  EXPECT_EQ(Run({"tune", "people", "--plot", path}).exit_code, ExitCode::kOk);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(TunePlotTest, AFileThatCannotBeWrittenIsRefusedBeforeTheFirstCall) {
  int calls = 0;
  service_.get_store = [&](auto*, const auto&, auto*) {
    ++calls;
    return grpc::Status::OK;
  };
  const Outcome outcome = Run({"tune", "people", "--plot", "/no/such/folder/plot.svg"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_THAT(outcome.error, HasSubstr("/no/such/folder/plot.svg: cannot be written"));
  EXPECT_EQ(calls, 0);
}

TEST_F(TunePlotTest, ANameThatDoesNotEndInSvgIsRefused) {
  for (const std::string name : {"plot", "plot.png", "plot.svg.gz", "svg"}) {
    const Outcome outcome = Run({"tune", "people", "--plot", name});
    EXPECT_EQ(outcome.exit_code, ExitCode::kUsage) << name;
    EXPECT_THAT(outcome.error, HasSubstr("must end in .svg, unlike " + name));
  }
}

}  // namespace
}  // namespace softlookup::tool
