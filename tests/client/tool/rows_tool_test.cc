// The tool's commands about rows and memories, against a scripted server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "client/tool/row_reader.h"
#include "tests/client/tool/scripted_tool_test.h"
#include "tests/client/tool/temporary_file.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RowsToolTest : public ScriptedToolTest {
 protected:
  RowsToolTest() {
    store_.set_key_dim(2);
    store_.set_value_dim(1);
    canned_.Serve(&service_);
  }

  // Three rows on two pages; row p has the key [p, 0.1] and the value [-p]. The last has an id and
  // labels.
  void FillPages() {
    for (std::uint64_t position = 0; position < 3; ++position) {
      if (position != 1) canned_.pages.emplace_back().set_revision(7);
      v1::Row* row = canned_.pages.back().add_rows();
      const auto number = static_cast<float>(position);
      const std::vector<float> key = {number, 0.1f};
      const std::vector<float> value = {-number};
      row->set_position(position);
      EXPECT_TRUE(FloatMatrixView(key, 1, 2).ToProto(row->mutable_key()).ok());
      EXPECT_TRUE(FloatMatrixView(value, 1, 1).ToProto(row->mutable_value()).ok());
    }
    v1::Row* last = canned_.pages.back().mutable_rows(0);
    last->set_id(42);
    last->add_labels("red");
    last->add_labels("big");
  }
};

TEST_F(RowsToolTest, FilterFlagsMakeTheWholeFilter) {
  EXPECT_EQ(Run({"rows", "people", "--begin", "1", "--end", "9", "--last", "4", "--label", "a,b",
                 "--no-label", "c", "--id", "1,2", "--exclude-id", "3"})
                .error,
            "");
  const v1::RowFilter& filter = canned_.read_rows.filter();
  EXPECT_EQ(filter.begin(), 1u);
  EXPECT_EQ(filter.end(), 9u);
  EXPECT_EQ(filter.last(), 4u);
  EXPECT_THAT(filter.any_labels(), ElementsAre("a", "b"));
  EXPECT_THAT(filter.no_labels(), ElementsAre("c"));
  EXPECT_THAT(filter.ids(), ElementsAre(1, 2));
  EXPECT_THAT(filter.exclude_ids(), ElementsAre(3));
}

TEST_F(RowsToolTest, LabelsOfTheCommandLineAreQuotedAsInFiles) {
  EXPECT_EQ(
      Run({"rows", "people", "--label", "\"c,d\", a b ,e", "--label", "f", "--no-label", "\" g\""})
          .error,
      "");
  EXPECT_THAT(canned_.read_rows.filter().any_labels(), ElementsAre("c,d", "a b", "e", "f"));
  EXPECT_THAT(canned_.read_rows.filter().no_labels(), ElementsAre(" g"));
  const std::size_t calls = canned_.calls;
  for (const char* text : {"", " ", "\"\"", "a,,b", "\"a", "\"a\"b", "\xff"}) {
    EXPECT_EQ(Run({"delete-rows", "people", "--begin", "0", "--label", text}).exit_code,
              ExitCode::kUsage)
        << text;
  }
  EXPECT_THAT(Run({"rows", "people", "--label", "\"a"}).error,
              HasSubstr("--label: \"a: a label that starts with a quote must be a JSON string"));
  EXPECT_EQ(canned_.calls, calls);
}

TEST_F(RowsToolTest, ALabelThatNoRowHasIsSaid) {
  EXPECT_EQ(Run({"rows", "people", "--label", "a"}).notes,
            "softlookup: no row of people has the label \"a\"\n");
  EXPECT_EQ(Run({"delete-rows", "people", "--label", "a,b\u202E"}).notes,
            "softlookup: no row of people has one of the labels \"a\", \"b\\xe2\\x80\\xae\"\n");
  EXPECT_EQ(Run({"rows", "people", "--label", "a", "--id", "3"}).notes,
            "softlookup: no row of people that the other options choose has the label \"a\"\n");
  EXPECT_EQ(Run({"rows", "people", "--begin", "3"}).notes, "");
  const TemporaryFile keys("k.npy");
  const TemporaryFile values("v.npy");
  EXPECT_EQ(
      Run({"export", "people", "--keys", keys.path(), "--values", values.path(), "--label", "a"})
          .notes,
      "softlookup: no row of people has the label \"a\"\n");
  FillPages();
  EXPECT_EQ(Run({"rows", "people", "--label", "red"}).notes, "");
}

TEST_F(RowsToolTest, AnIdThatNoRowHasIsSaid) {
  EXPECT_EQ(Run({"delete-rows", "people", "--id", "7"}).notes,
            "softlookup: no row of people has the id 7\n");
  EXPECT_EQ(Run({"rows", "people", "--id", "7,8", "--begin", "1"}).notes,
            "softlookup: no row of people that the other options choose has one of the ids 7, 8\n");
  canned_.deleted.set_deleted_count(1);
  EXPECT_EQ(Run({"delete-rows", "people", "--id", "7"}).notes, "");
}

TEST_F(RowsToolTest, RowsPrintsALabelAsTheCommandLineTakesIt) {
  canned_.pages.emplace_back().add_rows()->add_labels("c,d");
  canned_.pages.back().mutable_rows(0)->add_labels("e");
  EXPECT_THAT(Run({"rows", "people", "--fields", "labels"}).out, HasSubstr("\n\"c,d\",e\n"));
}

TEST_F(RowsToolTest, AFileThatCannotBeWrittenIsRefusedBeforeTheWork) {
  const TemporaryFile inputs("x.csv", "1,2\n");
  for (std::vector<std::string> arguments :
       std::vector<std::vector<std::string>>{{"lookup", "people", "--query", "1,2"},
                                             {"attend", "--self", "--inputs", inputs.path()}}) {
    arguments.insert(arguments.end(), {"--values-out", "/no/such/folder/x.npy"});
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
    EXPECT_THAT(outcome.error, HasSubstr("/no/such/folder/x.npy: "));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(canned_.calls, 0u);
}

TEST_F(RowsToolTest, RowsPrintsATable) {
  FillPages();
  EXPECT_EQ(Run({"rows", "people"}).out,
            "position  id  labels   key      value\n"
            "       0               [0 0.1]  [-0]\n"
            "       1               [1 0.1]  [-1]\n"
            "       2  42  red,big  [2 0.1]  [-2]\n"
            "3 rows of people at revision 7\n");
}

TEST_F(RowsToolTest, RowsAsksForAndShowsOnlyTheNamedFields) {
  FillPages();
  EXPECT_EQ(Run({"rows", "people", "--fields", "id,position"}).out,
            "position  id\n"
            "       0\n"
            "       1\n"
            "       2  42\n"
            "3 rows of people at revision 7\n");
  EXPECT_THAT(canned_.read_rows.read_mask().paths(), ElementsAre("position", "id"));
  EXPECT_EQ(Run({"rows", "people", "--fields", "colour"}).exit_code, ExitCode::kUsage);
}

TEST_F(RowsToolTest, RowsStopsAtItsLimitAndSaysThatThereIsMore) {
  FillPages();
  const auto json = RunJson({"rows", "people", "--limit", "2"});
  EXPECT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["more"], true);
  EXPECT_EQ(json["revision"], 7);
  EXPECT_EQ(json["rows"][1]["key"], nlohmann::json({1.0, 0.1}));
  EXPECT_FALSE(json["rows"][1].contains("id"));
  EXPECT_EQ(RunJson({"rows", "people", "--limit", "3"})["more"], false);
}

TEST_F(RowsToolTest, ExportWritesEveryRowAndNothingIsLostOnTheWay) {
  FillPages();
  const TemporaryFile keys("k.npy");
  const TemporaryFile values("v.npy");
  const auto json = RunJson(
      {"export", "people", "--keys", keys.path(), "--values", values.path(), "--last", "3"});
  EXPECT_EQ(json["rows"], 3);
  EXPECT_EQ(json["revision"], 7);
  EXPECT_EQ(canned_.read_rows.filter().last(), 3u);
  EXPECT_THAT(ReadMatrix(keys.path(), "", {2, "key_dim"})->data,
              ElementsAre(0, 0.1f, 1, 0.1f, 2, 0.1f));
  EXPECT_THAT(ReadMatrix(values.path(), "", {1, "value_dim"})->data, ElementsAre(-0.0f, -1, -2));
}

TEST_F(RowsToolTest, ExportThatFailsLeavesTheFilesAsTheyWere) {
  FillPages();
  canned_.results = {{grpc::StatusCode::DATA_LOSS, "cut"}};
  const TemporaryFile keys("k.npy", "old keys");
  const TemporaryFile values("v.npy", "old values");
  EXPECT_EQ(Run({"export", "people", "--keys", keys.path(), "--values", values.path()}).exit_code,
            ExitCode::kOther);
  EXPECT_EQ(keys.bytes(), "old keys");
  EXPECT_EQ(values.bytes(), "old values");
  EXPECT_EQ(Run({"export", "people", "--keys", "a.npy", "--values", "a.npy"}).exit_code,
            ExitCode::kUsage);
}

TEST_F(RowsToolTest, DeleteRowsRefusesToDeleteWithoutAFilter) {
  const Outcome outcome = Run({"delete-rows", "people"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
  EXPECT_EQ(canned_.calls, 0u);

  canned_.deleted.set_deleted_count(2);
  canned_.deleted.set_revision(8);
  EXPECT_EQ(Run({"delete-rows", "people", "--begin", "0"}).out,
            "deleted 2 rows of people, now at revision 8\n");
  EXPECT_TRUE(canned_.delete_rows.filter().has_begin());
  EXPECT_EQ(RunJson({"delete-rows", "people", "--id", "1"})["deleted_rows"], 2);
}

TEST_F(RowsToolTest, WatchPrintsEachMemoryUntilItsCount) {
  canned_.memories.resize(3);
  for (int i = 0; i < 3; ++i) canned_.memories[i].set_end(i);
  const Outcome outcome =
      Run({"watch", "people", "slow", "--interval-ms", "5", "--count", "2", "-o", "json"});
  EXPECT_EQ(outcome.error, "");
  std::istringstream lines(outcome.out);
  std::string line;
  std::vector<int> ends;
  while (std::getline(lines, line)) ends.push_back(nlohmann::json::parse(line)["end"]);
  EXPECT_THAT(ends, ElementsAre(0, 1));
  EXPECT_EQ(canned_.watch_memory.name(), "slow");
  EXPECT_EQ(canned_.watch_memory.min_interval_ms(), 5u);
}

TEST_F(RowsToolTest, AttendSendsItsFilesAndPrintsTheAnswer) {
  canned_.attended.mutable_values()->set_rows(1);
  canned_.attended.mutable_values()->set_cols(1);
  canned_.attended.mutable_values()->add_values(2.5f);
  canned_.attended.add_stats()->set_counted_rows(2);
  const TemporaryFile queries("q.csv", "1,2,3\n");
  const TemporaryFile keys("k.csv", "1,2,3\n4,5,6\n");
  const TemporaryFile values("v.csv", "7\n8\n");
  EXPECT_EQ(Run({"attend", "--queries", queries.path(), "--keys", keys.path(), "--values",
                 values.path(), "--mode", "hard", "--max-error", "0.001", "--weights", "none"})
                .out,
            "query 0\n"
            "  2 rows counted, 0 summed, entropy 0 nats, log-sum-exp 0, error bound 0\n"
            "  answer [2.5]\n");
  EXPECT_EQ(canned_.attend.keys().rows(), 2u);
  EXPECT_EQ(canned_.attend.keys().cols(), 3u);
  EXPECT_EQ(canned_.attend.values().cols(), 1u);
  EXPECT_EQ(canned_.attend.options().mode(), v1::MODE_HARD);
  EXPECT_EQ(canned_.attend.options().max_error(), 0.001);
  EXPECT_FALSE(canned_.attend.has_inputs());

  const auto json = RunJson({"attend", "--self", "--inputs", queries.path(), "--weights", "none"});
  EXPECT_EQ(json["answers"][0]["values"][0], 2.5);
  EXPECT_TRUE(canned_.attend.self());
  EXPECT_FALSE(canned_.attend.has_queries());
  EXPECT_EQ(canned_.attend.inputs().rows(), 1u);
}

TEST_F(RowsToolTest, AttendNeedsThreeFilesOrSelf) {
  for (const std::vector<std::string>& input : std::vector<std::vector<std::string>>{
           {},
           {"--queries", "q.csv", "--keys", "k.csv"},
           {"--self"},
           {"--inputs", "x.csv"},
           {"--self", "--inputs", "x.csv", "--keys", "k.csv"},
           {"--queries", "-", "--keys", "-", "--values", "v.csv"}}) {
    std::vector<std::string> arguments = {"attend"};
    arguments.insert(arguments.end(), input.begin(), input.end());
    EXPECT_EQ(Run(arguments).exit_code, ExitCode::kUsage) << ::testing::PrintToString(input);
  }
}

TEST_F(RowsToolTest, AppendSendsIdsAndLabelsInStepWithTheRows) {
  const TemporaryFile rows("r.csv", "1,0,0\n2,0,0\n3,0,0\n");
  const TemporaryFile ids("ids.txt", "7\n8\n18446744073709551615\n");
  const TemporaryFile labels("labels.txt", "red, big\n\nblue\n");
  EXPECT_EQ(Run({"append", "people", "--rows", rows.path(), "--ids", ids.path(), "--labels",
                 labels.path(), "--on-conflict", "replace", "--batch-rows", "2"})
                .error,
            "");
  ASSERT_EQ(canned_.appends.size(), 2u);
  EXPECT_THAT(canned_.appends[0].ids(), ElementsAre(7, 8));
  EXPECT_THAT(canned_.appends[1].ids(), ElementsAre(18446744073709551615u));
  EXPECT_THAT(canned_.appends[0].row_labels(0).labels(), ElementsAre("red", "big"));
  EXPECT_EQ(canned_.appends[0].row_labels(1).labels_size(), 0);
  EXPECT_THAT(canned_.appends[1].row_labels(0).labels(), ElementsAre("blue"));
  EXPECT_EQ(canned_.appends[1].on_conflict(), v1::ON_CONFLICT_REPLACE);
}

TEST_F(RowsToolTest, AppendRefusesIdsAndLabelsThatDoNotFitTheRows) {
  const TemporaryFile rows("r.csv", "1,0,0\n2,0,0\n");
  const TemporaryFile one("one.txt", "7\n");
  const TemporaryFile three("three.txt", "7\n8\n9\n");
  const TemporaryFile words("words.txt", "7\n-8\n");
  const auto error = [&](const char* flag, const TemporaryFile& file) {
    const Outcome outcome = Run({"append", "people", "--rows", rows.path(), flag, file.path()});
    EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
    return outcome.error;
  };
  EXPECT_THAT(error("--ids", one), HasSubstr("ends after 1 row,"));
  EXPECT_THAT(error("--labels", one), HasSubstr("ends after 1 row,"));
  EXPECT_THAT(error("--ids", three), HasSubstr("line 3: goes on after the last of 2 rows"));
  EXPECT_THAT(error("--ids", words), HasSubstr("line 2: \"-8\" is not an id"));
  EXPECT_EQ(Run({"append", "people", "--rows", rows.path(), "--on-conflict", "skip"}).exit_code,
            ExitCode::kUsage);
}

TEST_F(RowsToolTest, InputsGoToAStoreThatHasAProjection) {
  const TemporaryFile inputs("x.csv", "1,2,3\n4,5,6\n");
  EXPECT_EQ(Run({"append", "people", "--inputs", inputs.path()}).exit_code, ExitCode::kUsage);
  EXPECT_EQ(Run({"lookup", "people", "--inputs", inputs.path()}).exit_code, ExitCode::kUsage);

  store_.mutable_projection()->mutable_key()->set_cols(3);
  EXPECT_EQ(Run({"append", "people", "--inputs", inputs.path()}).error, "");
  ASSERT_EQ(canned_.appends.size(), 1u);
  EXPECT_EQ(canned_.appends[0].inputs().rows(), 2u);
  EXPECT_FALSE(canned_.appends[0].has_keys());

  canned_.answer.mutable_values()->set_rows(2);
  for (int query = 0; query < 2; ++query) {
    canned_.answer.add_stats();
    canned_.answer.add_weights();
  }
  EXPECT_EQ(Run({"lookup", "people", "--inputs", inputs.path()}).error, "");
  EXPECT_EQ(canned_.lookup.inputs().cols(), 3u);
  EXPECT_FALSE(canned_.lookup.has_queries());
}

TEST_F(RowsToolTest, LookupNamesItsSourceAndShowsIds) {
  canned_.answer.mutable_values()->set_rows(1);
  canned_.answer.add_stats();
  v1::QueryWeights* weights = canned_.answer.add_weights();
  weights->add_positions(3);
  weights->add_ids(42);
  weights->add_scores(1);
  weights->add_weights(1);
  const Outcome outcome = Run({"lookup", "people", "--query", "1,2", "--source", "memory",
                               "--memory", "slow", "--end", "4"});
  EXPECT_THAT(outcome.out,
              HasSubstr("  position  id  score  weight\n         3  42      1  1.0000"));
  EXPECT_EQ(canned_.lookup.source(), v1::SOURCE_MEMORY);
  EXPECT_EQ(canned_.lookup.memory(), "slow");
  EXPECT_EQ(canned_.lookup.filter().end(), 4u);
  for (const std::string flag :
       {"--begin", "--last", "--label", "--no-label", "--id", "--exclude-id"}) {
    const Outcome refused =
        Run({"lookup", "people", "--query", "1,2", "--source", "memory", flag, "1"});
    EXPECT_EQ(refused.exit_code, ExitCode::kUsage) << flag;
    EXPECT_THAT(refused.error, HasSubstr("--source memory takes no flag of the group Rows"));
  }
  const auto json = RunJson({"lookup", "people", "--query", "1,2", "--source", "rows-and-memory"});
  EXPECT_EQ(json["answers"][0]["heads"][0]["weights"][0]["id"], 42);
  EXPECT_EQ(canned_.lookup.source(), v1::SOURCE_ROWS_AND_MEMORY);
  EXPECT_EQ(Run({"lookup", "people", "--query", "1,2", "--memory", "slow"}).exit_code,
            ExitCode::kUsage);
}

TEST_F(RowsToolTest, StoreCreateSendsItsMemories) {
  const auto json = RunJson({"store", "create", "people", "--key-dim", "1", "--value-dim", "1",
                             "--memory", "mean=average", "--memory", "slow=decayed-sum:0.9",
                             "--memory", "fast=decayed-average:0.5"});
  const auto& memories = canned_.create_store.store().memories();
  ASSERT_EQ(memories.size(), 3);
  EXPECT_EQ(memories[0].kind(), v1::MEMORY_KIND_AVERAGE);
  EXPECT_EQ(memories[1].name(), "slow");
  EXPECT_EQ(memories[1].kind(), v1::MEMORY_KIND_DECAYED_SUM);
  EXPECT_EQ(memories[1].decay(), 0.9);
  EXPECT_EQ(memories[2].kind(), v1::MEMORY_KIND_DECAYED_AVERAGE);
  EXPECT_EQ(json["memories"][1]["kind"], "decayed-sum");
  EXPECT_FALSE(json["memories"][0].contains("decay"));
}

}  // namespace
}  // namespace softlookup::tool
