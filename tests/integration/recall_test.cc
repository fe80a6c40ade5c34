// `softlookup recall` against the real server: what people and scripts see of it.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "softlookup/similarity.h"
#include "softlookup/word_encoder.h"
#include "tests/client/tool/temporary_file.h"
#include "tests/integration/integration_test.h"

namespace softlookup::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class RecallTest : public IntegrationTest {
 protected:
  // No run leaves a store behind.
  void TearDown() override { EXPECT_THAT(*client_.ListStores(), IsEmpty()); }

  CommandResult Run(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(),
                     {ToolBinary(), "--server", server_.grpc_address(), "recall"});
    return RunCommand(arguments, input);
  }

  json RunJson(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.end(), {"-o", "json"});
    const CommandResult result = Run(std::move(arguments), input);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
  }
};

double SumOfWeights(const json& recall) {
  double sum = recall["remaining_weight"];
  for (const json& row : recall["weights"]) sum += row["weight"].get<double>();
  return sum;
}

TEST_F(RecallTest, AWordRecallsItself) {
  for (const std::string similarity : {"cosine", "euclidean"}) {
    for (const std::string cue : {"apple", "bread", "cloud", "drum", "eagle"}) {
      const json recall = RunJson({cue, "--similarity", similarity});
      EXPECT_EQ(recall["cue"], cue);
      EXPECT_EQ(recall["word_count"], 5);
      EXPECT_EQ(recall["recalled"], cue);
      EXPECT_EQ(recall["weights"][0]["word"], cue);
      EXPECT_EQ(recall["weights"].size(), 5u);
      EXPECT_NEAR(SumOfWeights(recall), 1, 1e-6);
    }
  }
}

TEST_F(RecallTest, WeightsAreTheSoftmaxOfTheSimilarities) {
  const WordEncoder encoder(16);
  for (const bool cosine : {true, false}) {
    const Similarity similarity = cosine ? Similarity::Cosine() : Similarity::Euclidean();
    const json recall = RunJson({"cue", "--word", "a,b,c", "--dim", "16", "--temperature", "0.5",
                                 "--similarity", cosine ? "cosine" : "euclidean"});
    double sum = 0;
    for (const std::string word : {"a", "b", "c"}) {
      sum += std::exp(similarity(encoder.Encode("cue"), encoder.Encode(word)) / 0.5);
    }
    double entropy = 0;
    for (const json& row : recall["weights"]) {
      const double score =
          similarity(encoder.Encode("cue"), encoder.Encode(row["word"].get<std::string>()));
      const double weight = std::exp(score / 0.5) / sum;
      EXPECT_NEAR(row["score"].get<double>(), score, 1e-6);
      EXPECT_NEAR(row["weight"].get<double>(), weight, 1e-5);
      entropy -= weight * std::log(weight);
    }
    EXPECT_NEAR(recall["entropy"].get<double>(), entropy, 1e-5);
    EXPECT_NEAR(recall["perplexity"].get<double>(), std::exp(entropy), 1e-4);
  }
}

TEST_F(RecallTest, WeightsSharpenAsTheTemperatureFalls) {
  const json sweep = RunJson({"apple", "--noise", "1"})["sweep"];
  ASSERT_GE(sweep.size(), 5u);
  for (std::size_t i = 1; i < sweep.size(); ++i) {
    EXPECT_LT(sweep[i]["temperature"], sweep[i - 1]["temperature"]);
    EXPECT_LT(sweep[i]["entropy"], sweep[i - 1]["entropy"]);
    EXPECT_GT(sweep[i]["weights"][0]["weight"], sweep[i - 1]["weights"][0]["weight"]);
  }
}

TEST_F(RecallTest, NoiseIsSeeded) {
  const std::vector<std::string> arguments = {"apple", "--noise", "2", "--seed", "5"};
  EXPECT_EQ(RunJson(arguments), RunJson(arguments));
  const json other = RunJson({"apple", "--noise", "2", "--seed", "6"});
  EXPECT_NE(RunJson(arguments)["weights"], other["weights"]);
}

TEST_F(RecallTest, ReadsAWordListOfAnyLength) {
  std::string words;
  for (int i = 0; i < 20000; ++i) words += "w" + std::to_string(i) + "\n";
  const json recall = RunJson(
      {"w12345", "--words", "-", "--temperature", "0.02", "--dim", "128", "--top", "3"}, words);
  EXPECT_EQ(recall["word_count"], 20000);
  EXPECT_EQ(recall["recalled"], "w12345");
  EXPECT_EQ(recall["weights"].size(), 3u);
  EXPECT_NEAR(SumOfWeights(recall), 1, 1e-6);
  const CommandResult empty = Run({"--words", "-"}, "\n");
  EXPECT_EQ(empty.exit_code, 3);
  EXPECT_THAT(empty.err, HasSubstr("holds no word"));
}

TEST_F(RecallTest, ShowsPeopleTheWordTheBarsAndTheSweep) {
  const CommandResult result = Run({"drum"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("cue \"drum\"; 5 words in 64 dimensions, cosine"));
  EXPECT_THAT(result.out, HasSubstr("\n  drum    1.0000  0.9148  ####"));
  EXPECT_THAT(result.out, HasSubstr("\nrecalled \"drum\""));
  EXPECT_THAT(result.out, HasSubstr("\n  temperature    drum "));
}

TEST_F(RecallTest, PosnerValidCuesHelpAndBothKindsFallToChance) {
  for (const std::string similarity : {"cosine", "euclidean"}) {
    for (const std::string seed : {"1", "2", "3"}) {
      const json posner =
          RunJson({"--experiment", "posner", "--similarity", similarity, "--seed", seed});
      const double chance = posner["chance"];
      const json& points = posner["points"];
      const double highest = points.back()["temperature"];
      EXPECT_GE(highest / points[0]["temperature"].get<double>(), 1e4);
      for (const json& point : points) {
        const double valid = point["valid"]["accuracy"];
        const double invalid = point["invalid"]["accuracy"];
        if (point["temperature"] < highest / 10) {
          EXPECT_GT(valid, invalid) << similarity << ", seed " << seed << ": " << point;
        }
      }
      EXPECT_GT(points[0]["valid"]["accuracy"], 0.9);
      EXPECT_GT(points[0]["invalid"]["accuracy"], 2 * chance);
      for (const char* cue : {"valid", "invalid"}) {
        EXPECT_NEAR(points.back()[cue]["accuracy"].get<double>(), chance, 0.02 * chance);
        EXPECT_NEAR(points.back()[cue]["entropy"].get<double>(), -std::log(chance), 1e-3);
      }
    }
  }
}

TEST_F(RecallTest, PosnerIsReproducibleAndDrawsItself) {
  const TemporaryFile plot("posner.svg");
  const std::vector<std::string> arguments = {
      "--experiment",   "posner",  "--trials", "100", "--noise", "1",
      "--memories",     "8",       "--seed",   "9",   "--plot",  plot.path(),
      "--temperatures", "1,0.1,10"};
  const auto bytes = [&] {
    std::ostringstream text;
    text << std::ifstream(plot.path()).rdbuf();
    return text.str();
  };
  const json first = RunJson(arguments);
  const std::string svg = bytes();
  EXPECT_EQ(RunJson(arguments), first);
  EXPECT_EQ(bytes(), svg);
  EXPECT_THAT(svg, StartsWith("<svg "));
  EXPECT_THAT(svg, HasSubstr(">chance, 1/8<"));
  EXPECT_EQ(first["trials"], 100);
  ASSERT_EQ(first["points"].size(), 3u);
  EXPECT_EQ(first["points"][0]["temperature"], 0.1);
  const CommandResult table = Run(arguments);
  EXPECT_THAT(table.out, HasSubstr("temperature  accuracy valid  accuracy invalid"));
  EXPECT_THAT(table.out, HasSubstr("plot written to " + plot.path()));
}

TEST_F(RecallTest, FailuresLeaveNothingBehind) {
  EXPECT_EQ(Run({"--top", "1025"}).exit_code, 2);
  EXPECT_EQ(Run({"--trials", "5"}).exit_code, 2);
  EXPECT_EQ(Run({"--experiment", "stroop"}).exit_code, 2);
  EXPECT_EQ(Run({"apple", "--experiment", "posner"}).exit_code, 2);
  EXPECT_EQ(Run({"--words", "no/such/file"}).exit_code, 3);
  EXPECT_EQ(Run({"--experiment", "posner", "--plot", "no/such/folder/p.svg"}).exit_code, 3);
  // Its queries are larger than a message may be.
  const CommandResult large =
      Run({"--experiment", "posner", "--dim", "65536", "--trials", "300", "--temperatures", "1"});
  EXPECT_EQ(large.exit_code, 4) << large.err;
}

}  // namespace
}  // namespace softlookup::testing
