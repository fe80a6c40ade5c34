// Running memories of every kind, by the tool against the real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/tool/server_tool_test.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class MemoryToolTest : public ServerToolTest {
 protected:
  // Makes the store `s`, whose keys have two components and whose values have one.
  Outcome Create(const std::vector<std::string>& memories) {
    std::vector<std::string> arguments = {"store", "create",      "s", "--key-dim",
                                          "2",     "--value-dim", "1"};
    for (const std::string& memory : memories) {
      arguments.insert(arguments.end(), {"--memory", memory});
    }
    return Run(arguments);
  }
};

TEST_F(MemoryToolTest, EveryKindIsDeclaredShownAndRead) {
  const NpyFile gate(3, {0.5, -1, 2});
  const TemporaryFile text("gate.csv", "0.5, -1, 2\n");
  const Outcome created =
      Create({"mean=average", "sum=decayed-sum:0.5", "fast=decayed-average:0.5",
              "gate=gated:" + gate.path(), "late=gated-average:" + text.path()});
  ASSERT_EQ(created.error, "");
  EXPECT_THAT(created.out, EndsWith("memory       mean=average\n"
                                    "memory       sum=decayed-sum:0.5\n"
                                    "memory       fast=decayed-average:0.5\n"
                                    "memory       gate=gated:[0.5 -1 2]\n"
                                    "memory       late=gated-average:[0.5 -1 2]\n"));
  const auto memories = RunJson({"store", "get", "s"})["memories"];
  EXPECT_EQ(memories[1]["decay"], 0.5);
  EXPECT_FALSE(memories[1].contains("gate"));
  EXPECT_EQ(memories[4]["gate"], (std::vector<double>{0.5, -1, 2}));
  EXPECT_FALSE(memories[4].contains("decay"));

  const TemporaryFile rows("rows.csv", "1,0,10\n0,0.5,20\n");
  ASSERT_EQ(Run({"append", "s", "--rows", rows.path()}).error, "");
  // The second row's key is (0, 0.5).
  const double keep = 1 / (1 + std::exp(-(0.5 - 1 * 0 + 2 * 0.5)));
  const double weight = keep + 1;
  const auto memory = RunJson({"memory", "s", "gate"});
  EXPECT_NEAR(memory["weight"], weight, 1e-12);
  EXPECT_NEAR(memory["value"][0], 10 * keep + 20, 1e-12);
  EXPECT_NEAR(memory["key"][0], keep, 1e-12);
  const auto average = RunJson({"memory", "s", "late"});
  EXPECT_NEAR(average["value"][0], (10 * keep + 20) / weight, 1e-12);
  EXPECT_EQ(RunJson({"memory", "s", "sum"})["value"][0], 25);
  EXPECT_EQ(Run({"lookup", "s", "--query", "1,1", "--source", "memory", "--memory", "late"}).error,
            "");
}

TEST_F(MemoryToolTest, AMalformedMemoryIsAUsageErrorThatSaysWhatIsMissing) {
  const std::string kinds =
      "not one of average, decayed-sum, decayed-average, gated, gated-average";
  for (const auto& [memory, error] : std::vector<std::pair<std::string, std::string>>{
           {"slow", "--memory takes NAME=KIND, NAME=KIND:DECAY or NAME=KIND:FILE, not \"slow\""},
           {"=average",
            "--memory takes NAME=KIND, NAME=KIND:DECAY or NAME=KIND:FILE, not \"=average\""},
           {"a=decyed-sum:0.5", "--memory a=decyed-sum:0.5: unknown kind \"decyed-sum\", " + kinds +
                                    "; did you mean decayed-sum?"},
           {"a=other", "--memory a=other: unknown kind \"other\", " + kinds},
           {"a=", "--memory a=: unknown kind \"\", " + kinds},
           {"a=average:1", "--memory a=average:1: average has neither a decay nor a gate"},
           {"a=decayed-sum",
            "--memory a=decayed-sum: decayed-sum needs a decay between 0 and 1, such as "
            "a=decayed-sum:0.9"},
           {"a=decayed-average:0.5:1",
            "--memory a=decayed-average:0.5:1: decayed-average needs a decay between 0 and 1, such "
            "as a=decayed-average:0.9"},
           {"a=gated:",
            "--memory a=gated:: gated needs a file of key_dim + 1 numbers, the bias first, such as "
            "a=gated:gate.csv"}}) {
    const Outcome outcome = Create({memory});
    EXPECT_EQ(outcome.exit_code, ExitCode::kUsage) << memory;
    EXPECT_EQ(outcome.error, error);
  }
  EXPECT_EQ(RunJson({"store", "list"})["stores"].size(), 0u);
}

TEST_F(MemoryToolTest, AGateThatDoesNotFitNamesItsMemoryAndFile) {
  const TemporaryFile short_row("gate.csv", "1,2\n");
  const TemporaryFile column("gate.csv", "1\n2\n3\n");
  const TemporaryFile bad("gate.csv", "1,2,x\n");
  const NpyFile two_rows(3, {1, 2, 3, 4, 5, 6});
  const TemporaryFile two_lines("gate.csv", "1,2,3\n4,5,6\n");
  // Its third line is bad, but a gate is refused at its second row.
  const TemporaryFile long_text("gate.csv", "1,2,3\n4,5,6\nx\n");
  const TemporaryFile empty("gate.csv");
  const std::string one_row =
      ", but a gate is one row: the bias, then a weight for each component of a key";
  for (const auto& [path, error] : std::vector<std::pair<std::string, std::string>>{
           {short_row.path(), ": line 1: 2 columns, but key_dim + 1 is 3"},
           {column.path(), ": line 1: 1 column, but key_dim + 1 is 3"},
           {bad.path(), ": line 1, column 3: \"x\" is not a number"},
           {two_rows.path(), ": has 2 rows" + one_row},
           {two_lines.path(), ": has more than 1 row" + one_row},
           {long_text.path(), ": has more than 1 row" + one_row},
           {empty.path(), ": has 0 rows" + one_row},
           {"missing.csv", ": No such file or directory"},
           {"0.5", ": unknown kind of file: it must end in .csv, .npy or .fvecs"}}) {
    const Outcome outcome = Create({"slow=gated:" + path});
    EXPECT_EQ(outcome.exit_code, ExitCode::kInput) << path;
    EXPECT_EQ(outcome.error, "--memory slow: " + path + error);
  }
  EXPECT_THAT(Create({"slow=decayed-sum:1.5"}).error, HasSubstr("store.memories[0].decay"));
}

TEST_F(MemoryToolTest, AnImportGoesOnOnlyWithTheSameGate) {
  const NpyFile keys(2, {1, 2, 3, 4});
  const NpyFile values(1, {5, 6});
  const NpyFile gate(3, {1, 2, 3});
  const NpyFile other(3, {1, 2, 4});
  const auto import = [&](const NpyFile& file) {
    return Run({"import", "s", "--keys", keys.path(), "--values", values.path(), "--memory",
                "slow=gated:" + file.path(), "--writer", "w"});
  };
  EXPECT_EQ(import(gate).error, "");
  EXPECT_EQ(import(gate).error, "");
  EXPECT_THAT(import(other).error, HasSubstr("s exists with another --memory"));
  EXPECT_EQ(RunJson({"memory", "s", "slow"})["end"], 2);
}

}  // namespace
}  // namespace softlookup::tool
