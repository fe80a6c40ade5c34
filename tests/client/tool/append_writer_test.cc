// `append` and `import` with --writer: commands that are given again after a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/client/tool/server_tool_test.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Arguments = std::vector<std::string>;

class AppendWriterTest : public ServerToolTest {
 protected:
  AppendWriterTest() {
    EXPECT_EQ(Run({"store", "create", "s", "--key-dim", "1", "--value-dim", "1"}).error, "");
  }

  // Row i is (i, 10 i).
  static std::string Rows(int count) {
    std::string csv;
    for (int row = 0; row < count; ++row) {
      csv += std::to_string(row) + "," + std::to_string(10 * row) + "\n";
    }
    return csv;
  }
  // Appends the first `count` rows of the input, whatever of them is there already.
  Outcome Append(int count, const Arguments& more = {}) {
    const TemporaryFile rows("rows.csv", Rows(count));
    Arguments arguments = {"append", "s", "--rows", rows.path(), "--writer", "w"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
  // The values of a store's rows, in order.
  std::vector<float> Values(const std::string& store) {
    std::vector<float> values;
    const auto answer = RunJson({"rows", store});
    for (const auto& row : answer["rows"]) {
      values.push_back(row["value"][0].get<float>());
    }
    return values;
  }
  static std::vector<float> ValuesOf(int count) {
    std::vector<float> values;
    for (int row = 0; row < count; ++row) values.push_back(10 * static_cast<float>(row));
    return values;
  }
};

TEST_F(AppendWriterTest, RowsThatTheWriterHasSentAreSkipped) {
  EXPECT_THAT(Append(5).out, StartsWith("appended 5 rows in"));
  const Outcome again = Append(5);
  EXPECT_THAT(again.out, StartsWith("skipped 5 rows, which w had sent before\nappended 0 rows in"));
  EXPECT_EQ(again.notes,
            "softlookup: all 5 rows had been sent before as w: if this is another input, give it "
            "another --writer\n");
  const Outcome longer = Append(8);
  EXPECT_THAT(longer.out, HasSubstr("appended 3 rows in"));
  EXPECT_EQ(longer.notes, "");
  EXPECT_EQ(Values("s"), ValuesOf(8));

  const TemporaryFile rows("rows.csv", Rows(9));
  const auto json = RunJson({"append", "s", "--rows", rows.path(), "--writer", "w"});
  EXPECT_EQ(json["skipped_rows"], 8);
  EXPECT_EQ(json["reconnections"], 0);
  EXPECT_EQ(json["rows"], 1);
  EXPECT_EQ(json["row_count"], 9);
}

TEST_F(AppendWriterTest, RequestsOfAnotherSizeGoOnWhereTheRowsEnded) {
  EXPECT_EQ(Append(3, {"--batch-rows", "2"}).error, "");
  EXPECT_EQ(Append(7, {"--batch-rows", "4"}).error, "");
  EXPECT_EQ(Append(12, {"--batch-rows", "5"}).error, "");
  EXPECT_EQ(Values("s"), ValuesOf(12));
}

TEST_F(AppendWriterTest, IdsAndLabelsStayWithTheirRows) {
  const TemporaryFile first_ids("ids.txt", "100\n101\n102\n");
  const TemporaryFile ids("ids.txt", "100\n101\n102\n103\n-\n105\n");
  const TemporaryFile first_labels("labels.txt", "a\nb\nc\n");
  const TemporaryFile labels("labels.txt", "a\nb\nc\nd\ne\nf\n");
  EXPECT_EQ(Append(3, {"--ids", first_ids.path(), "--labels", first_labels.path()}).error, "");
  EXPECT_EQ(Append(6, {"--ids", ids.path(), "--labels", labels.path()}).error, "");
  const nlohmann::json rows = RunJson({"rows", "s"})["rows"];
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(Values("s"), ValuesOf(6));
  for (const int row : {0, 1, 2, 3, 5}) EXPECT_EQ(rows[row]["id"], 100 + row);
  for (int row = 0; row < 6; ++row) {
    EXPECT_EQ(rows[row]["labels"][0], std::string(1, static_cast<char>('a' + row)));
  }
}

// Nothing tells how many rows a CSV file has before its end.
TEST_F(AppendWriterTest, RowsThatMayHaveTheLabelsOfOthersAreTakenBack) {
  const TemporaryFile header("labels.txt", "label\na\nb\nc\nd\ne\n");
  const TemporaryFile labels("labels.txt", "a\nb\nc\nd\ne\n");
  const TemporaryFile three("ids.txt", "7\n8\n9\n");
  const std::string rest =
      " takes them back, with all rows behind them; correct the file; then append all its rows "
      "again";
  EXPECT_EQ(Append(5, {"--labels", header.path()}).error,
            header.path() +
                ": line 6: goes on after the last of 5 rows; its first line, \"label\", looks like "
                "a header, which must go; rows appended before: 5; rows already sent may have the "
                "labels of others; `softlookup delete-rows s --begin 0`" +
                rest + ", with another --writer name");
  EXPECT_THAT(Append(5, {"--labels", header.path()}).error,
              EndsWith("; `softlookup delete-rows s --begin N` takes them back, with all rows "
                       "behind them (N: the position of the input's first row); correct the file; "
                       "then append all its rows again, with another --writer name"));
  EXPECT_EQ(Run({"delete-rows", "s", "--begin", "0"}).error, "");
  const TemporaryFile rows("rows.csv", Rows(5));
  const Arguments append = {"append", "s", "--rows", rows.path(), "--batch-rows"};
  const auto error = [&](const Arguments& more) {
    Arguments arguments = append;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments).error;
  };
  EXPECT_THAT(error({"2", "--ids", three.path()}),
              EndsWith(": ends after 3 rows, the rows themselves go on; rows appended before: 2; "
                       "rows already sent may have the ids of others; `softlookup delete-rows s "
                       "--begin 5`" +
                       rest));
  EXPECT_EQ(Run({"delete-rows", "s", "--begin", "5"}).error, "");
  EXPECT_EQ(error({"2", "--labels", labels.path(), "--writer", "v"}), "");
  EXPECT_EQ(Values("s"), ValuesOf(5));
  EXPECT_EQ(RunJson({"rows", "s"})["rows"][0]["labels"][0], "a");
  // If no row was taken, none is wrong.
  EXPECT_THAT(error({"5", "--ids", three.path()}), EndsWith("rows appended before: 0"));
}

TEST_F(AppendWriterTest, EveryWriterHasAnInputOfItsOwn) {
  EXPECT_EQ(Append(5).error, "");
  const Outcome shorter = Append(3);
  EXPECT_EQ(shorter.exit_code, ExitCode::kUsage);
  EXPECT_EQ(
      shorter.error,
      "the writer w has sent 5 rows before, but the input has 3; it takes a writer of its own;"
      " rows appended before: 0");
  const TemporaryFile rows("rows.csv", Rows(3));
  EXPECT_EQ(Run({"append", "s", "--rows", rows.path(), "--writer", "v"}).error, "");
  EXPECT_EQ(Values("s").size(), 8u);
}

TEST_F(AppendWriterTest, AnotherInputIsRefusedBeforeItsFirstRow) {
  EXPECT_EQ(Append(3).error, "");
  const std::string rows_before = "0,0\n1,10\n";
  for (const char* others : {"2,21\n3,30\n", "3,20\n", "20,2\n3,30\n4,40\n"}) {
    const TemporaryFile other("rows.csv", rows_before + others);
    for (const char* batch_rows : {"1", "2", "3", "4"}) {
      const Outcome outcome =
          Run({"append", "s", "--rows", other.path(), "--writer", "w", "--batch-rows", batch_rows});
      EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
      EXPECT_EQ(outcome.error,
                "the writer w has sent 3 rows before, but not of this input: its row 2 (from 0) is "
                "not the last row that w appended, at position 2 of s; give this input a writer of "
                "its own, or to append all but its first 3 rows, --skip-rows 3 in place of "
                "--writer; rows appended before: 0");
    }
  }
  EXPECT_EQ(Values("s"), ValuesOf(3));
  const TemporaryFile other("rows.csv", rows_before + "7,70\n3,30\n");
  EXPECT_EQ(Run({"append", "s", "--rows", other.path(), "--skip-rows", "3"}).error, "");
  EXPECT_EQ(Values("s"), ValuesOf(4));
}

TEST_F(AppendWriterTest, RowsOfOthersBetweenDoNotMatter) {
  EXPECT_EQ(Append(3).error, "");
  const TemporaryFile rows("rows.csv", "8,80\n");
  EXPECT_EQ(Run({"append", "s", "--rows", rows.path()}).error, "");
  EXPECT_EQ(Append(5).error, "");
  EXPECT_EQ(Append(6).error, "");
  EXPECT_EQ(Values("s"), std::vector<float>({0, 10, 20, 80, 30, 40, 50}));
}

// The last row that the writer appended is then an earlier one of the input.
TEST_F(AppendWriterTest, RowsThatWereLeftOutForTheirIdsAreOfTheInput) {
  const TemporaryFile first_ids("ids.txt", "1\n2\n3\n1\n2\n");
  const TemporaryFile ids("ids.txt", "1\n2\n3\n1\n2\n6\n");
  EXPECT_EQ(
      Append(5, {"--ids", first_ids.path(), "--on-conflict", "skip", "--batch-rows", "2"}).error,
      "");
  const TemporaryFile other("rows.csv", "0,1\n1,11\n2,21\n3,31\n4,41\n5,51\n");
  EXPECT_THAT(Run({"append", "s", "--rows", other.path(), "--writer", "w", "--ids", ids.path(),
                   "--batch-rows", "2"})
                  .error,
              HasSubstr("none of its first 5 rows is the last row that w appended, at position 2"));
  EXPECT_EQ(Append(6, {"--ids", ids.path(), "--batch-rows", "2"}).error, "");
  EXPECT_EQ(Values("s"), std::vector<float>({0, 10, 20, 50}));
}

TEST_F(AppendWriterTest, AnInputIsTakenAsItIsIfTheLastRowCannotBeCompared) {
  const TemporaryFile other("rows.csv", "5,5\n6,6\n7,7\n3,30\n");
  EXPECT_EQ(Append(3).error, "");
  EXPECT_EQ(Run({"delete-rows", "s", "--begin", "2"}).error, "");
  EXPECT_EQ(Run({"append", "s", "--rows", other.path(), "--writer", "w"}).error, "");
  EXPECT_EQ(Values("s"), std::vector<float>({0, 10, 30}));

  // What the store keeps is not what was sent.
  EXPECT_EQ(
      Run({"store", "create", "t", "--key-dim", "1", "--value-dim", "1", "--storage", "bfloat16"})
          .error,
      "");
  const TemporaryFile first("rows.csv", "1,1\n1.001,2.001\n");
  const TemporaryFile more("rows.csv", "1,1\n1.001,2.001\n1,3\n");
  for (const TemporaryFile* file : {&first, &more}) {
    EXPECT_EQ(Run({"append", "t", "--rows", file->path(), "--writer", "w"}).error, "");
  }
  EXPECT_EQ(Values("t"), std::vector<float>({1, 2, 3}));
}

TEST_F(AppendWriterTest, RowsBehindAFaultComeWithTheNextRun) {
  const TemporaryFile bad("rows.csv", Rows(4) + "4,x\n");
  EXPECT_THAT(
      Run({"append", "s", "--rows", bad.path(), "--writer", "w", "--batch-rows", "1"}).error,
      HasSubstr("rows appended before: 4; correct the file; then the same command appends"));
  EXPECT_EQ(Append(6, {"--batch-rows", "1"}).error, "");
  EXPECT_EQ(Values("s"), ValuesOf(6));
}

TEST_F(AppendWriterTest, ServersErrorIsGivenTheRowOfTheWholeInput) {
  EXPECT_EQ(Append(3, {"--batch-rows", "2"}).error, "");
  const TemporaryFile labels("labels.txt", "\n\n\n\n" + std::string(65, 'x') + "\n");
  EXPECT_THAT(Append(5, {"--batch-rows", "2", "--labels", labels.path()}).error,
              HasSubstr("; that is row 4 (from 0) of the input"));
}

TEST_F(AppendWriterTest, ImportThatFailedIsTakenUpByTheSameCommand) {
  const NpyFile keys(1, {0, 1, 2, 3, 4});
  const TemporaryFile bad("values.csv", "0\n10\n20\nx\n40\n");
  const TemporaryFile good("values.csv", "0\n10\n20\n30\n40\n");
  const auto import = [&](const TemporaryFile& values, const Arguments& more) {
    Arguments arguments = {"import",      "t",       "--keys", keys.path(),    "--values",
                           values.path(), "--score", "dot",    "--batch-rows", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  };
  EXPECT_THAT(import(bad, {"--writer", "w"}).error, HasSubstr("rows appended before: 2"));
  EXPECT_EQ(Values("t"), ValuesOf(2));
  EXPECT_THAT(import(good, {}).error, HasSubstr("--append adds to them"));
  EXPECT_THAT(import(good, {"--writer", "v"}).error, HasSubstr("--append adds to them"));
  EXPECT_THAT(import(good, {"--writer", "w"}).out, HasSubstr("skipped 2 rows, which w had sent"));
  EXPECT_EQ(Values("t"), ValuesOf(5));
}

TEST_F(AppendWriterTest, ImportRefusesSettingsThatTheStoreDoesNotHave) {
  const NpyFile keys(1, {0, 1});
  const TemporaryFile values("values.csv", "0\n10\n"), ones("ones.csv", "1\n"),
      twos("twos.csv", "2\n");
  const auto import = [&](const Arguments& settings) {
    Arguments arguments = {"import",   "t",           "--keys",   keys.path(),
                           "--values", values.path(), "--writer", "w"};
    arguments.insert(arguments.end(), settings.begin(), settings.end());
    return Run(arguments).error;
  };
  const Arguments defaults = {"--score",   "scaled-dot", "--temperature", "1",
                              "--storage", "float32",    "--heads",       "1"};
  const Arguments others = {"--label",
                            "a=1",
                            "--memory",
                            "m=decayed-sum:0.5",
                            "--projection-query",
                            ones.path(),
                            "--projection-key",
                            ones.path(),
                            "--projection-value",
                            ones.path()};
  Arguments all = defaults;
  all.insert(all.end(), others.begin(), others.end());
  EXPECT_EQ(import(all), "");
  EXPECT_EQ(import(all), "");
  EXPECT_EQ(import({}), "");
  const std::pair<Arguments, const char*> cases[] = {
      {{"--score", "dot"}, "--score"},
      {{"--temperature", "2"}, "--temperature"},
      {{"--label", "a=2"}, "--label"},
      {{"--label", "b=1"}, "--label"},
      {{"--projection-query", ones.path(), "--projection-key", ones.path(), "--projection-value",
        twos.path()},
       "--projection-*"},
      {{"--storage", "int8"}, "--storage"},
      {{"--memory", "m=decayed-sum:0.25"}, "--memory"}};
  for (const auto& [settings, flag] : cases) {
    EXPECT_THAT(import(settings), HasSubstr(std::string("t exists with another ") + flag));
  }
}

}  // namespace
}  // namespace softlookup::tool
