// What the tool prints of lookups, by the tool against the real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/client/tool/server_tool_test.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::HasSubstr;

class LookupToolTest : public ServerToolTest {
 protected:
  LookupToolTest() {
    EXPECT_EQ(
        Run({"store", "create", "s", "--key-dim", "1", "--value-dim", "1", "--score", "dot"}).error,
        "");
  }

  void Append(const std::string& rows, const std::string& ids = "") {
    const TemporaryFile file("rows.csv", rows);
    const TemporaryFile id_file("ids.txt", ids);
    std::vector<std::string> arguments = {"append", "s", "--rows", file.path()};
    if (!ids.empty()) arguments.insert(arguments.end(), {"--ids", id_file.path()});
    EXPECT_EQ(Run(arguments).error, "");
  }
};

TEST_F(LookupToolTest, ARowWithoutAnIdIsNotShownWithTheIdZero) {
  Append("3,1\n2,1\n1,1\n", "0\n-\n7\n");
  EXPECT_THAT(Run({"lookup", "s", "--query", "1"}).out,
              HasSubstr("  position  id  score  weight\n"
                        "         0   0      3  0.6652  ####################\n"
                        "         1          2  0.2447  #######\n"
                        "         2   7      1  0.0900  ###\n"));
  const auto weights =
      RunJson({"lookup", "s", "--query", "1"})["answers"][0]["heads"][0]["weights"];
  EXPECT_EQ(weights[0]["id"], 0);
  EXPECT_FALSE(weights[1].contains("id"));
  EXPECT_EQ(weights[2]["id"], 7);
}

TEST_F(LookupToolTest, IdsAreShownOnlyWhereAListedRowHasOne) {
  Append("1,1\n2,1\n", "5\n-\n");
  EXPECT_THAT(Run({"lookup", "s", "--query", "1", "--end", "1"}).out,
              HasSubstr("  position  id  score  weight\n         0   5      1  1.0000"));
  EXPECT_THAT(Run({"lookup", "s", "--query", "1", "--begin", "1"}).out,
              HasSubstr("  position  score  weight\n         1      2  1.0000"));
}

TEST_F(LookupToolTest, WhatAModeDoesNotDefineIsSaidAndNull) {
  Append("3,1\n2,5\n");
  EXPECT_THAT(
      Run({"lookup", "s", "--query", "1"}).out,
      HasSubstr("\n  2 rows counted, 2 summed, entropy 0.5822 nats, log-sum-exp 3.31326, "));
  EXPECT_THAT(Run({"lookup", "s", "--query", "1", "--end", "1"}).out,
              HasSubstr("\n  1 row counted, 1 summed, entropy 0 nats, log-sum-exp 3, "));
  for (const char* mode : {"hard", "linear"}) {
    const std::vector<std::string> lookup = {"lookup", "s", "--query", "1", "--mode", mode};
    EXPECT_THAT(
        Run(lookup).out,
        HasSubstr(" summed, entropy and log-sum-exp not defined for this mode, error bound "));
    const auto head = RunJson(lookup)["answers"][0]["heads"][0];
    EXPECT_TRUE(head["entropy"].is_null());
    EXPECT_TRUE(head["log_sum_exp"].is_null());
    EXPECT_EQ(head["max_logit"], 3);
  }
  const auto head = RunJson({"lookup", "s", "--query", "1"})["answers"][0]["heads"][0];
  EXPECT_NEAR(head["entropy"], 0.5822, 1e-4);
}

TEST_F(LookupToolTest, AnAnswerOverNoRowSaysSo) {
  Append("3,1\n");
  for (const char* mode : {"soft", "hard", "linear"}) {
    const std::vector<std::string> lookup = {"lookup", "s",  "--query", "1",
                                             "--mode", mode, "--begin", "1"};
    EXPECT_THAT(Run(lookup).out, HasSubstr("query 0\n  no row counts, so the answer is 0\n"
                                           "  answer [0]\n"));
    const auto head = RunJson(lookup)["answers"][0]["heads"][0];
    EXPECT_EQ(head["empty"], true);
    EXPECT_TRUE(head["entropy"].is_null());
    EXPECT_TRUE(head["log_sum_exp"].is_null());
    EXPECT_TRUE(head["max_logit"].is_null());
  }
}

TEST_F(LookupToolTest, ASmallWeightIsNotShownAsZero) {
  Append("0,1\n-12,1\n");
  EXPECT_THAT(Run({"lookup", "s", "--query", "1"}).out, HasSubstr("    -12  6.1e-06\n"));
  const std::string recall =
      Run({"recall", "apple", "--temperature", "0.05", "--temperatures", "0.05"}).out;
  EXPECT_THAT(recall, HasSubstr("\n         0.05  1.0000  1.2e-08  "));
}

}  // namespace
}  // namespace softlookup::tool
