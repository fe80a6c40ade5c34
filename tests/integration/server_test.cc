// The server as a foreign client meets it: bare gRPC messages, HTTP and signals.
#include <grpcpp/generic/generic_stub.h>
#include <httplib.h>
#include <signal.h>

#include <atomic>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/integration_test.h"
#include "tests/integration/scrape.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

class ServerTest : public IntegrationTest {};

TEST_F(ServerTest, AStreamAnswersInOrderAndReportsFailuresInPlace) {
  Create("s", 2, 1);
  ASSERT_TRUE(Append(TwoRows()).ok());
  CallContext context;
  const auto stream = stub_->StreamLookup(&context);
  constexpr int kCount = 200;
  std::jthread sender([&] {
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
    ASSERT_EQ(response.has_error(), i % 7 == 3) << response.error().message();
    if (response.has_error()) {
      ASSERT_EQ(response.error().code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
      ASSERT_THAT(response.error().message(), ::testing::HasSubstr("options.temperature"));
      ASSERT_EQ(response.error().details_size(), 1);
      google::rpc::ErrorInfo info;
      ASSERT_TRUE(response.error().details(0).UnpackTo(&info));
      ASSERT_EQ(info.reason(), "INVALID_OPTION");
    } else {
      ASSERT_EQ(response.values().rows(), i % 3 == 0 ? 1000u : 1u);
    }
  }
  EXPECT_FALSE(stream->Read(&response));
  sender.join();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ServerTest, WithoutAnAuthFileNobodyIsAskedWhoTheyAre) {
  Create("s", 2, 1);
  CallContext context;
  context.AddMetadata("authorization", "Basic no token");
  v1::GetStoreRequest request;
  request.set_name("s");
  v1::Store store;
  EXPECT_TRUE(stub_->GetStore(&context, request, &store).ok());
}

TEST_F(ServerTest, AFailingAppendEndsItsStreamAfterTheResponsesBeforeIt) {
  Create("s", 2, 1);
  CallContext context;
  const auto stream = stub_->StreamAppend(&context);
  for (int i = 0; i < 20; ++i) {
    v1::AppendRequest request = TwoRows();
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
    append_stream->Write(TwoRows());
    lookups.TryCancel();
    appends.TryCancel();
  }
  EXPECT_THAT(client_.Lookup("s", Rows(rows, 64, 0, 1)), IsOk());
  EXPECT_EQ(server_.Stop(SIGTERM), 0);
}

TEST_F(ServerTest, SaysThatItServesOverGrpcAndHttp) {
  EXPECT_EQ(*client_.Health(), ServingStatus::kServing);
  EXPECT_EQ(*client_.Health("softlookup.v1.SoftLookup"), ServingStatus::kServing);
  EXPECT_EQ(RunCommand({ToolBinary(), "--server", server_.grpc_address(), "health"}).exit_code, 0);
  httplib::Client http("http://" + server_.http_address());
  for (const char* path : {"/healthz", "/readyz"}) {
    const httplib::Result answer = http.Get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 200) << path;
  }
}

// A call of the server's Health/Watch, which sends bytes as they are.
class HealthWatchCall {
 public:
  HealthWatchCall(const std::string& address, const std::string& request)
      : stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        call_(stub_.PrepareCall(&context_, "/grpc.health.v1.Health/Watch", &events_)) {
    call_->StartCall(nullptr);
    EXPECT_TRUE(Await());
    const grpc::Slice slice(request);  // A buffer without slices would be no message.
    call_->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    EXPECT_TRUE(Await());
  }
  ~HealthWatchCall() { events_.Shutdown(); }

  // Returns the next answer's bytes, or nothing if the call is over. The answer has one field, the
  // status. SERVING is 1.
  std::optional<std::string> Next() {
    grpc::ByteBuffer message;
    call_->Read(&message, nullptr);
    if (!Await()) return std::nullopt;
    grpc::Slice slice;
    EXPECT_TRUE(message.DumpToSingleSlice(&slice).ok());
    return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  void Cancel() { context_.TryCancel(); }
  grpc::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    EXPECT_TRUE(Await());
    return status;
  }

 private:
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    return events_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  CallContext context_;
  grpc::CompletionQueue events_;
  const std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

// A worker parses it, and not the thread that many calls share.
TEST_F(ServerTest, AWatchMayBeginWithALongMessage) {
  // `service` is field 1. The length 2^21 has 4 bytes as a varint.
  HealthWatchCall watch(server_.grpc_address(), "\x0a\x80\x80\x80\x01" + std::string(1 << 21, 's'));
  EXPECT_EQ(watch.Next(), "\x08\x03");  // SERVICE_UNKNOWN.
  watch.Cancel();
  EXPECT_EQ(watch.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ServerTest, AWatchOfItsHealthTellsEachStatusOnce) {
  HealthWatchCall watch(server_.grpc_address(), "");
  std::optional<std::string> before = watch.Next();
  EXPECT_EQ(before, "\x08\x01");
  std::thread stopping([&] { EXPECT_EQ(server_.Stop(SIGTERM), 0); });
  while (const std::optional<std::string> status = watch.Next()) {
    EXPECT_NE(status, before);
    if (status == before) watch.Cancel();  // Else the server would not come to its end.
    before = status;
  }
  watch.Finish();
  stopping.join();
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
  EXPECT_EQ(server_.Stop(SIGTERM), 0);
  readers.join();
  for (const grpc::Status& status : {lookup_stream->Finish(), append_stream->Finish()}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(InfoOf(status).reason(), "SHUTTING_DOWN");
  }
}

// The server knows nothing of such a call but its name, and must forget that, too.
TEST_F(ServerTest, AnUnknownMethodIsRefusedAndHoldsUpNoStop) {
  const auto channel =
      grpc::CreateChannel(server_.grpc_address(), grpc::InsecureChannelCredentials());
  const grpc::Status status = CallRaw(channel, "/softlookup.v1.SoftLookup/Dream", "", "").status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(ReasonOf(status), "UNKNOWN_METHOD");
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("/softlookup.v1.SoftLookup/Dream"));
  EXPECT_EQ(server_.Stop(SIGTERM), 0);
}

class SignalTest : public ::testing::TestWithParam<int> {};

TEST_P(SignalTest, LetsRunningCallsEndAndExitsWithZero) {
  struct Lookup {
    v1::LookupResponse response;
    grpc::Status status;
    std::jthread call;
  };
  ServerProcess server;
  Client client = *Client::Connect(server.grpc_address(), PatientOptions());
  ASSERT_THAT(client.CreateStore(StoreMessage("s", 128, 128)), IsOk());
  const std::vector<float> rows = NormalFloats(60'000 * 128, 1);
  ASSERT_THAT(client.Append("s", View(rows, 128), View(rows, 128)), IsOk());
  const auto stub = v1::SoftLookup::NewStub(
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials()));
  v1::LookupRequest request;
  request.set_store("s");
  *request.mutable_queries() =
      Message(std::vector<float>(rows.begin(), rows.begin() + 64 * 128), 128);

  // One lookup takes some 50 ms. The server has accepted each that waits for the pass before it;
  // of others it may not know yet.
  std::atomic<int> ended = 0;
  std::deque<Lookup> lookups;
  int ended_before = 0, waiting = 0;
  EXPECT_TRUE(AwaitThat([&] {
    Lookup& lookup = lookups.emplace_back();
    lookup.call = std::jthread([&] {
      CallContext context;
      lookup.status = stub->Lookup(&context, request, &lookup.response);
      ++ended;
    });
    ended_before = ended;
    waiting = static_cast<int>(MetricOf(server, "softlookup_waiting_lookups"));
    return waiting > 0;
  }));
  EXPECT_EQ(server.Stop(GetParam()), 0);
  int answered = 0;
  for (Lookup& lookup : lookups) {
    lookup.call.join();
    if (lookup.status.ok()) {
      ++answered;
      EXPECT_EQ(lookup.response.values().rows(), 64u);
    }  // Else the server had not accepted it. How it is refused then depends on when it comes.
  }
  EXPECT_GE(answered, ended_before + waiting);
}

INSTANTIATE_TEST_SUITE_P(StopSignals, SignalTest, ::testing::Values(SIGTERM, SIGINT));

TEST(StartTest, ATakenPortIsAClearError) {
  const ServerProcess server;
  const CommandResult second = RunCommand({ServerBinary(), "--ephemeral", "--listen",
                                           server.grpc_address(), "--http-listen", "127.0.0.1:0"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err,
              ::testing::HasSubstr("--listen: cannot listen on " + server.grpc_address() +
                                   " for gRPC: Address already in use"));
}

}  // namespace
}  // namespace softlookup::testing
