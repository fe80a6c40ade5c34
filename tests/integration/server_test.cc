// The server as a foreign client meets it: bare gRPC messages, HTTP and signals.
#include <signal.h>

#include <cmath>
#include <thread>

#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

// The ErrorInfo in a failed call's trailer; an empty one if it is missing or unreadable.
google::rpc::ErrorInfo InfoOf(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (details.ParseFromString(status.error_details()) && details.details_size() > 0 &&
      details.code() == status.error_code()) {
    details.details(0).UnpackTo(&info);
  }
  return info;
}

class ServerTest : public IntegrationTest {
 protected:
  grpc::Status Append(const v1::AppendRequest& request) {
    grpc::ClientContext context;
    v1::AppendResponse response;
    return stub_->Append(&context, request, &response);
  }
  grpc::Status Lookup(const v1::LookupRequest& request, v1::LookupResponse* response) {
    grpc::ClientContext context;
    return stub_->Lookup(&context, request, response);
  }

  v1::AppendRequest GoodAppend() {
    v1::AppendRequest request;
    request.set_store("s");
    *request.mutable_keys() = Message({1, 2, 3, 4}, 2);
    *request.mutable_values() = Message({5, 6}, 1);
    return request;
  }
};

TEST_F(ServerTest, BadAppendsAreRefusedByFieldStoreNothingAndHurtNobody) {
  Create("s", 2, 1);
  struct Bad {
    std::string what;
    std::string message;
    std::string reason;
    std::function<void(v1::AppendRequest&)> spoil;
    grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
  };
  const std::vector<Bad> all = {
      {"both encodings", "keys: data and values are both set", "INVALID_MATRIX",
       [](auto& r) { r.mutable_keys()->add_values(1); }},
      {"neither encoding", "values: neither data nor values is set", "INVALID_MATRIX",
       [](auto& r) { r.mutable_values()->clear_data(); }},
      {"a byte short", "keys: data has 15 bytes", "INVALID_MATRIX",
       [](auto& r) { r.mutable_keys()->mutable_data()->resize(15); }},
      {"huge shape", "keys: data has 16 bytes", "INVALID_MATRIX",
       [](auto& r) {
         r.mutable_keys()->set_rows(~0u);
         r.mutable_keys()->set_cols(~0u);
       }},
      {"NaN", "values: row 1, column 0 is NaN", "NON_FINITE_VALUE",
       [](auto& r) {
         *r.mutable_values() = Message({5, NAN}, 1);
       }},
      {"infinity", "keys: row 0, column 1 is infinite", "NON_FINITE_VALUE",
       [](auto& r) {
         *r.mutable_keys() = Message({1, INFINITY, 3, 4}, 2);
       }},
      {"no rows", "keys: an append has at least one row", "SHAPE_MISMATCH",
       [](auto& r) {
         *r.mutable_keys() = Message({}, 2);
         *r.mutable_values() = Message({}, 1);
       }},
      {"row counts differ", "values: 1 rows, but keys has 2", "SHAPE_MISMATCH",
       [](auto& r) { *r.mutable_values() = Message({5}, 1); }},
      {"wrong dimension", "keys: 4 columns", "SHAPE_MISMATCH",
       [](auto& r) {
         *r.mutable_keys() = Message({1, 2, 3, 4}, 4);
         *r.mutable_values() = Message({5}, 1);
       }},
      {"bad name", "store: a store's name", "INVALID_NAME", [](auto& r) { r.set_store("../x"); }},
      {"unknown store", "There is no store \"t\"", "STORE_NOT_FOUND",
       [](auto& r) { r.set_store("t"); }, grpc::StatusCode::NOT_FOUND},
      {"unknown memory", "no memory \"m\"", "MEMORY_NOT_FOUND",
       [](auto& r) { r.add_return_memories("m"); }, grpc::StatusCode::NOT_FOUND},
      {"inputs", "inputs: the store has no projection", "NO_PROJECTION",
       [](auto& r) {
         r.clear_keys();
         r.clear_values();
         *r.mutable_inputs() = Message({1}, 1);
       },
       grpc::StatusCode::FAILED_PRECONDITION},
      {"too many rows", "65537 rows are over the limit of 65536", "LIMIT_EXCEEDED",
       [](auto& r) {
         *r.mutable_keys() = Message(std::vector<float>(2 * 65537), 2);
         *r.mutable_values() = Message(std::vector<float>(65537), 1);
       }},
      {"too large a message", "the limit is 67108864", "MESSAGE_TOO_LARGE",
       [](auto& r) { r.mutable_keys()->mutable_data()->resize(65 << 20); },
       grpc::StatusCode::RESOURCE_EXHAUSTED},
  };
  for (const Bad& bad : all) {
    SCOPED_TRACE(bad.what);
    v1::AppendRequest request = GoodAppend();
    bad.spoil(request);
    const grpc::Status status = Append(request);
    EXPECT_EQ(status.error_code(), bad.code);
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr(bad.message));
    EXPECT_EQ(InfoOf(status).reason(), bad.reason);
    EXPECT_EQ(InfoOf(status).domain(), "softlookup");
    const auto store = client_.GetStore("s");
    ASSERT_THAT(store, IsOk());
    EXPECT_EQ(store->row_count(), 0u);
    EXPECT_EQ(store->revision(), 1u);
  }
  EXPECT_TRUE(Append(GoodAppend()).ok());
  EXPECT_EQ(client_.GetStore("s")->row_count(), 2u);
}

TEST_F(ServerTest, ALookupInNumbersIsAnsweredInNumbers) {
  Create("s", 2, 1);
  ASSERT_TRUE(Append(GoodAppend()).ok());
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

TEST_F(ServerTest, WeightsOverTheMessageLimitSayWhatTheyNeed) {
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

TEST_F(ServerTest, WaitingForARevisionEndsAtTheDeadline) {
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
  const absl::Time start = absl::Now();
  EXPECT_EQ(server_.Stop(SIGTERM), 0);
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST_F(ServerTest, AStreamAnswersInOrderAndReportsFailuresInPlace) {
  Create("s", 2, 1);
  ASSERT_TRUE(Append(GoodAppend()).ok());
  grpc::ClientContext context;
  const auto stream = stub_->StreamLookup(&context);
  constexpr int kCount = 200;
  std::thread sender([&] {
    for (int i = 0; i < kCount; ++i) {
      v1::LookupRequest request;
      if (i == 0) request.set_store("s");
      // Long ones and short ones, so that they would overtake each other.
      *request.mutable_queries() = Message(std::vector<float>(i % 3 == 0 ? 2000 : 2, 1.0f), 2);
      if (i % 7 == 3) request.mutable_options()->set_temperature(-1);
      request.set_tag(i);
      ASSERT_TRUE(stream->Write(request));
    }
    stream->WritesDone();
  });
  v1::LookupResponse response;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_EQ(response.tag(), static_cast<std::uint64_t>(i));
    ASSERT_EQ(response.has_error(), i % 7 == 3);
    if (response.has_error()) {
      ASSERT_EQ(response.error().code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
      ASSERT_THAT(response.error().message(), ::testing::HasSubstr("options.temperature"));
      ASSERT_EQ(response.error().details_size(), 1);
    } else {
      ASSERT_EQ(response.values().rows(), i % 3 == 0 ? 1000u : 1u);
    }
  }
  EXPECT_FALSE(stream->Read(&response));
  sender.join();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ServerTest, AFailingAppendEndsItsStreamAfterTheResponsesBeforeIt) {
  Create("s", 2, 1);
  grpc::ClientContext context;
  const auto stream = stub_->StreamAppend(&context);
  for (int i = 0; i < 20; ++i) {
    v1::AppendRequest request = GoodAppend();
    if (i > 0) request.clear_store();
    if (i == 10) *request.mutable_values() = Message({5, NAN}, 1);
    if (!stream->Write(request)) break;
  }
  stream->WritesDone();
  v1::AppendResponse response;
  int responses = 0;
  while (stream->Read(&response)) {
    EXPECT_EQ(response.first_position(), 2u * responses);
    ++responses;
  }
  EXPECT_EQ(responses, 10);
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(InfoOf(status).reason(), "NON_FINITE_VALUE");
  EXPECT_EQ(client_.GetStore("s")->row_count(), 20u);
}

TEST_F(ServerTest, StreamsThatVanishLeaveTheServerWell) {
  Create("s", 64, 64);
  const std::vector<float> rows = NormalFloats(20'000 * 64, 1);
  ASSERT_THAT(client_.Append("s", View(rows, 64), View(rows, 64)), IsOk());
  for (int round = 0; round < 20; ++round) {
    grpc::ClientContext lookups, appends;
    const auto lookup_stream = stub_->StreamLookup(&lookups);
    const auto append_stream = stub_->StreamAppend(&appends);
    v1::LookupRequest lookup;
    lookup.set_store("s");
    *lookup.mutable_queries() = Message(std::vector<float>(rows.begin(), rows.begin() + 640), 64);
    for (int i = 0; i < round; ++i) lookup_stream->Write(lookup);
    append_stream->Write(GoodAppend());
    lookups.TryCancel();
    appends.TryCancel();
  }
  EXPECT_THAT(client_.Lookup("s", Rows(rows, 64, 0, 1)), IsOk());
  EXPECT_EQ(server_.Stop(SIGTERM), 0);
}

TEST_F(ServerTest, ListsStoresInPages) {
  for (int i = 0; i < 25; ++i) Create("p/" + std::to_string(100 + i), 1, 1);
  Create("other", 1, 1);
  v1::ListStoresRequest request;
  request.set_prefix("p/");
  request.set_page_size(10);
  std::vector<std::string> names;
  do {
    grpc::ClientContext context;
    v1::ListStoresResponse response;
    ASSERT_TRUE(stub_->ListStores(&context, request, &response).ok());
    EXPECT_LE(response.stores_size(), 10);
    for (const v1::Store& store : response.stores()) names.push_back(store.name());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  ASSERT_EQ(names.size(), 25u);
  EXPECT_EQ(names.front(), "p/100");
  EXPECT_EQ(names.back(), "p/124");
  request.set_page_token("q/1");
  grpc::ClientContext context;
  v1::ListStoresResponse response;
  EXPECT_EQ(stub_->ListStores(&context, request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerTest, UpdatesOnlyWhatTheMaskNames) {
  Create("s", 2, 1);
  v1::Store store;
  store.set_name("s");
  store.set_score(v1::SCORE_COSINE);
  store.set_temperature(0.5);
  (*store.mutable_labels())["team"] = "search";
  const auto updated = client_.UpdateStore(store, {"temperature", "labels"});
  ASSERT_THAT(updated, IsOk());
  EXPECT_EQ(updated->temperature(), 0.5);
  EXPECT_EQ(updated->score(), v1::SCORE_SCALED_DOT);
  EXPECT_EQ(updated->labels().at("team"), "search");
  EXPECT_EQ(updated->revision(), 2u);
  EXPECT_THAT(client_.UpdateStore(store, {"key_dim"}),
              StatusIs(absl::StatusCode::kInvalidArgument, "\"key_dim\" cannot change"));
  EXPECT_THAT(client_.UpdateStore(store, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, "update_mask"));
}

TEST_F(ServerTest, SaysThatItServesOverGrpcAndHttp) {
  EXPECT_EQ(*client_.Health(), ServingStatus::kServing);
  EXPECT_EQ(*client_.Health("softlookup.v1.SoftLookup"), ServingStatus::kServing);
  EXPECT_EQ(RunCommand({ToolBinary(), "--server", server_.grpc_address(), "health"}).exit_code, 0);
}

TEST_F(ServerTest, IdleStreamsHearThatTheServerStops) {
  grpc::ClientContext lookups, appends;
  const auto lookup_stream = stub_->StreamLookup(&lookups);
  const auto append_stream = stub_->StreamAppend(&appends);
  Create("s", 2, 1);  // A round trip behind both.
  std::thread readers([&] {
    v1::LookupResponse lookup;
    v1::AppendResponse append;
    EXPECT_FALSE(lookup_stream->Read(&lookup));
    EXPECT_FALSE(append_stream->Read(&append));
  });
  const absl::Time start = absl::Now();
  EXPECT_EQ(server_.Stop(SIGTERM), 0);
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  readers.join();
  for (const grpc::Status& status : {lookup_stream->Finish(), append_stream->Finish()}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(InfoOf(status).reason(), "SHUTTING_DOWN");
  }
}

class SignalTest : public ::testing::TestWithParam<int> {};

TEST_P(SignalTest, LetsRunningCallsEndAndExitsWithZero) {
  ServerProcess server;
  Client client = *Client::Connect(server.grpc_address());
  v1::Store store;
  store.set_name("s");
  store.set_key_dim(128);
  store.set_value_dim(128);
  ASSERT_THAT(client.CreateStore(store), IsOk());
  const std::vector<float> rows = NormalFloats(60'000 * 128, 1);
  ASSERT_THAT(client.Append("s", View(rows, 128), View(rows, 128)), IsOk());
  const auto stub = v1::SoftLookup::NewStub(
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials()));
  // A lookup of some 50 ms, and a call behind it on the same connection: when that one is answered,
  // the lookup has reached the server.
  grpc::CompletionQueue queue;
  grpc::ClientContext context, behind_context;
  v1::LookupRequest request;
  request.set_store("s");
  *request.mutable_queries() =
      Message(std::vector<float>(rows.begin(), rows.begin() + 64 * 128), 128);
  const auto call = stub->AsyncLookup(&context, request, &queue);
  v1::LookupResponse response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  v1::GetStoreRequest behind;
  behind.set_name("s");
  ASSERT_TRUE(stub->GetStore(&behind_context, behind, &store).ok());

  std::thread waiter([&] {
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
  });
  EXPECT_EQ(server.Stop(GetParam()), 0);
  waiter.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.values().rows(), 64u);
}

INSTANTIATE_TEST_SUITE_P(StopSignals, SignalTest, ::testing::Values(SIGTERM, SIGINT));

TEST(StartTest, ATakenPortIsAClearError) {
  const ServerProcess server;
  const CommandResult second = RunCommand({ServerBinary(), "--ephemeral", "--listen",
                                           server.grpc_address(), "--http-listen", "127.0.0.1:0"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, ::testing::HasSubstr("cannot listen on " + server.grpc_address()));
}

}  // namespace
}  // namespace softlookup::testing
