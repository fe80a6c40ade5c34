// `tune` against a scripted server, whose answers no real one sends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/tool/scripted_tool_test.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A store of two rows. Every answer has `component_` in both components, and `stats_` for its head.
class TuneCommandTest : public ScriptedToolTest {
 protected:
  TuneCommandTest() {
    store_.set_row_count(2);
    store_.set_live_row_count(2);
    canned_.pages.resize(1);
    for (int position = 0; position < 2; ++position) {
      v1::Row& row = *canned_.pages[0].add_rows();
      row.set_position(position);
      Fill(1, 1, 1, row.mutable_key());
      Fill(1, 2, 0.5, row.mutable_value());
    }
    canned_.Serve(&service_);
    service_.lookup = [this](auto*, const v1::LookupRequest& request, auto* response) {
      const std::uint32_t rows = request.queries().rows();
      Fill(rows, 2 / rows, component_, response->mutable_values());
      for (std::uint32_t i = 0; i < stats_count_; ++i) *response->add_stats() = stats_;
      return grpc::Status::OK;
    };
  }

  static void Fill(std::uint32_t rows, std::uint32_t cols, float component, v1::Matrix* matrix) {
    matrix->set_rows(rows);
    matrix->set_cols(cols);
    matrix->clear_values();
    for (std::uint32_t i = 0; i < rows * cols; ++i) matrix->add_values(component);
  }

  v1::Row& LastRow() { return *canned_.pages[0].mutable_rows(1); }

  // Expects that `tune` fails with an error that contains `error`.
  void ExpectFailure(const std::string& error) {
    const Outcome outcome = Run({"tune", "people"});
    EXPECT_EQ(outcome.exit_code, ExitCode::kOther);
    EXPECT_THAT(outcome.error, HasSubstr(error));
  }

  // Changed only between runs of the tool.
  float component_ = 0.5;
  v1::QueryStats stats_;
  std::uint32_t stats_count_ = 1;
};

TEST_F(TuneCommandTest, AnswersThatAreNotFiniteAreAnErrorAndNotDrawn) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/plot.svg";
  for (const float component :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    component_ = component;
    const Outcome outcome = Run({"tune", "people", "--plot", path});
    EXPECT_EQ(outcome.exit_code, ExitCode::kOther);
    EXPECT_THAT(outcome.error, HasSubstr("an answer that is not finite"));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  component_ = 0.5;
  EXPECT_EQ(Run({"tune", "people", "--plot", path}).exit_code, ExitCode::kOk);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(TuneCommandTest, StatisticsThatAreNotFiniteAreNotTakenForDeletedRows) {
  for (const double log_sum_exp : {std::nan(""), kInfinity}) {
    stats_.set_log_sum_exp(log_sum_exp);
    ExpectFailure("an answer that is not finite");
  }
  stats_.set_log_sum_exp(-kInfinity);
  ExpectFailure("rows were deleted meanwhile");
}

TEST_F(TuneCommandTest, AnEntropyThatNoRowsHaveIsAnError) {
  for (const double entropy : {std::nan(""), kInfinity, -kInfinity, 1e300, 46.0, -46.0}) {
    stats_.set_entropy(entropy);
    ExpectFailure("nats, which no number of rows has");
  }
  stats_.set_entropy(44);
  EXPECT_EQ(Run({"tune", "people"}).error, "");
}

TEST_F(TuneCommandTest, AStoreWhoseValuesDoNotSplitIntoItsHeadsIsAnError) {
  struct Shape {
    std::uint32_t value_dim;
    std::uint32_t heads;
    std::string error;
  };
  for (const Shape& shape :
       {Shape{0, 1, "value_dim 0 and 1 head"}, Shape{0, 3, "value_dim 0 and 3 heads"},
        Shape{2, 3, "value_dim 2 and 3 heads"}, Shape{3, 2, "value_dim 3 and 2 heads"},
        Shape{2, 4000000000, "value_dim 2 and 4000000000 heads"}}) {
    store_.set_value_dim(shape.value_dim);
    store_.set_num_heads(shape.heads);
    stats_count_ = shape.heads > 3 ? 1 : shape.heads;
    for (v1::Row& row : *canned_.pages[0].mutable_rows()) {
      Fill(1, shape.value_dim, 0.5, row.mutable_value());
    }
    ExpectFailure("the server sent a store with " + shape.error);
  }
}

TEST_F(TuneCommandTest, ARowOfAnotherShapeIsAnError) {
  const std::string error = "a row that does not fit the store";
  Fill(2, 1, 0.5, LastRow().mutable_value());
  ExpectFailure(error);
  Fill(1, 2, 0.5, LastRow().mutable_value());
  EXPECT_EQ(Run({"tune", "people"}).error, "");

  // With a key of two rows, the answer has two rows, of one component each.
  store_.set_key_dim(2);
  store_.set_num_heads(2);
  stats_count_ = 2;
  for (v1::Row& row : *canned_.pages[0].mutable_rows()) Fill(2, 1, 1, row.mutable_key());
  ExpectFailure(error);
  for (v1::Row& row : *canned_.pages[0].mutable_rows()) Fill(1, 2, 1, row.mutable_key());
  EXPECT_EQ(Run({"tune", "people"}).error, "");
}

TEST_F(TuneCommandTest, ARowThatIsNotFiniteIsAnError) {
  const float infinity = std::numeric_limits<float>::infinity();
  Fill(1, 2, infinity, LastRow().mutable_value());
  ExpectFailure("a row that is not finite");
  Fill(1, 2, 0.5, LastRow().mutable_value());
  Fill(1, 1, infinity, LastRow().mutable_key());
  ExpectFailure("a row that is not finite");
}

TEST_F(TuneCommandTest, ANarrowTerminalShowsTheFigureThatDecides) {
  for (const auto& [by, title] :
       {std::pair("accuracy", "accuracy"), std::pair("log-likelihood", "log-likelihood"),
        std::pair("squared-error", "squared error")}) {
    const Outcome outcome = RunTool(service_.address(), {"tune", "people", "--by", by}, 45);
    EXPECT_THAT(outcome.out, StartsWith(std::string("score       temperature  ") + title + "\n"));
    EXPECT_THAT(outcome.notes, HasSubstr("(3 columns more: -w)\n"));
  }
}

TEST_F(TuneCommandTest, RowsThatHaveTwinsAreNoted) {
  const std::string note = "softlookup: each row may have a twin";
  EXPECT_THAT(Run({"tune", "people"}).notes, HasSubstr(note));
  Fill(1, 1, 2, LastRow().mutable_key());
  EXPECT_THAT(Run({"tune", "people"}).notes, Not(HasSubstr(note)));
}

TEST_F(TuneCommandTest, TwinsOfAHundredthOfTheRowsAreCounted) {
  const std::vector<std::string> tune = {"tune", "people", "--temperatures", "1"};
  const auto add_rows = [this](int count) {
    for (int position = canned_.pages[0].rows_size(); position < count; ++position) {
      v1::Row& row = *canned_.pages[0].add_rows();
      row.set_position(position);
      Fill(1, 1, static_cast<float>(position), row.mutable_key());
      Fill(1, 2, 0.5, row.mutable_value());
    }
    store_.set_row_count(count);
    store_.set_live_row_count(count);
  };
  add_rows(200);
  // The answers need not be as good as equal to the values.
  component_ = 0.4;
  EXPECT_EQ(Run(tune).notes,
            "softlookup: 2 of 200 sampled rows have another row with the same key and value, which "
            "flatters the figures\n");
  add_rows(201);
  EXPECT_EQ(Run(tune).notes, "");
  Fill(1, 1, 1, canned_.pages[0].mutable_rows(2)->mutable_key());
  EXPECT_THAT(Run(tune).notes, HasSubstr("softlookup: 3 of 201 sampled rows"));
}

TEST_F(TuneCommandTest, APlotThatCannotBeWrittenIsRefusedBeforeTheFirstCall) {
  int calls = 0;
  service_.get_store = [&](auto*, const auto&, auto*) {
    ++calls;
    return grpc::Status::OK;
  };
  const Outcome outcome = Run({"tune", "people", "--plot", "/no/such/folder/plot.svg"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_THAT(outcome.error, HasSubstr("/no/such/folder/plot.svg: cannot be written"));
  EXPECT_EQ(calls, 0);
}

TEST_F(TuneCommandTest, APlotWhoseNameDoesNotEndInSvgIsRefused) {
  for (const std::string name : {"plot", "plot.png", "plot.svg.gz", "svg"}) {
    const Outcome outcome = Run({"tune", "people", "--plot", name});
    EXPECT_EQ(outcome.exit_code, ExitCode::kUsage) << name;
    EXPECT_THAT(outcome.error, HasSubstr("must end in .svg, unlike " + name));
  }
}

}  // namespace
}  // namespace softlookup::tool
