// Lookups: what they answer and how.
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/server_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using ::testing::HasSubstr;

class LookupTest : public IntegrationTest {};

TEST_F(LookupTest, ALookupInNumbersIsAnsweredInNumbers) {
  Create("s", 2, 1);
  ASSERT_TRUE(Append(TwoRows()).ok());
  v1::LookupRequest request;
  request.set_store("s");
  request.mutable_queries()->set_rows(1);
  request.mutable_queries()->set_cols(2);
  request.mutable_queries()->add_values(1);
  request.mutable_queries()->add_values(0);
  request.set_tag(42);
  v1::LookupResponse response;
  ASSERT_TRUE(Lookup(request, &response).ok());
  EXPECT_EQ(response.values().values_size(), 1);
  EXPECT_TRUE(response.values().data().empty());
  EXPECT_EQ(response.tag(), 42u);
  EXPECT_EQ(response.revision(), 2u);
  EXPECT_EQ(response.row_count(), 2u);
}

TEST_F(LookupTest, TheLargestWeightsAreListedWithTheirScoresAndTheRestIsSummed) {
  constexpr int kRows = 12;
  constexpr double kTemperature = 2;
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(100, kRows, 1)), IsGrpcOk());  // Row j scores 100 + j.
  double sum = 0;
  for (int j = 0; j < kRows; ++j) sum += std::exp(-j / kTemperature);
  v1::LookupRequest lookup = OneQuery();
  lookup.mutable_options()->set_score(v1::SCORE_DOT);
  lookup.mutable_options()->set_temperature(kTemperature);
  v1::LookupResponse answer;
  const auto expect_listed = [&](int count) {
    ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
    ASSERT_EQ(answer.weights_size(), 1);
    const v1::QueryWeights& weights = answer.weights(0);
    ASSERT_EQ(weights.positions_size(), count);
    ASSERT_EQ(weights.ids_size(), count);
    ASSERT_EQ(weights.weights_size(), count);
    ASSERT_EQ(weights.scores_size(), count);
    double remaining = 1;
    for (int rank = 0; rank < count; ++rank) {
      const int row = kRows - 1 - rank;
      const double weight = std::exp(-rank / kTemperature) / sum;
      EXPECT_EQ(weights.positions(rank), static_cast<std::uint64_t>(row));
      EXPECT_EQ(weights.ids(rank), 100u + row);
      EXPECT_NEAR(weights.weights(rank), weight, 1e-6);
      EXPECT_NEAR(weights.scores(rank), 100 + row, 1e-5);
      remaining -= weight;
    }
    EXPECT_NEAR(weights.remaining_weight(), remaining, 1e-6);
  };
  expect_listed(kRows);  // WEIGHTS_MODE_ALL.
  lookup.mutable_options()->set_weights(v1::WEIGHTS_MODE_TOP);
  expect_listed(10);
  lookup.mutable_options()->set_top_weights(3);
  expect_listed(3);
  for (const auto mode : {v1::WEIGHTS_MODE_UNSPECIFIED, v1::WEIGHTS_MODE_NONE}) {
    lookup.mutable_options()->set_weights(mode);
    ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
    EXPECT_EQ(answer.weights_size(), 0);
  }
}

TEST_F(LookupTest, TheToolWritesItsFileThoughNobodyReadsTheTables) {
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(0, 12, 1)), IsGrpcOk());
  const TemporaryDirectory directory;
  std::string queries;  // Their tables take more than a pipe holds.
  for (int i = 0; i < 2000; ++i) queries += absl::StrCat(i % 7, "\n");
  const std::string answers = directory.path() + "/answers.npy";
  const CommandResult result = RunCommand(
      {"/bin/sh", "-c",
       absl::StrCat(ToolBinary(), " --server ", server_.grpc_address(),
                    " lookup s --queries - --values-out ", answers, " | true; ls ", answers)},
      queries);
  EXPECT_EQ(result.out, answers + "\n") << result.err;
  EXPECT_EQ(result.err, "");
}

TEST_F(LookupTest, TheToolSaysHowToPipeANpyFileIntoIt) {
  Create("s", 1, 1);
  const CommandResult result = RunCommand(
      {ToolBinary(), "--server", server_.grpc_address(), "lookup", "s", "--queries", "-"},
      "\x93NUMPY\n");
  EXPECT_THAT(result.err, HasSubstr("standard input: is a .npy file, but it must be text, one line "
                                    "a row; --format npy reads its rows"));
}

TEST_F(LookupTest, AnAnswerIsWithinItsMaxErrorAndSaysWhatIsProven) {
  constexpr std::int64_t kRows = 5000, kDim = 32;
  constexpr double kMaxError = 0.001;
  Create("s", kDim, kDim);
  const std::vector<float> keys = NormalFloats(kRows * kDim, 1, /*deviation=*/3);
  const std::vector<float> values = NormalFloats(kRows * kDim, 2);
  const std::vector<float> query = NormalFloats(kDim, 3);
  ASSERT_THAT(client_.Append("s", View(keys, kDim), View(values, kDim)), IsOk());
  // The definition, in float64. The weights of most rows are tiny.
  std::vector<double> sums(kDim);
  double weight_sum = 0, largest = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    double dot = 0;
    for (std::int64_t i = 0; i < kDim; ++i) dot += double{query[i]} * keys[row * kDim + i];
    const double weight = std::exp(dot / std::sqrt(double{kDim}));
    weight_sum += weight;
    for (std::int64_t i = 0; i < kDim; ++i) {
      const double component = values[row * kDim + i];
      sums[i] += weight * component;
      largest = std::max(largest, std::abs(component));
    }
  }

  v1::LookupRequest lookup;
  lookup.set_store("s");
  *lookup.mutable_queries() = Message(query, kDim);
  for (const double max_error : {kMaxError, 0.0}) {
    lookup.mutable_options()->set_max_error(max_error);
    v1::LookupResponse answer;
    ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
    const v1::QueryStats& stats = answer.stats(0);
    EXPECT_GT(stats.error_bound(), 0);
    EXPECT_LE(stats.error_bound(), std::max(max_error, 1e-5));
    const std::vector<float> answered = Floats(answer.values());
    for (std::int64_t i = 0; i < kDim; ++i) {
      EXPECT_NEAR(answered[i], sums[i] / weight_sum, stats.error_bound() * largest) << i;
    }
    EXPECT_NEAR(stats.log_sum_exp(), std::log(weight_sum), std::max(max_error, 1e-5));
    EXPECT_EQ(stats.counted_rows(), kRows);
    EXPECT_GE(stats.summed_rows(), 1u);
    EXPECT_LE(stats.summed_rows(), stats.counted_rows());
  }

  lookup.mutable_options()->set_mode(v1::MODE_HARD);
  v1::LookupResponse answer;
  ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
  EXPECT_EQ(answer.stats(0).error_bound(), 0);
  EXPECT_EQ(answer.stats(0).summed_rows(), 1u);
  lookup.mutable_options()->set_mode(v1::MODE_LINEAR);
  ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
  EXPECT_EQ(answer.stats(0).error_bound(), 1e-5);
  EXPECT_EQ(answer.stats(0).summed_rows(), static_cast<std::uint64_t>(kRows));
}

TEST_F(LookupTest, AMaxErrorOutOfItsRangeIsRefusedByName) {
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(0, 2, 1)), IsGrpcOk());
  v1::LookupRequest lookup = OneQuery();
  v1::LookupResponse answer;
  for (const double max_error : {1.5, -0.1, std::nan(""), kInfinity}) {
    lookup.mutable_options()->set_max_error(max_error);
    const grpc::Status status = Lookup(lookup, &answer);
    EXPECT_THAT(status, IsGrpcError(grpc::INVALID_ARGUMENT, "options.max_error")) << max_error;
    EXPECT_EQ(ReasonOf(status), "INVALID_OPTION");
    EXPECT_EQ(InfoOf(status).metadata().at("field"), "options.max_error");
  }
  for (const double max_error : {0.0, 1e-9, 1.0}) {
    lookup.mutable_options()->set_max_error(max_error);
    EXPECT_THAT(Lookup(lookup, &answer), IsGrpcOk()) << max_error;
  }
}

TEST_F(LookupTest, WeightsOverTheMessageLimitSayWhatTheyNeed) {
  Create("s", 1, 1);
  for (int i = 0; i < 2; ++i) {
    const std::vector<float> rows(65536);
    ASSERT_THAT(client_.Append("s", View(rows, 1), View(rows, 1)), IsOk());
  }
  v1::LookupRequest request;
  request.set_store("s");
  *request.mutable_queries() = Message(std::vector<float>(64), 1);
  request.mutable_options()->set_weights(v1::WEIGHTS_MODE_ALL);
  v1::LookupResponse response;
  const grpc::Status status = Lookup(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(InfoOf(status).reason(), "ANSWER_TOO_LARGE");
  EXPECT_GT(std::stoll(InfoOf(status).metadata().at("bytes")), 64 * 131072 * 17);
}

TEST_F(LookupTest, RowsAreTheDefaultSource) {
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(0, 5, 1)), IsGrpcOk());
  v1::LookupRequest lookup = OneQuery();
  lookup.mutable_filter()->set_begin(2);
  v1::LookupResponse answer;
  for (const auto& [source, counted_rows] :
       std::map<v1::Source, std::uint64_t>{{v1::SOURCE_UNSPECIFIED, 3},
                                           {v1::SOURCE_ROWS, 3},
                                           {v1::SOURCE_MEMORY, 1},
                                           {v1::SOURCE_ROWS_AND_MEMORY, 4}}) {
    lookup.set_source(source);
    ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
    EXPECT_EQ(answer.stats(0).counted_rows(), counted_rows) << v1::Source_Name(source);
  }
}

TEST_F(LookupTest, ALookupWaitsForTheRevisionThatItAsksFor) {
  Create("s", 1, 1);
  v1::LookupRequest lookup = OneQuery();
  lookup.set_min_revision(3);
  v1::LookupResponse answer;
  std::thread waiter([&] { EXPECT_THAT(Lookup(lookup, &answer), IsGrpcOk()); });
  EXPECT_THAT(Append(RowsWithIds(0, 1, 1)), IsGrpcOk());
  EXPECT_THAT(Append(RowsWithIds(1, 1, 1)), IsGrpcOk());
  waiter.join();
  EXPECT_EQ(answer.revision(), 3u);
  EXPECT_EQ(answer.row_count(), 2u);
}

TEST_F(LookupTest, WaitingForARevisionEndsAtTheDeadline) {
  Create("s", 2, 1);
  v1::LookupRequest request;
  request.set_store("s");
  *request.mutable_queries() = Message({1, 2}, 2);
  request.set_min_revision(99);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(150)));
  v1::LookupResponse response;
  EXPECT_EQ(stub_->Lookup(&context, request, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  // The server forgets the call: it can stop at once.
  EXPECT_EQ(server_.Stop(SIGTERM), 0);
}

class ShortRevisionWaitTest : public IntegrationTest {
 protected:
  ShortRevisionWaitTest() : IntegrationTest({"--revision-timeout", "0.1"}) {}
};

TEST_F(ShortRevisionWaitTest, ALookupHearsWhichRevisionTheStoreHas) {
  Create("s", 1, 1);
  v1::LookupRequest lookup = OneQuery();
  lookup.set_min_revision(99);
  v1::LookupResponse answer;
  const grpc::Status ended = Lookup(lookup, &answer);
  EXPECT_THAT(ended, IsGrpcError(grpc::StatusCode::DEADLINE_EXCEEDED,
                                 "The server lets a lookup wait for 100ms at most: the store is at "
                                 "revision 1 and has not reached min_revision 99"));
  EXPECT_EQ(ReasonOf(ended), "DEADLINE_EXCEEDED");
  EXPECT_EQ(InfoOf(ended).metadata().at("field"), "min_revision");
  CallContext context;
  const auto stream = stub_->StreamLookup(&context);
  ASSERT_TRUE(stream->Write(lookup));
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.error().code(), static_cast<int>(grpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_THAT(answer.error().message(), ::testing::HasSubstr("is at revision 1"));
}

// One lookup runs and one waits; what comes then is turned away.
class FullQueueTest : public IntegrationTest {
 protected:
  FullQueueTest() : IntegrationTest({"--threads", "1", "--max-waiting-lookups", "1"}) {}
};

TEST_F(FullQueueTest, ALookupTurnedAwayHearsWhenToComeBack) {
  constexpr std::int64_t kDim = 64, kQueries = 256;
  Create("s", kDim, kDim);
  const std::vector<float> rows = NormalFloats(60'000 * kDim, 1);
  ASSERT_THAT(client_.Append("s", View(rows, kDim), View(rows, kDim)), IsOk());
  v1::LookupRequest lookup;  // Of some 50 ms.
  lookup.set_store("s");
  *lookup.mutable_queries() = Message({rows.begin(), rows.begin() + kQueries * kDim}, kDim);
  CallContext context;
  const auto stream = stub_->StreamLookup(&context);
  constexpr int kCount = 8;
  for (int i = 0; i < kCount; ++i) ASSERT_TRUE(stream->Write(lookup));
  stream->WritesDone();
  int refused = 0;
  v1::LookupResponse answer;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(stream->Read(&answer));
    if (!answer.has_error()) continue;
    ++refused;
    const v1::LookupError& error = answer.error();
    EXPECT_EQ(error.code(), static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
    ASSERT_EQ(error.details_size(), 2);
    google::rpc::ErrorInfo info;
    ASSERT_TRUE(error.details(0).UnpackTo(&info));
    EXPECT_EQ(info.reason(), "QUEUE_FULL");
    EXPECT_EQ(info.metadata().at("limit"), "1");
    google::rpc::RetryInfo retry;
    ASSERT_TRUE(error.details(1).UnpackTo(&retry));
    EXPECT_GT(retry.retry_delay().seconds() + retry.retry_delay().nanos(), 0);
  }
  EXPECT_GE(refused, 1);
  EXPECT_LT(refused, kCount);
  EXPECT_THAT(stream->Finish(), IsGrpcOk());
}

}  // namespace
}  // namespace softlookup::testing
