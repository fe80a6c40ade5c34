// Lookups through a router in a store that is cut into ranges, which nodes of a group answer in
// parts: beside those of one node, and while rows are replaced and ranges change. With real servers
// and a real etcd.
#include "tests/integration/router_ranges.h"

#include <signal.h>

#include <atomic>
#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/rpc/ranges/ranges.grpc.pb.h"
#include "tests/testing/passing_time.h"

namespace softlookup::testing {
namespace {

// Of nodes that refuse lookups beside others that take longer than four times as long.
class RouterRangesOfBusyNodesTest : public RouterRangesTest {
 protected:
  RouterRangesOfBusyNodesTest() : RouterRangesTest({"--max-waiting-work", "1"}) {}
};

class RouterRangesAnswersTest : public RouterRangesTest {
 protected:
  // Lookups with all kinds of options, by what they have.
  std::map<std::string, v1::LookupRequest> AllKinds(std::uint64_t rows);
};

std::map<std::string, v1::LookupRequest> RouterRangesAnswersTest::AllKinds(std::uint64_t rows) {
  std::map<std::string, v1::LookupRequest> kinds;
  const auto add = [&](const std::string& name, std::int64_t queries) -> v1::LookupRequest& {
    return kinds[name] = Request(queries);
  };
  add("defaults", 3);
  add("no queries", 0);
  add("tag", 1).set_tag(7);
  add("small temperature", 5).mutable_options()->set_temperature(0.05);
  v1::LookupRequest& cosine = add("cosine", 2);
  cosine.mutable_options()->set_score(v1::SCORE_COSINE);
  cosine.mutable_options()->set_temperature(0.02);
  add("hard", 4).mutable_options()->set_mode(v1::MODE_HARD);
  add("linear", 2).mutable_options()->set_mode(v1::MODE_LINEAR);
  v1::AttentionOptions& top = *add("top weights", 3).mutable_options();
  top.set_weights(v1::WEIGHTS_MODE_TOP);
  top.set_top_weights(20);
  add("all weights", 1).mutable_options()->set_weights(v1::WEIGHTS_MODE_ALL);
  v1::AttentionOptions& top_k = *add("top_k", 3).mutable_options();
  top_k.set_top_k(50);
  top_k.set_weights(v1::WEIGHTS_MODE_TOP);
  top_k.set_top_weights(10);
  v1::AttentionOptions& hard_k = *add("hard top_k", 2).mutable_options();
  hard_k.set_mode(v1::MODE_HARD);
  hard_k.set_top_k(5);
  v1::AttentionOptions& linear_k = *add("linear top_k", 2).mutable_options();
  linear_k.set_mode(v1::MODE_LINEAR);
  linear_k.set_top_k(5);
  add("min_score", 3).mutable_options()->set_min_score(0.5);
  add("no row is good enough", 2).mutable_options()->set_min_score(1e6);
  add("recency decay", 2).mutable_options()->set_recency_decay(0.001);
  v1::AttentionOptions& causal = *add("causal", 3).mutable_options();
  causal.set_causal(true);
  causal.set_causal_offset(rows / 2);
  add("max_error", 2).mutable_options()->set_max_error(0.01);
  v1::RowFilter& middle = *add("range", 2).mutable_filter();
  middle.set_begin(rows / 5);
  middle.set_end(rows / 5 * 3);
  add("last", 2).mutable_filter()->set_last(100);
  add("label", 2).mutable_filter()->add_any_labels("third");
  v1::RowFilter& ids = *add("ids", 2).mutable_filter();
  for (std::uint64_t id = 1; id < rows; id += rows / 11) ids.add_ids(id);
  add("no rows", 2).mutable_filter()->add_any_labels("of no row");
  add("memory", 2).set_source(v1::SOURCE_MEMORY);
  v1::LookupRequest& both = add("rows and memory", 2);
  both.set_source(v1::SOURCE_ROWS_AND_MEMORY);
  both.mutable_filter()->set_last(rows / 2);
  add("linearizable", 1).set_linearizable(true);
  v1::LookupRequest& doubles = add("float64", 1);
  const std::vector<float> floats = Floats(doubles.queries());
  doubles.mutable_queries()->clear_data();
  doubles.mutable_queries()->mutable_values()->Add(floats.begin(), floats.end());
  // Errors.
  add("other dimension", 1).mutable_queries()->set_cols(kKeyDim / 2);
  add("bad temperature", 1).mutable_options()->set_temperature(-1);
  add("bad range", 1).mutable_filter()->set_begin(rows + 1);
  return kinds;
}

void ExpectNear(double actual, double expected, double scale, const std::string& what) {
  if (std::isinf(expected) || std::isinf(actual)) {
    EXPECT_EQ(actual, expected) << what;
  } else {
    EXPECT_NEAR(actual, expected, 1e-6 * scale) << what;
  }
}

// Expects the answer of one machine, but for the order of sums.
void ExpectSame(const v1::LookupResponse& actual, const v1::LookupResponse& expected,
                const std::string& what) {
  EXPECT_EQ(actual.revision(), expected.revision()) << what;
  EXPECT_EQ(actual.row_count(), expected.row_count()) << what;
  EXPECT_EQ(actual.tag(), expected.tag()) << what;
  EXPECT_EQ(actual.values().rows(), expected.values().rows()) << what;
  EXPECT_EQ(actual.values().values_size(), expected.values().values_size()) << what;
  const auto components = [](const v1::Matrix& matrix) {
    if (matrix.values_size() > 0) return Doubles(matrix);
    const std::vector<float> floats = Floats(matrix);
    return std::vector<double>(floats.begin(), floats.end());
  };
  const std::vector<double> values = components(actual.values()),
                            other_values = components(expected.values());
  ASSERT_EQ(values.size(), other_values.size()) << what;
  double scale = 1;
  for (const double value : other_values) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ExpectNear(values[i], other_values[i], scale, absl::StrCat(what, ", component ", i));
  }
  ASSERT_EQ(actual.stats_size(), expected.stats_size()) << what;
  for (int i = 0; i < actual.stats_size(); ++i) {
    const v1::QueryStats &one = actual.stats(i), &other = expected.stats(i);
    ExpectNear(one.log_sum_exp(), other.log_sum_exp(), 1, what);
    ExpectNear(one.max_logit(), other.max_logit(), 1, what);
    ExpectNear(one.entropy(), other.entropy(), 10, what);
    EXPECT_EQ(one.counted_rows(), other.counted_rows()) << what;
    EXPECT_EQ(one.empty(), other.empty()) << what;
  }
  ASSERT_EQ(actual.weights_size(), expected.weights_size()) << what;
  for (int i = 0; i < actual.weights_size(); ++i) {
    const v1::QueryWeights &one = actual.weights(i), &other = expected.weights(i);
    EXPECT_THAT(one.positions(), ::testing::ElementsAreArray(other.positions())) << what;
    EXPECT_THAT(one.ids(), ::testing::ElementsAreArray(other.ids())) << what;
    EXPECT_THAT(one.has_ids(), ::testing::ElementsAreArray(other.has_ids())) << what;
    ASSERT_EQ(one.weights_size(), other.weights_size()) << what;
    for (int row = 0; row < one.weights_size(); ++row) {
      ExpectNear(one.weights(row), other.weights(row), 1, what);
      ExpectNear(one.scores(row), other.scores(row), 10, what);
    }
    ExpectNear(one.remaining_weight(), other.remaining_weight(), 1, what);
  }
}

TEST_F(RouterRangesAnswersTest, AreThoseOfOneMachineOverAnyNumberOfRanges) {
  constexpr std::int64_t kRows = 16 * kRowsPerAppend;
  Create(StoreMessage(kStore, kKeyDim, kValueDim));
  Fill(kRows);
  v1::DeleteRowsRequest deletion;
  deletion.set_store(kStore);
  for (std::uint64_t id = 5; id < kRows; id += 29) deletion.mutable_filter()->add_ids(id);
  v1::DeleteRowsResponse deleted;
  CallContext context;
  ASSERT_THAT(router_->DeleteRows(&context, deletion, &deleted), IsGrpcOk());
  const auto kinds = AllKinds(kRows);
  // One node answers for all rows before they are cut.
  std::map<std::string, v1::LookupResponse> answers;
  std::map<std::string, grpc::Status> statuses;
  for (const auto& [name, request] : kinds) {
    statuses[name] = LookUpAt(*node_, request, &answers[name]);
  }
  for (const int ranges : NumbersOfRanges()) {
    Split(ranges);
    if (ranges > 1) Rebalance("n1,n2,n3");
    cluster_.AwaitEqual("n1");
    for (const auto& [name, request] : kinds) {
      const std::string what = absl::StrCat(name, " over ", ranges, " ranges");
      const grpc::Status& direct = statuses[name];
      v1::LookupResponse& expected = answers[name];
      v1::LookupResponse actual, again;
      const grpc::Status routed = LookUpAt(*router_, request, &actual);
      ASSERT_EQ(routed.error_code(), direct.error_code()) << what << routed.error_message();
      ASSERT_EQ(ReasonOf(routed), ReasonOf(direct)) << what;
      if (!direct.ok()) continue;
      EXPECT_GT(actual.revision(), expected.revision()) << what;  // A change of ranges makes one.
      expected.set_revision(actual.revision());
      ExpectSame(actual, expected, what);
      ASSERT_THAT(LookUpAt(*router_, request, &again), IsGrpcOk());
      EXPECT_THAT(again, IsMessage(actual)) << what;
    }
  }
  // Each node has answered for the ranges that it has.
  for (const char* node : {"n1", "n2", "n3"}) EXPECT_GT(PartsAt(node), 0) << node;
}

TEST_F(RouterRangesOfBusyNodesTest, ManyPartsOfALookupDoNotStandInEachOthersWay) {
  constexpr std::int64_t kRows = 8 * kRowsPerAppend;
  Create(StoreMessage(kStore, kKeyDim, kValueDim));
  Fill(kRows);
  Split(8);
  Rebalance("n2");
  cluster_.AwaitEqual("n1");
  for (const std::int64_t queries : {1, 129}) {
    v1::LookupRequest request = Request(queries);
    v1::LookupResponse response;
    ASSERT_THAT(LookUpAt(*router_, request, &response), IsGrpcOk()) << queries;
    EXPECT_EQ(response.stats(0).counted_rows(), kRows);
    // Selected by their labels, and in two phases.
    request.mutable_filter()->add_any_labels("third");
    request.mutable_options()->set_top_k(kRows / 8);
    ASSERT_THAT(LookUpAt(*router_, request, &response), IsGrpcOk()) << queries;
    EXPECT_EQ(response.stats(0).counted_rows(), kRows / 8);
  }
}

TEST_F(RouterRangesTest, RowsThatAreReplacedMeanwhileAreCountedOnce) {
  constexpr std::int64_t kRows = 8 * kRowsPerAppend;
  Create(StoreMessage(kStore, kKeyDim, kValueDim));
  Fill(kRows);
  std::atomic<bool> ends = false;
  std::atomic<int> written = 0, asked = 0;
  std::thread writer([&, stub = StubOf(cluster_.router())] {
    Draw draw(7);
    while (!ends) {
      v1::AppendRequest request;
      request.set_store(kStore);
      request.set_on_conflict(v1::ON_CONFLICT_REPLACE);
      constexpr int kReplaced = 16;
      *request.mutable_keys() = Message(draw.Normal(kReplaced * kKeyDim), kKeyDim);
      *request.mutable_values() = Message(draw.Normal(kReplaced * kValueDim), kValueDim);
      const std::int64_t first = draw.Int(0, kRows - kReplaced);
      for (int i = 0; i < kReplaced; ++i) {
        request.add_ids(static_cast<std::uint64_t>(first + i));
      }
      ASSERT_THAT(Append(*stub, request), IsGrpcOk());
      ++written;
    }
  });
  std::thread reader = StartReader(ends, asked, [](const v1::LookupResponse&) { return kRows; });
  // Waits for as many more of both.
  const auto await = [&](int count) {
    const int writes = written, reads = asked;
    EXPECT_TRUE(AwaitThat(
        [&] { return (written >= writes + count && asked >= reads + count) || HasFailure(); }));
  };
  for (const int ranges : {3, 1, 2, 4}) {
    Split(ranges);
    await(20);
  }
  Rebalance("n3,n2");
  await(20);
  Rebalance("n1,n2");
  await(20);
  cluster_.node("n3").Stop(SIGKILL);
  await(20);
  ends = true;
  writer.join();
  reader.join();
}

// Lookups in a store that does not change are begun by their first part. It finds out about writes
// that the router has not seen.
TEST_F(RouterRangesTest, KnownRangesAreAskedAtOnceAndNoAnswerIsOld) {
  std::uint64_t rows = 4 * kRowsPerAppend;
  Create(StoreMessage(kStore, kKeyDim, kValueDim));
  Fill(static_cast<std::int64_t>(rows));
  const auto answered = [&](const std::string& method) {
    double sum = 0;
    for (const char* node : {"n1", "n2", "n3"}) sum += AnsweredAt(node, method);
    return sum;
  };
  v1::LookupRequest request = Request(1);
  v1::LookupResponse response;
  const auto look_up = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_THAT(LookUpAt(*router_, request, &response), IsGrpcOk());
      ASSERT_EQ(response.stats(0).counted_rows(), rows);
    }
  };
  // More than it takes until the router counts the store as one that does not change.
  constexpr int kMany = 10;
  for (const int ranges : {2, 3, 2}) {
    cluster_.Split(kStore, ranges);
    cluster_.AwaitEqual("n1");
    // A node that is silent for long, or behind, lets a lookup begin anew.
    double begun = 0, first = 0;
    do {
      look_up(kMany);
      begun = answered("BeginLookup");
      first = answered("AnswerFirstPart");
      look_up(kMany);
    } while (answered("BeginLookup") != begun && !HasFailure());
    EXPECT_GE(answered("AnswerFirstPart"), first + kMany) << ranges;

    request.set_linearizable(true);
    look_up(1);
    request.set_linearizable(false);
    EXPECT_GT(answered("BeginLookup"), begun) << ranges;
    begun = answered("BeginLookup");

    // Not through the router.
    v1::AppendRequest row;
    row.set_store(kStore);
    *row.mutable_keys() = Message(draw_.Normal(kKeyDim), kKeyDim);
    *row.mutable_values() = Message(draw_.Normal(kValueDim), kValueDim);
    v1::AppendResponse appended;
    ASSERT_THAT(Append(*node_, row, &appended), IsGrpcOk());
    v1::LookupRequest of_last_row = Request(1);  // Which each node has in RAM.
    of_last_row.mutable_filter()->set_last(1);
    of_last_row.set_min_revision(appended.revision());
    for (const char* node : {"n1", "n2", "n3"}) {
      ASSERT_THAT(LookUpAt(*StubOf(cluster_.node(node)), of_last_row, &response), IsGrpcOk());
    }
    ++rows;
    look_up(1);
    EXPECT_GT(answered("BeginLookup"), begun) << ranges;
    begun = answered("BeginLookup");
    look_up(1);
    EXPECT_GT(answered("BeginLookup"), begun) << ranges;
  }
}

TEST_F(RouterRangesTest, ARangeWhoseNodesAreGoneIsNamedAndComesBack) {
  constexpr std::int64_t kRows = 8 * kRowsPerAppend;
  Create(StoreMessage(kStore, kKeyDim, kValueDim));
  Fill(kRows);
  Split(3);  // Their nodes are n1, n2 and n3.
  const v1::LookupRequest all = Request(1);
  v1::LookupResponse response;
  // So often that the next one asks for the parts at once.
  for (int i = 0; i < 10; ++i) ASSERT_THAT(LookUpAt(*router_, all, &response), IsGrpcOk());
  cluster_.node("n3").Stop(SIGKILL);
  const grpc::Status lost = LookUpAt(*router_, all, &response);
  EXPECT_EQ(lost.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(lost.error_message(),
              HasSubstr(absl::StrCat("No node answers for the rows of store \"", kStore,
                                     "\" from position ")));
  EXPECT_THAT(lost.error_message(), HasSubstr("which n3 should"));
  // All else goes on.
  v1::LookupRequest others = all;
  others.mutable_filter()->set_end(100);
  ASSERT_THAT(LookUpAt(*router_, others, &response), IsGrpcOk());
  EXPECT_EQ(response.stats(0).counted_rows(), 100);
  v1::AppendRequest rows;
  rows.set_store(kStore);
  *rows.mutable_keys() = Message(draw_.Normal(kKeyDim), kKeyDim);
  *rows.mutable_values() = Message(draw_.Normal(kValueDim), kValueDim);
  EXPECT_THAT(Append(*router_, rows), IsGrpcOk());
  CallContext context;
  v1::ReadRowsRequest reading;
  reading.set_store(kStore);
  const auto reader = router_->ReadRows(&context, reading);
  std::int64_t count = 0;
  for (v1::ReadRowsResponse page; reader->Read(&page);) count += page.rows_size();
  EXPECT_THAT(reader->Finish(), IsGrpcOk());
  EXPECT_EQ(count, kRows + 1);

  // Another node loads the range from its own disk.
  Rebalance("n1,n2");
  ASSERT_THAT(LookUpAt(*router_, all, &response), IsGrpcOk());
  EXPECT_EQ(response.stats(0).counted_rows(), kRows + 1);
  cluster_.Restart("n3");
  Rebalance("n3");
  ASSERT_THAT(LookUpAt(*router_, all, &response), IsGrpcOk());
  EXPECT_EQ(response.stats(0).counted_rows(), kRows + 1);
}

TEST_F(RouterRangesTest, AStoreThatTakesTheNameOfACutOneIsAnsweredForAtOnce) {
  constexpr std::int64_t kRows = 2 * kRowsPerAppend;
  Create(StoreMessage(kStore, kKeyDim, kValueDim));
  Fill(kRows);
  Split(2);
  std::atomic<bool> ends = false;
  std::atomic<int> asked = 0;
  std::thread reader = StartReader(ends, asked, [](const v1::LookupResponse&) { return kRows; });
  for (int i = 0; i < 5; ++i) {
    v1::AppendRequest rows;
    rows.set_store("next");
    *rows.mutable_keys() = Message(std::vector<float>(kRows * kKeyDim, 0.5f), kKeyDim);
    *rows.mutable_values() = Message(std::vector<float>(kRows * kValueDim, 0.5f), kValueDim);
    Create(StoreMessage("next", kKeyDim, kValueDim));
    EXPECT_THAT(Append(*router_, rows), IsGrpcOk());
    if (i % 2 == 1) cluster_.Split("next", 2);
    CallContext context;
    v1::RenameStoreRequest rename;
    rename.set_store("next");
    rename.set_new_name(kStore);
    rename.set_replace(true);
    v1::RenameStoreResponse renamed;
    EXPECT_THAT(router_->RenameStore(&context, rename, &renamed), IsGrpcOk());
    const int reads = asked;
    EXPECT_TRUE(AwaitThat([&] { return asked >= reads + 20 || HasFailure(); }));
  }
  ends = true;
  reader.join();
}

TEST_F(RouterRangesTest, ClientsCannotAskForParts) {
  Create(StoreMessage(kStore, kKeyDim, kValueDim));
  for (const ServerProcess* server : {&cluster_.router(), &cluster_.node("n1")}) {
    const auto stub = cluster::v1::RangeService::NewStub(ChannelTo(*server));
    CallContext context;
    cluster::v1::AnswerPartRequest request;
    request.mutable_lookup()->set_store(kStore);
    cluster::v1::PartialLookup response;
    const grpc::Status status = stub->AnswerPart(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
    EXPECT_EQ(ReasonOf(status), "UNKNOWN_METHOD");
    CallContext first_context;
    EXPECT_EQ(ReasonOf(stub->AnswerFirstPart(&first_context, request, &response)),
              "UNKNOWN_METHOD");
  }
}

}  // namespace
}  // namespace softlookup::testing
