// `tune` against the real server, and its figures against a plain computation in float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "client/tool/exit_code.h"
#include "tests/client/drawn_chart.h"
#include "tests/client/tool/server_tool_test.h"

namespace softlookup::tool {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

using Vector = std::vector<double>;

struct TestRow {
  Vector key;
  Vector value;
};

struct Expected {
  double accuracy = 0;
  double log_likelihood = 0;
  double squared_error = 0;
  double perplexity = 0;
};

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double ScoreOf(const std::string& score, const Vector& query, const Vector& key) {
  if (score == "cosine") return Dot(query, key) / std::sqrt(Dot(query, query) * Dot(key, key));
  return -std::sqrt(Dot(query, query) - 2 * Dot(query, key) + Dot(key, key));  // Euclidean.
}

Vector HeadOf(const Vector& vector, std::size_t head, std::size_t heads) {
  const std::size_t dim = vector.size() / heads;
  return {vector.begin() + head * dim, vector.begin() + (head + 1) * dim};
}

std::size_t Largest(const Vector& vector) {
  return std::max_element(vector.begin(), vector.end()) - vector.begin();
}

// Leaves out each of `rows`.
Expected Compute(const std::vector<TestRow>& rows, const std::string& score, double temperature,
                 std::size_t heads) {
  Expected expected;
  double entropy = 0;
  const auto count = static_cast<double>(rows.size());
  for (std::size_t left_out = 0; left_out < rows.size(); ++left_out) {
    const Vector& value = rows[left_out].value;
    Vector answer;
    for (std::size_t h = 0; h < heads; ++h) {
      Vector weights;
      double sum = 0;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const double logit =
            ScoreOf(score, HeadOf(rows[left_out].key, h, heads), HeadOf(rows[r].key, h, heads)) /
            temperature;
        weights.push_back(r == left_out ? 0 : std::exp(logit));
        sum += weights.back();
      }
      Vector of_head(value.size() / heads);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const double weight = weights[r] / sum;
        if (weight > 0) entropy -= weight * std::log(weight) / static_cast<double>(heads);
        const Vector part = HeadOf(rows[r].value, h, heads);
        for (std::size_t i = 0; i < part.size(); ++i) of_head[i] += weight * part[i];
      }
      answer.insert(answer.end(), of_head.begin(), of_head.end());
    }
    expected.accuracy += (Largest(answer) == Largest(value) ? 1 : 0) / count;
    expected.log_likelihood += std::log(std::max(answer[Largest(value)], 1e-5)) / count;
    for (std::size_t i = 0; i < value.size(); ++i) {
      expected.squared_error += std::pow(answer[i] - value[i], 2) / count;
    }
  }
  expected.perplexity = std::exp(entropy / count);
  return expected;
}

class TuningTest : public ServerToolTest {
 protected:
  void Succeed(const std::vector<std::string>& arguments) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, ExitCode::kOk) << outcome.error;
  }

  void MakeStore(const std::vector<TestRow>& rows, std::vector<std::string> settings) {
    const std::size_t key_dim = rows[0].key.size();
    const std::size_t value_dim = rows[0].value.size();
    settings.insert(settings.begin(),
                    {"store", "create", "points", "--key-dim", std::to_string(key_dim),
                     "--value-dim", std::to_string(value_dim)});
    Succeed(settings);
    std::vector<float> keys, values;
    for (const TestRow& row : rows) {
      keys.insert(keys.end(), row.key.begin(), row.key.end());
      values.insert(values.end(), row.value.begin(), row.value.end());
    }
    const NpyFile key_file(static_cast<std::uint32_t>(key_dim), keys);
    const NpyFile value_file(static_cast<std::uint32_t>(value_dim), values);
    Succeed({"append", "points", "--keys", key_file.path(), "--values", value_file.path()});
  }

  // Compares the figures of all rows at 2 scores and 3 temperatures with Compute().
  void ExpectFigures(const std::vector<TestRow>& rows, std::size_t heads, bool distributions) {
    const auto json =
        RunJson({"tune", "points", "--scores", "cosine,euclidean", "--temperatures", "2,0.1,0.5"});
    EXPECT_EQ(json["left_out_rows"], rows.size());
    ASSERT_EQ(json["settings"].size(), 6u);
    std::size_t i = 0;
    for (const std::string score : {"cosine", "euclidean"}) {
      for (const double temperature : {0.1, 0.5, 2.0}) {
        const auto& figures = json["settings"][i++];
        SCOPED_TRACE(figures.dump());
        EXPECT_EQ(figures["score"], score);
        EXPECT_EQ(figures["temperature"], temperature);
        const Expected expected = Compute(rows, score, temperature, heads);
        EXPECT_NEAR(figures["accuracy"], expected.accuracy, 1e-9);
        EXPECT_NEAR(figures["squared_error"], expected.squared_error, 2e-5);
        EXPECT_NEAR(figures["perplexity"], expected.perplexity, 1e-4);
        EXPECT_EQ(figures.contains("log_likelihood"), distributions);
        if (!distributions) continue;
        EXPECT_NEAR(figures["log_likelihood"], expected.log_likelihood, 1e-3);
      }
    }
  }

  const std::vector<TestRow> rows_ = {{{1, 0.1}, {1, 0, 0}},
                                      {{0.9, -0.2}, {0.8, 0.1, 0.1}},
                                      {{-0.3, 2}, {0, 1, 0}},
                                      {{0.2, 1.5}, {0.25, 0.5, 0.25}},
                                      {{0.4, 0.3}, {0.2, 0.2, 0.6}}};
};

TEST_F(TuningTest, FiguresAreThoseOfAllOtherLiveRows) {
  std::vector<TestRow> all = rows_;
  all.insert(all.begin() + 2, {{0.5, 0.5}, {0, 0, 1}});
  MakeStore(all, {});
  Succeed({"delete-rows", "points", "--begin", "2", "--end", "3"});
  ExpectFigures(rows_, 1, true);
}

TEST_F(TuningTest, TheFirstAndTheLastRowsMayBeDeleted) {
  std::vector<TestRow> all = rows_;
  all.insert(all.begin(), {{0.5, 0.5}, {0, 0, 1}});
  all.push_back({{1, 1}, {0, 0, 1}});
  MakeStore(all, {});
  Succeed({"delete-rows", "points", "--end", "1"});
  Succeed({"delete-rows", "points", "--begin", "6"});
  ExpectFigures(rows_, 1, true);
}

TEST_F(TuningTest, EachHeadIsMergedByItself) {
  const std::vector<TestRow> rows = {{{1, 0.1, 3, -1}, {1, -2}},
                                     {{0.9, -0.2, 0.5, 1}, {0.5, 0.75}},
                                     {{-0.3, 2, 1, 1}, {0, 1}},
                                     {{0.2, 1.5, 2, -2}, {2, 2.5}}};
  MakeStore(rows, {"--heads", "2"});
  ExpectFigures(rows, 2, false);
}

TEST_F(TuningTest, TheBestSettingHasTheHighestLikelihoodOrWhatByNames) {
  MakeStore(rows_, {});
  for (const std::string by : {"", "accuracy", "log-likelihood", "squared-error"}) {
    std::vector<std::string> arguments = {"tune", "points", "--scores", "cosine,euclidean"};
    if (!by.empty()) arguments.insert(arguments.end(), {"--by", by});
    const auto json = RunJson(arguments);
    EXPECT_EQ(json["by"], by.empty() ? "log-likelihood" : by);
    EXPECT_EQ(json["settings"].size(), 26u);
    EXPECT_EQ(json["set"], false);
    bool found = false;
    for (const auto& figures : json["settings"]) {
      found |= figures == json["best"];
      if (by == "accuracy") {
        EXPECT_LE(figures["accuracy"], json["best"]["accuracy"]);
      }
      if (by == "squared-error") {
        EXPECT_GE(figures["squared_error"], json["best"]["squared_error"]);
      }
      if (by.empty() || by == "log-likelihood") {
        EXPECT_LE(figures["log_likelihood"], json["best"]["log_likelihood"]);
      }
    }
    EXPECT_TRUE(found);
  }
}

TEST_F(TuningTest, OnlySetChangesTheStore) {
  MakeStore(rows_, {"--score", "dot", "--temperature", "7"});
  const std::vector<std::string> arguments = {"tune",      "points",         "--scores",
                                              "euclidean", "--temperatures", "0.015625,1000"};
  const std::string text = Run(arguments).out;
  EXPECT_THAT(text, AllOf(HasSubstr("log-likelihood"), HasSubstr("  best\n"),
                          HasSubstr("5 of 5 rows of points left out, one at a time; best by "
                                    "log-likelihood\n")));
  const auto best = RunJson(arguments)["best"];
  const std::string temperature = best["temperature"] == 1000 ? "1000" : "0.015625";
  EXPECT_THAT(text, EndsWith("softlookup store update points --score euclidean --temperature " +
                             temperature + "\n"));
  EXPECT_EQ(RunJson({"store", "get", "points"})["temperature"], 7);

  std::vector<std::string> setting = arguments;
  setting.push_back("--set");
  EXPECT_EQ(RunJson(setting)["set"], true);
  const auto store = RunJson({"store", "get", "points"});
  EXPECT_EQ(store["score"], "euclidean");
  EXPECT_EQ(store["temperature"], best["temperature"]);
  EXPECT_THAT(Run(setting).out,
              EndsWith("points now has score euclidean and temperature " + temperature + "\n"));
}

TEST_F(TuningTest, ADrawHasAsManyRowsAsAskedForAndDependsOnTheSeed) {
  MakeStore(rows_, {});
  const auto draw = [&](const std::string& seed) {
    return RunJson({"tune", "points", "--rows", "2", "--seed", seed, "--temperatures", "1"});
  };
  const auto first = draw("1");
  EXPECT_EQ(first["left_out_rows"], 2);
  EXPECT_EQ(draw("1"), first);
  bool differs = false;
  for (int seed = 2; seed < 12; ++seed) differs |= draw(std::to_string(seed)) != first;
  EXPECT_TRUE(differs);
}

TEST_F(TuningTest, ByDefaultTriesTheScoreOfTheStoreByTheSquaredErrorOfOneComponent) {
  MakeStore({{{1}, {1}}, {{2}, {2}}, {{3}, {3}}}, {"--score", "squared-euclidean"});
  const auto json = RunJson({"tune", "points"});
  EXPECT_EQ(json["by"], "squared-error");
  EXPECT_EQ(json["settings"].size(), 13u);
  EXPECT_EQ(json["best"]["score"], "squared-euclidean");
  EXPECT_FALSE(json["best"].contains("accuracy"));
  EXPECT_EQ(Run({"tune", "points", "--by", "accuracy"}).exit_code, ExitCode::kUsage);
  const Outcome outcome = Run({"tune", "points", "--by", "log-likelihood"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
  EXPECT_THAT(outcome.error, HasSubstr("add up to 1, unlike those of points"));
}

TEST_F(TuningTest, NotesABestTemperatureAtAnEndOfThoseTried) {
  MakeStore({{{1}, {1}}, {{2}, {2}}, {{2.1}, {0}}, {{3}, {3}}}, {"--score", "euclidean"});
  const auto notes = [&](const std::string& temperatures) {
    return Run({"tune", "points", "--temperatures", temperatures}).notes;
  };
  EXPECT_THAT(notes("0.01,1000"), HasSubstr(" tried; --temperatures tries others\n"));
  EXPECT_EQ(notes("1"), "");
}

TEST_F(TuningTest, APlotHasTheFiguresThatArePrinted) {
  MakeStore(rows_, {});
  const testing::TemporaryFile plot("plot.svg", "an older one");
  for (const std::string by : {"accuracy", "log-likelihood", "squared-error"}) {
    SCOPED_TRACE(by);
    const auto json = RunJson({"tune", "points", "--scores", "cosine,euclidean", "--temperatures",
                               "2,0.1,0.5", "--by", by, "--plot", plot.path()});
    std::ostringstream svg;
    svg << std::ifstream(plot.path()).rdbuf();
    const testing::DrawnChart chart(svg.str());
    const std::string member = std::regex_replace(by, std::regex("-"), "_");
    double reach = 1;  // Of the y axis.
    for (const auto& figures : json["settings"]) {
      reach = std::max(reach, std::abs(figures[member].get<double>()));
    }
    const double error = 2e-3 * reach;
    for (const int color : {1, 2}) {  // Cosine, Euclidean.
      ASSERT_EQ(chart.Lines(color).size(), 1u);
      const std::vector<testing::DrawnPoint> line = chart.Lines(color)[0];
      ASSERT_EQ(line.size(), 3u);
      for (std::size_t i = 0; i < 3; ++i) {
        const auto& figures = json["settings"][3 * (color - 1) + i];
        const double temperature = figures["temperature"], figure = figures[member];
        EXPECT_NEAR(line[i].x, temperature, 2e-3 * temperature);
        EXPECT_NEAR(line[i].y, figure, error);
      }
    }
    const std::vector<testing::DrawnPoint> rings = chart.Rings(6);
    ASSERT_EQ(rings.size(), 1u);
    const double temperature = json["best"]["temperature"], figure = json["best"][member];
    EXPECT_NEAR(rings[0].x, temperature, 2e-3 * temperature);
    EXPECT_NEAR(rings[0].y, figure, error);
  }
  EXPECT_THAT(Run({"tune", "points", "--plot", plot.path()}).out,
              EndsWith("plot written to " + plot.path() + "\n"));
}

TEST_F(TuningTest, SaysWhatIsWrong) {
  Outcome outcome = Run({"tune", "missing"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kNotFound);
  EXPECT_THAT(outcome.error, HasSubstr("store list"));

  MakeStore({rows_[0], rows_[1]}, {});
  Succeed({"tune", "points"});
  Succeed({"delete-rows", "points", "--begin", "1"});
  outcome = Run({"tune", "points"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_EQ(outcome.error, "points: tune needs at least 2 rows, but the store has 1");

  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--scores", "dot,near"},
                                             {"--temperatures", "0"},
                                             {"--temperatures", "1,2e6"},
                                             {"--rows", "0"},
                                             {"--by", "perplexity"}}) {
    std::vector<std::string> arguments = {"tune", "points"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(Run(arguments).exit_code, ExitCode::kUsage) << ::testing::PrintToString(wrong);
  }
}

}  // namespace
}  // namespace softlookup::tool
