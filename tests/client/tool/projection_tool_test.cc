// Projections in the tool, from its files to the server's answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/client/tool/server_tool_test.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::HasSubstr;

using Arguments = std::vector<std::string>;

class ProjectionToolTest : public ServerToolTest {
 protected:
  // key_dim 2, value_dim 1, input_dim 3.
  const NpyFile query_{3, {1, 0, 0, 0, 1, 0}};
  const NpyFile key_{3, {0, 1, 0, 1, 0, 0}};
  const NpyFile value_{3, {0, 0, 2}};
  const NpyFile inputs_{3, {1, 2, 3, 4, 5, 6}};
  // What the maps make of the inputs.
  const NpyFile queries_{2, {1, 2, 4, 5}};
  const NpyFile keys_{2, {2, 1, 5, 4}};
  const NpyFile values_{1, {6, 12}};

  Arguments Projection() const { return Projection(query_, key_, value_); }
  static Arguments Projection(const TemporaryFile& query, const TemporaryFile& key,
                              const TemporaryFile& value) {
    return {"--projection-query", query.path(),         "--projection-key",
            key.path(),           "--projection-value", value.path()};
  }
  static Arguments Join(Arguments arguments, const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  Outcome Create(const Arguments& projection) {
    return Run(Join({"store", "create", "s", "--key-dim", "2", "--value-dim", "1"}, projection));
  }
};

TEST_F(ProjectionToolTest, StoreProjectsWhatIsAppendedAndLookedUp) {
  const Outcome created = Create(Projection());
  ASSERT_EQ(created.error, "");
  EXPECT_THAT(created.out, HasSubstr("\nprojection   input_dim 3\n"));
  EXPECT_EQ(RunJson({"store", "get", "s"})["projection"]["input_dim"], 3);

  ASSERT_EQ(Run({"append", "s", "--inputs", inputs_.path()}).error, "");
  const auto rows = RunJson({"rows", "s"})["rows"];
  EXPECT_EQ(rows[0]["key"], (std::vector<float>{2, 1}));
  EXPECT_EQ(rows[1]["key"], (std::vector<float>{5, 4}));
  EXPECT_EQ(rows[1]["value"], (std::vector<float>{12}));
  EXPECT_EQ(RunJson({"lookup", "s", "--inputs", inputs_.path()}),
            RunJson({"lookup", "s", "--queries", queries_.path()}));
}

TEST_F(ProjectionToolTest, AppendedInputsMayHaveIdsAndLabels) {
  ASSERT_EQ(Create(Projection()).error, "");
  const TemporaryFile ids("ids.txt", "-\n5\n");
  const TemporaryFile labels("labels.txt", "red\n\n");
  ASSERT_EQ(Run({"append", "s", "--inputs", inputs_.path(), "--ids", ids.path(), "--labels",
                 labels.path()})
                .error,
            "");
  const auto rows = RunJson({"rows", "s"})["rows"];
  EXPECT_FALSE(rows[0].contains("id"));
  EXPECT_EQ(rows[0]["labels"], Arguments{"red"});
  EXPECT_EQ(rows[1]["id"], 5);
  EXPECT_EQ(rows[1]["key"], (std::vector<float>{5, 4}));
}

TEST_F(ProjectionToolTest, UpdateSetsReplacesAndRemovesTheProjection) {
  ASSERT_EQ(Create({}).error, "");
  EXPECT_FALSE(RunJson({"store", "get", "s"}).contains("projection"));
  const Outcome without = Run({"append", "s", "--inputs", inputs_.path()});
  EXPECT_EQ(without.exit_code, ExitCode::kUsage);
  EXPECT_EQ(without.error,
            "s has no projection, so it takes no --inputs; `softlookup store update` sets one");

  EXPECT_EQ(RunJson(Join({"store", "update", "s"}, Projection()))["projection"]["input_dim"], 3);
  const NpyFile square(2, {1, 0, 0, 1});
  const NpyFile row(2, {1, 1});
  EXPECT_EQ(RunJson(Join({"store", "update", "s"},
                         Projection(square, square, row)))["projection"]["input_dim"],
            2);
  EXPECT_EQ(RunJson({"store", "update", "s", "--score", "dot"})["projection"]["input_dim"], 2);
  EXPECT_FALSE(RunJson({"store", "update", "s", "--no-projection"}).contains("projection"));
  EXPECT_EQ(Run(Join({"store", "update", "s", "--no-projection"}, Projection())).exit_code,
            ExitCode::kUsage);
}

TEST_F(ProjectionToolTest, AttendProjectsItsInputs) {
  const auto expected = RunJson(
      {"attend", "--queries", queries_.path(), "--keys", keys_.path(), "--values", values_.path()});
  EXPECT_EQ(RunJson(Join({"attend", "--self", "--inputs", inputs_.path()}, Projection())),
            expected);
  EXPECT_EQ(RunJson(Join({"attend", "--queries", queries_.path(), "--inputs", inputs_.path()},
                         Projection())),
            expected);
  EXPECT_EQ(RunJson({"attend", "--self", "--inputs", inputs_.path()}),
            RunJson({"attend", "--queries", inputs_.path(), "--keys", inputs_.path(), "--values",
                     inputs_.path()}));
}

TEST_F(ProjectionToolTest, ProjectionIsWholeOrNotAtAll) {
  ASSERT_EQ(Create({}).error, "");
  const Arguments some = {"--projection-key", key_.path(), "--projection-value", value_.path()};
  for (const Arguments& command : {Arguments{"store", "update", "s"},
                                   Arguments{"attend", "--self", "--inputs", inputs_.path()}}) {
    const Outcome outcome = Run(Join(command, some));
    EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
    EXPECT_EQ(outcome.error,
              "a projection takes all of --projection-query, --projection-key and "
              "--projection-value");
  }
}

TEST_F(ProjectionToolTest, AttendRefusesWhatDoesNotGoTogether) {
  const Arguments pairs = {"--keys", keys_.path(), "--values", values_.path()};
  const Arguments queries = {"--queries", queries_.path()};
  const Arguments inputs = {"--inputs", inputs_.path()};
  for (const Arguments& wrong :
       {inputs, Join(inputs, Projection()), Join(queries, inputs),
        Join(Join(queries, pairs), Projection()), Join(Join(inputs, pairs), Projection()),
        Join(Join(queries, inputs), Join(Projection(), {"--self"}))}) {
    const Outcome outcome = Run(Join({"attend"}, wrong));
    EXPECT_EQ(outcome.exit_code, ExitCode::kUsage) << ::testing::PrintToString(wrong);
    EXPECT_THAT(outcome.error, HasSubstr("attend needs --queries, --keys and --values; or"));
  }
}

TEST_F(ProjectionToolTest, ShapesThatDoNotChainNameTheFile) {
  const NpyFile two_columns(2, {1, 2, 3, 4});
  const NpyFile three_rows(3, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const TemporaryFile missing("w.npy");
  const TemporaryFile ragged("w.csv", "1,2,3\n4,5\n");
  struct Bad {
    Arguments projection;
    std::string message;
  };
  const std::vector<Bad> all = {
      {Projection(three_rows, key_, value_), three_rows.path() + ": has 3 rows, but key_dim is 2"},
      {Projection(query_, three_rows, value_),
       three_rows.path() + ": has 3 rows, but key_dim is 2"},
      {Projection(query_, key_, query_), query_.path() + ": has 2 rows, but value_dim is 1"},
      {Projection(query_, two_columns, value_),
       two_columns.path() + ": has 2 columns, but input_dim of " + query_.path() + " is 3"},
      {Projection(two_columns, key_, value_),
       key_.path() + ": has 3 columns, but input_dim of " + two_columns.path() + " is 2"},
      {Projection(ragged, key_, value_),
       ragged.path() + ": line 2: 2 columns, but the first row has 3"},
      {Projection(missing, key_, value_), missing.path() + ": is empty"}};
  for (const Bad& bad : all) {
    const Outcome create = Create(bad.projection);
    EXPECT_EQ(create.exit_code, ExitCode::kInput);
    EXPECT_EQ(create.error, bad.message);
  }
  ASSERT_EQ(Create({}).error, "");
  for (const Bad& bad : all) {
    EXPECT_EQ(Run(Join({"store", "update", "s"}, bad.projection)).error, bad.message);
  }
  // Attend has no dimensions but those of the files.
  EXPECT_EQ(Run(Join({"attend", "--self", "--inputs", inputs_.path()},
                     Projection(three_rows, key_, value_)))
                .error,
            key_.path() + ": has 2 rows, but key_dim of " + three_rows.path() + " is 3");
  EXPECT_THAT(Run(Join({"attend", "--self", "--inputs", keys_.path()}, Projection())).error,
              HasSubstr("inputs: 2 columns, but the projection takes 3"));
}

}  // namespace
}  // namespace softlookup::tool
