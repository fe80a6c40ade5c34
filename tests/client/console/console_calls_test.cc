// The calls of the console's pages against the real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/console/api.h"
#include "client/console/request_reader.h"
#include "softlookup/word_encoder.h"
#include "tests/testing/server_process.h"

namespace softlookup::console {
namespace {

using output::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kRows = 300;
constexpr double kTemperature = 0.7;

class ConsoleCallsTest : public ::testing::Test {
 protected:
  ConsoleCallsTest()
      : client_(*Client::Connect(server_.grpc_address())),
        api_({.client = &client_,
              .server = server_.grpc_address(),
              .metrics = server_.http_address(),
              .stopping = &stopping_}) {
    v1::Store store;
    store.set_name("s");
    store.set_key_dim(2);
    store.set_value_dim(1);
    store.set_score(v1::SCORE_DOT);
    store.set_temperature(kTemperature);
    EXPECT_TRUE(client_.CreateStore(store).ok());
    v1::AppendRequest rows;
    rows.set_store("s");
    for (std::uint32_t i = 0; i < kRows; ++i) {
      keys_.insert(keys_.end(), {static_cast<float>(i % 17) / 17, static_cast<float>(i % 5) / 5});
      values_.push_back(static_cast<float>(i));
      rows.add_ids(std::uint64_t{1} << 63 | i);
      rows.add_row_labels()->add_labels(i % 2 == 0 ? "even" : "<b>odd</b>");
    }
    EXPECT_TRUE(FloatMatrixView(keys_, kRows, 2).ToProto(rows.mutable_keys()).ok());
    EXPECT_TRUE(FloatMatrixView(values_, kRows, 1).ToProto(rows.mutable_values()).ok());
    EXPECT_TRUE(client_.Append(rows).ok());
  }

  Json Result(const std::string& name, const Json& request) {
    const Json answer = api_.Call(name, request);
    EXPECT_TRUE(answer.contains("result")) << answer;
    return answer.value("result", Json());
  }
  std::string Error(const std::string& name, const Json& request) {
    return api_.Call(name, request).value("error", Json::object()).value("message", "");
  }
  static std::vector<float> Floats(const Json& text) {
    std::string bytes;
    EXPECT_TRUE(absl::Base64Unescape(text.get<std::string>(), &bytes));
    std::vector<float> floats(bytes.size() / sizeof(float));
    memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
  }
  // exp(logit) of row `i` for a query.
  double Term(const std::vector<float>& query, std::uint32_t i) const {
    return std::exp((double{query[0]} * keys_[2 * i] + double{query[1]} * keys_[2 * i + 1]) /
                    kTemperature);
  }
  Json Question() const { return {{"store", "s"}, {"dim", 2}, {"query", FloatsText(query_)}}; }

  const testing::ServerProcess server_;
  Client client_;
  std::atomic<bool> stopping_{false};
  Api api_;
  std::vector<float> keys_;
  std::vector<float> values_;
  const std::vector<float> query_ = {3, -2};
};

TEST_F(ConsoleCallsTest, AStoreIsToldWithItsSizesAndSettings) {
  const Json page = Result("stores", Json::object());
  ASSERT_EQ(page["stores"].size(), 1u);
  EXPECT_EQ(page["stores"][0], Result("store", {{"name", "s"}}));
  const Json store = page["stores"][0];
  EXPECT_EQ(store["row_count"], kRows);
  EXPECT_EQ(store["live_row_count"], kRows);
  EXPECT_EQ(store["score"], "dot");
  EXPECT_EQ(store["storage"], "float32");
  EXPECT_EQ(store["memories"][0]["name"], "average");
  EXPECT_EQ(Result("stores", {{"prefix", "x"}})["stores"].size(), 0u);
}

TEST_F(ConsoleCallsTest, RowsComeInPagesThatPassTheFilter) {
  const Json page = Result("rows", {{"store", "s"}, {"count", 3}, {"any_labels", {"even"}}});
  ASSERT_EQ(page["rows"].size(), 3u);
  EXPECT_EQ(page["rows"][2]["position"], 4);
  EXPECT_EQ(page["rows"][2]["id"], "9223372036854775812");
  EXPECT_EQ(page["rows"][2]["labels"], Json::array({"even"}));
  EXPECT_EQ(page["rows"][2]["value"]["first"], Json::array({4.0}));
  EXPECT_EQ(page["next"], 6);
  const Json last = Result("rows", {{"store", "s"}, {"count", 3}, {"begin", kRows - 2}});
  EXPECT_EQ(last["rows"].size(), 2u);
  EXPECT_TRUE(last["next"].is_null());
  EXPECT_THAT(Error("rows", {{"store", "s"}, {"count", 201}}), HasSubstr("count must be"));
}

TEST_F(ConsoleCallsTest, LabelsComeByPosition) {
  const Json rows = Result("labels", {{"store", "s"}, {"positions", {7, 8, 2}}})["rows"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["position"], 2);
  EXPECT_EQ(rows[1]["labels"], Json::array({"<b>odd</b>"}));
  EXPECT_THAT(Error("labels", {{"store", "s"}, {"positions", std::vector<int>(4097)}}),
              HasSubstr("positions must be"));
}

TEST_F(ConsoleCallsTest, AQueryIsASumOfRowsWordsAndNumbers) {
  const auto query = [&](const Json& terms) {
    return Floats(Result("query", {{"store", "s"}, {"dim", 2}, {"terms", terms}})["query"]);
  };
  const auto row = [&](std::uint32_t i) {
    return std::vector<float>{keys_[2 * i], keys_[2 * i + 1]};
  };
  EXPECT_EQ(query({{{"kind", "position"}, {"value", 3}}}), row(3));
  EXPECT_EQ(query({{{"kind", "id"}, {"value", "9223372036854775817"}}}), row(9));
  EXPECT_EQ(query({{{"kind", "label"}, {"value", "<b>odd</b>"}}}), row(1));
  EXPECT_EQ(query({{{"kind", "word"}, {"value", "apple"}}}), WordEncoder(2).Encode("apple"));
  const std::vector<float> sum = query({{{"kind", "position"}, {"value", 3}, {"factor", 2}},
                                        {{"kind", "vector"}, {"value", {0.5, 1}}, {"factor", -1}}});
  EXPECT_FLOAT_EQ(sum[0], 2 * keys_[6] - 0.5f);
  EXPECT_FLOAT_EQ(sum[1], 2 * keys_[7] - 1);
  const auto error = [&](const Json& terms) {
    return Error("query", {{"store", "s"}, {"dim", 2}, {"terms", terms}});
  };
  EXPECT_THAT(error({{{"kind", "id"}, {"value", "5"}}}),
              HasSubstr("no row of the store has the id 5"));
  EXPECT_THAT(error({{{"kind", "vector"}, {"value", {1}}}}), HasSubstr("the query has 1 number"));
  EXPECT_THAT(error({{{"kind", "x"}}}), HasSubstr("kind must be"));
  EXPECT_THAT(error(Json::array()), HasSubstr("terms must be"));
  EXPECT_THAT(error({7}), HasSubstr("a term must be an object"));
}

TEST_F(ConsoleCallsTest, ALookupAnswersAsTheServerDoes) {
  Json request = Question();
  request["top"] = 2;
  const Json answer = Result("lookup", request);
  double sum = 0;
  double value = 0;
  for (std::uint32_t i = 0; i < kRows; ++i) {
    sum += Term(query_, i);
    value += Term(query_, i) * values_[i];
  }
  EXPECT_NEAR(answer["stats"][0]["log_sum_exp"].get<double>(), std::log(sum), 1e-5);
  EXPECT_NEAR(Floats(answer["values"])[0], value / sum, 1e-5 * kRows);
  EXPECT_EQ(answer["stats"][0]["counted_rows"], kRows);
  EXPECT_EQ(answer["row_count"], kRows);
  ASSERT_EQ(answer["weights"][0]["positions"].size(), 2u);
  const std::uint32_t first = answer["weights"][0]["positions"][0];
  EXPECT_EQ(answer["weights"][0]["ids"][0], absl::StrCat((std::uint64_t{1} << 63) + first));
  request["last"] = 0;
  EXPECT_EQ(Result("lookup", request)["stats"][0]["empty"], true);
  request["temperature"] = -1;
  EXPECT_THAT(Error("lookup", request), HasSubstr("temperature"));
}

// With a recency decay, too, whose ages count from the end of each block.
TEST_F(ConsoleCallsTest, TheWeightOfBlocksOfPositionsAddsUpToOne) {
  for (const double decay : {1.0, 0.99}) {
    Json request = Question();
    request["recency_decay"] = decay;
    const double all = Result("lookup", request)["stats"][0]["log_sum_exp"];
    request["end"] = kRows;
    request["last"] = 200;
    Json window = request;
    const double of_window = Result("lookup", window)["stats"][0]["log_sum_exp"];
    request["blocks"] = 7;
    const Json mass = Result("mass", request);
    ASSERT_EQ(mass["edges"].size(), 8u);
    EXPECT_EQ(mass["edges"][0], kRows - 200);
    double sum = 0;
    std::uint64_t counted = 0;
    for (std::size_t i = 0; i < 7; ++i) {
      sum += std::exp(mass["log_sum_exp"][i].get<double>() - of_window);
      counted += mass["counted"][i].get<std::uint64_t>();
      double expected = 0;
      for (std::uint32_t row = mass["edges"][i]; row < mass["edges"][i + 1]; ++row) {
        expected += Term(query_, row) * std::pow(decay, kRows - 1 - row);
      }
      EXPECT_NEAR(mass["log_sum_exp"][i].get<double>(), std::log(expected), 1e-3);
    }
    EXPECT_NEAR(sum, 1, 1e-3);
    EXPECT_EQ(counted, 200u);
    EXPECT_GT(all, of_window);
  }
  Json request = Question();
  EXPECT_THAT(Error("mass", request), HasSubstr("end must be"));
  request["end"] = kRows;
  request["top_k"] = 3;
  EXPECT_THAT(Error("mass", request), HasSubstr("top_k must be 0"));
}

TEST_F(ConsoleCallsTest, AHeatMapHasTheWeightOfEachRowAndMasksTheOthers) {
  const Json map = Result("attention", {{"store", "s"},
                                        {"dim", 2},
                                        {"query_begin", 10},
                                        {"query_end", 14},
                                        {"row_begin", 8},
                                        {"row_end", 14},
                                        {"causal", true},
                                        {"causal_offset", 10}});
  EXPECT_EQ(map["kind"], "rows");
  EXPECT_EQ(map["rows"]["positions"], Json({8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(map["queries"]["positions"], Json({10, 11, 12, 13}));
  const std::vector<float> weights = Floats(map["weights"]);
  const std::vector<float> scores = Floats(map["scores"]);
  ASSERT_EQ(weights.size(), 24u);
  for (std::uint32_t t = 0; t < 4; ++t) {
    const std::vector<float> query = {keys_[2 * (10 + t)], keys_[2 * (10 + t) + 1]};
    double sum = 0;
    for (std::uint32_t i = 8; i <= 10 + t; ++i) sum += Term(query, i);
    for (std::uint32_t column = 0; column < 6; ++column) {
      const bool seen = 8 + column <= 10 + t;
      EXPECT_EQ(std::isnan(scores[t * 6 + column]), !seen);
      EXPECT_NEAR(weights[t * 6 + column], seen ? Term(query, 8 + column) / sum : 0, 1e-5);
    }
  }
}

TEST_F(ConsoleCallsTest, SelfAttentionLeavesOutDeletedRows) {
  v1::RowFilter filter;
  filter.add_ids(std::uint64_t{1} << 63 | 21);
  ASSERT_TRUE(client_.DeleteRows("s", filter).ok());
  const Json map =
      Result("attention", {{"store", "s"}, {"self", true}, {"row_begin", 20}, {"row_end", 24}});
  EXPECT_EQ(map["rows"]["positions"], Json({20, 22, 23}));
  const std::vector<float> weights = Floats(map["weights"]);
  ASSERT_EQ(weights.size(), 9u);
  const std::vector<std::uint32_t> rows = {20, 22, 23};
  for (int t = 0; t < 3; ++t) {
    const std::vector<float> query = {keys_[2 * rows[t]], keys_[2 * rows[t] + 1]};
    double sum = 0;
    for (const std::uint32_t row : rows) sum += Term(query, row);
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(weights[3 * t + i], Term(query, rows[i]) / sum, 1e-5);
  }
}

TEST_F(ConsoleCallsTest, ADeletedRowMovesNoCausalMask) {
  v1::RowFilter deleted;
  deleted.set_begin(5);
  deleted.set_end(6);
  ASSERT_TRUE(client_.DeleteRows("s", deleted).ok());
  const Json map = Result("attention", {{"store", "s"},
                                        {"query_begin", 4},
                                        {"query_end", 8},
                                        {"row_end", 8},
                                        {"causal", true},
                                        {"causal_offset", 4}});
  const std::vector<std::uint64_t> queries = map["queries"]["positions"];
  const std::vector<std::uint64_t> rows = map["rows"]["positions"];
  EXPECT_THAT(queries, ElementsAre(4, 6, 7));
  EXPECT_THAT(rows, ElementsAre(0, 1, 2, 3, 4, 6, 7));
  const std::vector<float> scores = Floats(map["scores"]);
  ASSERT_EQ(scores.size(), queries.size() * rows.size());
  for (std::size_t t = 0; t < queries.size(); ++t) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(std::isnan(scores[t * rows.size() + i]), rows[i] > queries[t]) << t << " " << i;
    }
  }
}

TEST_F(ConsoleCallsTest, ManyRowsAreShownAsBlocks) {
  const Json map = Result("attention", {{"store", "s"},
                                        {"dim", 2},
                                        {"queries", FloatsText(query_)},
                                        {"row_begin", 0},
                                        {"row_end", kRows}});
  EXPECT_EQ(map["kind"], "blocks");
  ASSERT_EQ(map["edges"].size(), 65u);
  const std::vector<float> weights = Floats(map["weights"]);
  double sum = 0;
  for (std::uint32_t i = 0; i < kRows; ++i) sum += Term(query_, i);
  for (std::size_t block = 0; block < 64; ++block) {
    double expected = 0;
    for (std::uint32_t i = map["edges"][block]; i < map["edges"][block + 1]; ++i) {
      expected += Term(query_, i) / sum;
    }
    EXPECT_NEAR(weights[block], expected, 1e-5);
  }
  EXPECT_THAT(Error("attention", {{"store", "s"},
                                  {"dim", 2},
                                  {"queries", FloatsText(query_)},
                                  {"row_end", kRows},
                                  {"top_k", 2}}),
              HasSubstr("shown as blocks"));
  EXPECT_THAT(Error("attention", {{"store", "s"}, {"query_end", 129}, {"row_end", 5}}),
              HasSubstr("query_end must be"));
}

TEST_F(ConsoleCallsTest, AMemoryIsAsOfAnyAppend) {
  const Json memory = Result("memory", {{"store", "s"}, {"begin", 2}, {"end", 5}});
  EXPECT_EQ(memory["weight"], 3);
  EXPECT_FLOAT_EQ(Floats(memory["value"])[0], 3);
}

TEST_F(ConsoleCallsTest, PosnersExperimentLeavesNoStore) {
  const Json result =
      Result("posner", {{"memories", 4}, {"dim", 8}, {"trials", 10}, {"temperatures", {0.1, 1}}});
  ASSERT_EQ(result["points"].size(), 2u);
  EXPECT_EQ(result["chance"], 0.25);
  EXPECT_EQ(Result("stores", Json::object())["stores"].size(), 1u);
  EXPECT_THAT(Error("posner", {{"memories", 1000}, {"temperatures", {1}}}),
              HasSubstr("memories must be"));
  EXPECT_THAT(Error("posner", Json::object()), HasSubstr("temperatures must be"));
}

TEST_F(ConsoleCallsTest, TheServersLifeIsToldOrWhyNot) {
  EXPECT_EQ(Result("health", Json::object())["status"], "serving");
  EXPECT_THAT(Result("metrics", Json::object())["text"].get<std::string>(),
              HasSubstr("\nsoftlookup_stores 1\n"));
  EXPECT_THAT(Error("backups", Json::object()), HasSubstr("--backup-dir"));
  const Api without({.client = &client_, .metrics = "127.0.0.1:1", .stopping = &stopping_});
  EXPECT_THAT(without.Call("metrics", Json::object())["error"]["message"].get<std::string>(),
              HasSubstr("softlookup console --metrics"));
}

}  // namespace
}  // namespace softlookup::console
