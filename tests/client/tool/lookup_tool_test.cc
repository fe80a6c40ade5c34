// What the tool prints of lookups, by the tool against the real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/client/tool/server_tool_test.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

// Code points of the longest line.
std::size_t WidthOf(const std::string& text) {
  std::size_t widest = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    widest = std::max<std::size_t>(
        widest, std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  }
  return widest;
}

// A store whose rows fill more than a line: long ids, labels, keys and values.
class WideRowsTest : public ServerToolTest {
 protected:
  WideRowsTest() {
    const NpyFile keys(6, std::vector<float>(2 * 6, 1.0f / 3));
    const NpyFile values(4, std::vector<float>(2 * 4, -2.0f / 3));
    const TemporaryFile ids("ids.txt", "18446744073709551615\n-\n");
    const TemporaryFile labels("labels.txt", "one,two\nthree\n");
    EXPECT_EQ(Run({"import", "s", "--keys", keys.path(), "--values", values.path(), "--ids",
                   ids.path(), "--labels", labels.path()})
                  .error,
              "");
  }
};

TEST_F(WideRowsTest, RowsHideWideColumnsUnlessTheyAreNamed) {
  const std::string key = "[0.333333 0.333333 0.333333 0.333333 0.333333 0.333333]";
  const std::string value = "[-0.666667 -0.666667 -0.666667 -0.666667]";
  const Outcome narrow = Run({"rows", "s"}, 80);
  EXPECT_EQ(narrow.out,
            "position                    id  labels\n"
            "       0  18446744073709551615  one,two\n"
            "       1                        three\n"
            "2 rows of s at revision 3\n");
  EXPECT_EQ(narrow.notes, "(2 columns more: -w)\n");
  const Outcome wider = Run({"rows", "s"}, 120);
  EXPECT_LE(WidthOf(wider.out), 120u);
  EXPECT_THAT(wider.out, HasSubstr("one,two  " + value + "\n"));
  EXPECT_EQ(wider.notes, "(1 column more: -w)\n");
  for (const Outcome& all :
       {Run({"rows", "s", "-w"}, 80), Run({"rows", "s"}, 200), Run({"rows", "s"})}) {
    EXPECT_THAT(all.out, HasSubstr("one,two  " + key + "  " + value + "\n"));
    EXPECT_EQ(all.notes, "");
  }
  const Outcome named = Run({"rows", "s", "--fields", "id,labels,key,value"}, 80);
  EXPECT_THAT(named.out, HasSubstr(key + "  " + value + "\n"));
  EXPECT_EQ(named.notes, "");
}

TEST_F(WideRowsTest, ListsOfLookupsHideColumnsAndSayItOnce) {
  const TemporaryFile queries("q.csv", "1,1,1,1,1,1\n2,2,2,2,2,2\n");
  const TemporaryFile names("names.txt", "a name of some length\nanother\n");
  const std::vector<std::string> lookup = {"lookup",  "s",          "--queries", queries.path(),
                                           "--names", names.path(), "--score",   "dot"};
  const auto table_of = [](const Outcome& outcome) {
    std::string table;
    for (const absl::string_view line : absl::StrSplit(outcome.out, '\n')) {
      if (absl::StartsWith(line, "   ") || absl::StartsWith(line, "  position")) {
        absl::StrAppend(&table, line, "\n");
      }
    }
    return table;
  };
  const Outcome narrow = Run(lookup, 80);
  EXPECT_EQ(WidthOf(table_of(narrow)), 70u);
  EXPECT_THAT(
      table_of(narrow),
      StartsWith("  position                    id  name                   score  weight\n"
                 "         0  18446744073709551615  a name of some length      2  0.5000\n"));
  EXPECT_EQ(narrow.notes, "(1 column more: -w)\n");
  EXPECT_EQ(Run(lookup, 50).notes, "(3 columns more: -w)\n");
  const Outcome wider = Run(lookup, 120);
  EXPECT_LE(WidthOf(table_of(wider)), 120u);
  EXPECT_THAT(wider.out, HasSubstr("0.5000  ###############\n"));
  EXPECT_EQ(wider.notes, "");
}

}  // namespace
}  // namespace softlookup::tool
