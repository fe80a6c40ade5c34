#include "tests/testing/golden.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

namespace softlookup::testing {
namespace {

using nlohmann::json;

json ReadCases() {
  std::ifstream file(SOFTLOOKUP_GOLDEN_CASES);
  return json::parse(file);
}

// The oracle's minus infinity is written as null.
double NumberOrMinusInfinity(const json& value) {
  return value.is_null() ? -std::numeric_limits<double>::infinity() : value.get<double>();
}

AttentionOptions ReadOptions(const json& options) {
  static const std::map<std::string, Score> kScores = {
      {"DOT", Score::kDot},
      {"SCALED_DOT", Score::kScaledDot},
      {"COSINE", Score::kCosine},
      {"EUCLIDEAN", Score::kEuclidean},
      {"SQUARED_EUCLIDEAN", Score::kSquaredEuclidean}};
  static const std::map<std::string, Mode> kModes = {
      {"SOFT", Mode::kSoft}, {"HARD", Mode::kHard}, {"LINEAR", Mode::kLinear}};
  AttentionOptions result;
  result.score = kScores.at(options.value("score", "SCALED_DOT"));
  result.mode = kModes.at(options.value("mode", "SOFT"));
  if (options.contains("temperature")) result.temperature = options["temperature"].get<double>();
  if (options.contains("min_score")) result.min_score = options["min_score"].get<double>();
  if (options.contains("recency_decay")) {
    result.recency_decay = options["recency_decay"].get<double>();
  }
  result.top_k = options.value("top_k", 0u);
  result.causal = options.value("causal", false);
  result.causal_offset = options.value("causal_offset", std::uint64_t{0});
  return result;
}

template <typename T>
double LargestRelativeError(const std::vector<T>& actual, const std::vector<double>& expected) {
  double error = 0, largest = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(actual.at(i)) - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return error / largest;
}

}  // namespace

std::vector<GoldenLookup> ReadGoldenLookups() {
  const json file = ReadCases();
  std::vector<GoldenLookup> cases;
  for (const json& item : file.at("lookups")) {
    GoldenLookup& golden = cases.emplace_back();
    golden.name = item.at("name");
    golden.query_count = item.at("T");
    golden.row_count = item.at("N");
    golden.key_dim = item.at("key_dim");
    golden.value_dim = item.at("value_dim");
    golden.queries = item.at("queries").get<std::vector<float>>();
    golden.keys = item.at("keys").get<std::vector<float>>();
    golden.values = item.at("values").get<std::vector<float>>();
    const json& options = item.at("options");
    golden.options = ReadOptions(options);
    golden.num_heads = options.value("num_heads", 1);
    if (options.contains("allowed")) {
      for (const int allowed : options["allowed"]) golden.allowed.push_back(allowed != 0);
    }
    const json& expect = item.at("expect");
    golden.expected_values = expect.at("values").get<std::vector<double>>();
    golden.expected_weights = expect.at("weights").get<std::vector<std::vector<double>>>();
    for (std::size_t i = 0; i < expect.at("counted_rows").size(); ++i) {
      golden.expected_stats.push_back(
          {.log_sum_exp = NumberOrMinusInfinity(expect.at("log_sum_exp")[i]),
           .max_logit = NumberOrMinusInfinity(expect.at("max_logit")[i]),
           .counted_rows = expect.at("counted_rows")[i],
           .entropy = expect.at("entropy")[i]});
    }
  }
  return cases;
}

std::vector<GoldenMemory> ReadGoldenMemories() {
  const json file = ReadCases();
  std::vector<GoldenMemory> cases;
  for (const json& item : file.at("memories")) {
    cases.push_back({.kind = item.at("kind"),
                     .row_count = item.at("n"),
                     .key_dim = item.at("key_dim"),
                     .value_dim = item.at("value_dim"),
                     .begin = item.at("begin"),
                     .decay = item.value("decay", 0.0),
                     .gate = item.value("gate", std::vector<float>()),
                     .keys = item.at("keys").get<std::vector<float>>(),
                     .values = item.at("values").get<std::vector<float>>(),
                     .expected_key = item.at("expect").at("key").get<std::vector<double>>(),
                     .expected_value = item.at("expect").at("value").get<std::vector<double>>(),
                     .expected_weight = item.at("expect").at("weight")});
  }
  return cases;
}

double RelativeError(const std::vector<float>& actual, const std::vector<double>& expected) {
  return LargestRelativeError(actual, expected);
}

double RelativeError(const std::vector<double>& actual, const std::vector<double>& expected) {
  return LargestRelativeError(actual, expected);
}

}  // namespace softlookup::testing
