// Clients that name several servers.
#include "client/cpp/servers.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/impl/call.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "softlookup/client.h"
#include "tests/client/cpp/resuming_stream_fixture.h"
#include "tests/client/scripted_service.h"
#include "tests/testing/closed_port.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::ClosedPort;
using ::softlookup::testing::DetailedStatus;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::kGone;
using ::softlookup::testing::PatientOptions;
using ::softlookup::testing::ResumingAppendStreamTest;
using ::softlookup::testing::ScriptedService;
using ::softlookup::testing::StatusIs;
using ::testing::ElementsAre;

const grpc::Status kFollows =
    DetailedStatus(grpc::StatusCode::UNAVAILABLE, "n2 is the primary", "STORAGE_FAILED",
                   {{"written", "no"}, {"primary", "n2"}});

// A port that takes connections and never says a word, as a machine that hangs.
class SilentPort {
 public:
  SilentPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket_, 100), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~SilentPort() { close(socket_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  const std::string& address() const { return address_; }

 private:
  const int socket_;
  std::string address_;
};

// A server that counts its calls, and answers all of them with `result`.
class CountingServer {
 public:
  CountingServer() {
    service.get_store = [this](auto*, const v1::GetStoreRequest&, v1::Store* store) {
      store->set_name("s");
      return Count(&reads);
    };
    service.delete_store = [this](auto*, const v1::DeleteStoreRequest&, v1::DeleteStoreResponse*) {
      return Count(&writes);
    };
    service.read_rows = [this](auto*, const v1::ReadRowsRequest&, auto* stream) {
      stream->Write(v1::ReadRowsResponse());
      return Count(&reads);
    };
  }

  grpc::Status Count(std::atomic<int>* calls) {
    ++*calls;
    return result;
  }

  grpc::Status result;
  std::atomic<int> reads = 0;
  std::atomic<int> writes = 0;
  ScriptedService service;  // Last: its handlers use the above.
};

ClientOptions Options() {
  ClientOptions options = PatientOptions();
  options.retry.backoff_min = absl::Milliseconds(1);
  options.retry.backoff_max = absl::Milliseconds(1);
  return options;
}

template <typename... Servers>
Client ClientOf(const ClientOptions& options, const Servers&... servers) {
  std::string addresses;
  ((absl::StrAppend(&addresses, addresses.empty() ? "" : ",", servers.address())), ...);
  return *Client::Connect(addresses, options);
}

TEST(ServersTest, TheFirstServerThatIsNamedIsUsedAlone) {
  CountingServer a, b;
  Client client = ClientOf(Options(), a.service, b.service);
  for (int i = 0; i < 10; ++i) ASSERT_THAT(client.GetStore("s"), IsOk());
  EXPECT_THAT(client.DeleteStore("s"), IsOk());
  EXPECT_EQ(a.reads, 10);
  EXPECT_EQ(a.writes, 1);
  EXPECT_EQ(b.reads + b.writes, 0);
}

TEST(ServersTest, AServerThatIsDownIsPassedOverByReadsAndWritesOfOneAttempt) {
  const ClosedPort down;
  CountingServer up;
  ClientOptions once = Options();
  once.retry.attempts_max = 1;
  EXPECT_THAT(ClientOf(once, down, up.service).GetStore("s"), IsOk());
  EXPECT_THAT(ClientOf(once, down, up.service).DeleteStore("s"), IsOk());
  EXPECT_THAT(ClientOf(once, down, down, up.service)
                  .ReadRows("s", {}, [](const v1::ReadRowsResponse&) { return true; }),
              IsOk());
  EXPECT_EQ(up.reads, 2);
  EXPECT_EQ(up.writes, 1);
}

TEST(ServersTest, AServerThatTakesConnectionsAndSaysNothingIsPassedOver) {
  const SilentPort hangs;
  CountingServer up;
  Client client = ClientOf(Options(), hangs, up.service);
  EXPECT_THAT(client.DeleteStore("s"), IsOk());
  EXPECT_THAT(client.GetStore("s"), IsOk());
  EXPECT_EQ(up.reads + up.writes, 2);
}

// As every call of one server fails.
TEST(ServersTest, IfNoServerIsUpTheErrorSaysWhy) {
  const ClosedPort a, b;
  ClientOptions options = Options();
  options.retry.attempts_max = 3;
  Client client = ClientOf(options, a, b);
  EXPECT_THAT(client.GetStore("s"), StatusIs(absl::StatusCode::kUnavailable, "refused"));
  EXPECT_THAT(client.DeleteStore("s"), StatusIs(absl::StatusCode::kUnavailable, "refused"));
}

TEST(ServersTest, CallsGoOnAtTheNextServerWhenTheOneInUseStops) {
  CountingServer a, b, c;
  Client client = ClientOf(Options(), a.service, b.service, c.service);
  ASSERT_THAT(client.GetStore("s"), IsOk());
  a.service.Stop();
  for (int i = 0; i < 5; ++i) ASSERT_THAT(client.GetStore("s"), IsOk());
  ASSERT_THAT(client.DeleteStore("s"), IsOk());
  EXPECT_EQ(b.reads, 5);
  b.service.Stop();
  // A write can fail that begins before the client hears that the connection is gone.
  absl::Status written = client.DeleteStore("s");
  while (absl::IsUnavailable(written)) written = client.DeleteStore("s");
  ASSERT_THAT(written, IsOk());
  ASSERT_THAT(client.GetStore("s"), IsOk());
  EXPECT_EQ(a.reads, 1);
  EXPECT_EQ(b.writes, 1);
  EXPECT_EQ(c.reads, 1);
  EXPECT_EQ(c.writes, 1);
}

// A handler that ends so looks to the client as if the connection had broken.
TEST(ServersTest, OnlyWhatIsSafeToRepeatIsSentToTheNextServerWhenAConnectionBreaks) {
  CountingServer a, b;
  a.result = kGone;
  EXPECT_THAT(ClientOf(Options(), a.service, b.service).GetStore("s"), IsOk());
  EXPECT_EQ(b.reads, 1);
  Client client = ClientOf(Options(), a.service, b.service);
  EXPECT_THAT(client.DeleteStore("s"), StatusIs(absl::StatusCode::kUnavailable, "gone"));
  EXPECT_EQ(b.writes, 0);
  EXPECT_THAT(client.DeleteStore("s"), IsOk()) << "a new call";
  EXPECT_EQ(a.writes, 1);
  EXPECT_EQ(b.writes, 1);

  Client reader = ClientOf(Options(), a.service, b.service);
  const auto read = [&] {
    return reader.ReadRows("s", {}, [](const v1::ReadRowsResponse&) { return true; });
  };
  EXPECT_THAT(read(), StatusIs(absl::StatusCode::kUnavailable, "gone"));
  EXPECT_THAT(read(), IsOk());
}

TEST(ServersTest, AServerThatIsLoadingIsLeftAndNotComeBackTo) {
  CountingServer a, b;
  // Nobody waits for that long.
  a.result =
      DetailedStatus(grpc::StatusCode::UNAVAILABLE, "loading", "LOADING", {}, absl::Hours(1));
  Client client = ClientOf(Options(), a.service, b.service);
  for (int i = 0; i < 3; ++i) ASSERT_THAT(client.DeleteStore("s"), IsOk());
  EXPECT_EQ(a.writes, 1);
  EXPECT_EQ(b.writes, 3);
}

TEST(ServersTest, AServerThatAnswersWithAnErrorOfItsOwnIsNotLeft) {
  CountingServer a, b;
  a.result = DetailedStatus(grpc::StatusCode::NOT_FOUND, "none", "STORE_NOT_FOUND");
  Client client = ClientOf(Options(), a.service, b.service);
  EXPECT_TRUE(absl::IsNotFound(client.DeleteStore("s")));
  a.result = DetailedStatus(grpc::StatusCode::UNAVAILABLE, "disk full", "STORAGE_FAILED");
  EXPECT_TRUE(absl::IsUnavailable(client.DeleteStore("s")));
  EXPECT_EQ(a.writes, 2);
  EXPECT_EQ(b.writes, 0);
}

TEST(ServersTest, AWriteThatAFollowerRefusesFindsThePrimary) {
  CountingServer a, b, primary;
  a.result = b.result = kFollows;
  Client client = ClientOf(Options(), a.service, b.service, primary.service);
  for (int i = 0; i < 3; ++i) ASSERT_THAT(client.DeleteStore("s"), IsOk());
  EXPECT_EQ(a.writes, 1);
  EXPECT_EQ(b.writes, 1);
  EXPECT_EQ(primary.writes, 3);
}

TEST(ServersTest, AWriteThatAllRefuseIsTriedOnceAtEach) {
  CountingServer a, b, c;
  a.result = b.result = c.result = kFollows;
  Client client = ClientOf(Options(), a.service, b.service, c.service);
  EXPECT_THAT(client.DeleteStore("s"),
              StatusIs(absl::StatusCode::kUnavailable, "n2 is the primary"));
  EXPECT_EQ(a.writes, 1);
  EXPECT_EQ(b.writes, 1);
  EXPECT_EQ(c.writes, 1);

  ClientOptions options = Options();
  options.retry.attempts_max = 2;
  Client twice = ClientOf(options, a.service, b.service, c.service);
  EXPECT_TRUE(absl::IsUnavailable(twice.DeleteStore("s")));
  EXPECT_EQ(b.writes, 2);
  EXPECT_EQ(c.writes, 1);
}

TEST(ServersTest, AWriteThatMayHaveBeenMadeIsSentToNoOtherServer) {
  CountingServer a, b;
  for (const std::map<std::string, std::string>& metadata :
       {std::map<std::string, std::string>{{"written", "unknown"}, {"primary", "n2"}},
        {{"primary", "n2"}},
        {{"written", "no"}}}) {
    a.result = DetailedStatus(grpc::StatusCode::UNAVAILABLE, "?", "STORAGE_FAILED", metadata);
    Client client = ClientOf(Options(), a.service, b.service);
    EXPECT_THAT(client.DeleteStore("s"), StatusIs(absl::StatusCode::kUnavailable, "?"));
  }
  EXPECT_EQ(a.writes, 3);
  EXPECT_EQ(b.writes, 0);
}

TEST(ServersTest, AStreamWithoutAWriterBeginsAtTheNextServerOnceOneHasRefusedIt) {
  CountingServer a, b;
  a.service.stream_append = [](auto*, auto*) { return kFollows; };
  b.service.stream_append = [](auto*, ScriptedService::AppendServerStream* stream) {
    v1::AppendRequest request;
    while (stream->Read(&request)) stream->Write(v1::AppendResponse());
    return grpc::Status::OK;
  };
  Client client = ClientOf(Options(), a.service, b.service);
  const FloatMatrix row{.rows = 1, .cols = 1, .data = {1}};
  const auto append = [&] {
    AppendStream stream = *client.OpenAppendStream("s");
    stream.Append(row, row).IgnoreError();
    return stream.Finish();
  };
  EXPECT_THAT(append(), StatusIs(absl::StatusCode::kUnavailable, "n2 is the primary"));
  EXPECT_THAT(append(), IsOk());
}

// Two servers of a group, which have one log. The stream begins at `service_`.
class SeveralServersStreamTest : public ResumingAppendStreamTest {
 protected:
  SeveralServersStreamTest() {
    other_.get_writer = service_.get_writer;
    other_.stream_append = [this](grpc::ServerContext* context, ServerStream* stream) {
      ++others_streams_;
      return Serve(context, stream);
    };
  }
  ~SeveralServersStreamTest() override { other_.Stop(); }

  absl::StatusOr<AppendSummary> RunAtBoth(int requests, AppendStreamOptions options = {}) {
    options.writer = "w";
    Client client = ClientOf(client_options_, service_, other_);
    absl::StatusOr<AppendStream> stream = client.OpenAppendStream("people", options);
    if (!stream.ok()) return stream.status();
    for (int i = 0; i < requests; ++i) stream->Append(Rows(2), Rows(2)).IgnoreError();
    return stream->Finish();
  }

  std::atomic<int> others_streams_ = 0;
  ScriptedService other_;
};

TEST_F(SeveralServersStreamTest, AStreamWhoseConnectionBreaksGoesOnAtTheNextServer) {
  {
    absl::MutexLock lock(&mutex_);
    connections_ = {{.applied = 3, .acknowledged = 1, .end = kGone}};
  }
  const auto summary = RunAtBoth(5);
  ASSERT_THAT(summary, IsOk());
  EXPECT_EQ(summary->acknowledged_rows, 10u);
  EXPECT_EQ(summary->reconnections, 1u);
  EXPECT_EQ(others_streams_, 1);
  absl::MutexLock lock(&mutex_);
  EXPECT_THAT(applied_, ElementsAre(2, 4, 6, 8, 10));
}

TEST_F(SeveralServersStreamTest, AStreamThatAFollowerRefusesGoesToThePrimary) {
  service_.stream_append = [](auto*, auto*) { return kFollows; };
  const auto summary = RunAtBoth(5);
  ASSERT_THAT(summary, IsOk());
  EXPECT_EQ(summary->acknowledged_rows, 10u);
  EXPECT_EQ(others_streams_, 1);
  absl::MutexLock lock(&mutex_);
  EXPECT_THAT(applied_, ElementsAre(2, 4, 6, 8, 10));
}

// The stream waits for a server, and Cancel() ends that.
TEST_F(SeveralServersStreamTest, AStreamWithoutAServerIsCancelled) {
  absl::Notification outage;
  std::atomic<bool> is_told = false;
  Client client = ClientOf(client_options_, service_, other_);
  AppendStream stream = *client.OpenAppendStream(
      "people", {.writer = "w", .outage_max = absl::Hours(1), .on_progress = [&](const auto& now) {
                   if (!now.outage.ok() && !is_told.exchange(true)) outage.Notify();
                 }});
  service_.Stop();
  other_.Stop();
  ASSERT_THAT(stream.Append(Rows(2), Rows(2)), IsOk());
  outage.WaitForNotification();
  stream.Cancel();
  EXPECT_TRUE(absl::IsCancelled(stream.Finish().status()));
}

// A channel that stays as it is. Counts how often it was asked to connect.
class FixedChannel : public grpc::ChannelInterface {
 public:
  explicit FixedChannel(grpc_connectivity_state state) : state_(state) {}

  grpc_connectivity_state GetState(bool try_to_connect) override {
    asked += try_to_connect;
    return state_;
  }

  int asked = 0;

 private:
  grpc::internal::Call CreateCall(const grpc::internal::RpcMethod&, grpc::ClientContext*,
                                  grpc::CompletionQueue*) override {
    return {};
  }
  void PerformOpsOnCall(grpc::internal::CallOpSetInterface*, grpc::internal::Call*) override {}
  void* RegisterMethod(const char*) override { return nullptr; }
  void NotifyOnStateChangeImpl(grpc_connectivity_state, gpr_timespec, grpc::CompletionQueue*,
                               void*) override {}
  bool WaitForStateChangeImpl(grpc_connectivity_state, gpr_timespec) override { return false; }

  const grpc_connectivity_state state_;
};

TEST(ServersTest, OnceAServerIsFoundNoOtherIsAskedBeforeIt) {
  const auto failed = std::make_shared<FixedChannel>(GRPC_CHANNEL_TRANSIENT_FAILURE);
  const auto ready = std::make_shared<FixedChannel>(GRPC_CHANNEL_READY);
  client_internal::Servers servers({failed, ready});
  EXPECT_EQ(servers.Connect(absl::InfiniteFuture()).channel, ready);
  const int asked = failed->asked;
  EXPECT_GT(asked, 0);
  EXPECT_EQ(servers.Connect(absl::InfiniteFuture()).channel, ready);
  EXPECT_EQ(failed->asked, asked);
}

// One server is asked nothing before a call, as if there were no list.
TEST(ServersTest, OneServerIsNotLookedAt) {
  const auto failed = std::make_shared<FixedChannel>(GRPC_CHANNEL_TRANSIENT_FAILURE);
  client_internal::Servers servers({failed});
  const client_internal::Server& server = servers.Connect(absl::InfiniteFuture());
  servers.NoteFailure(server, absl::UnavailableError("gone"));
  EXPECT_EQ(&servers.Connect(absl::InfiniteFuture()), &server);
  EXPECT_EQ(failed->asked, 0);
}

TEST(ServersTest, EveryAddressOfAListIsChecked) {
  const auto check = [](const std::string& addresses) {
    return Client::Connect(addresses).status();
  };
  EXPECT_THAT(check("a:1,b:2"), IsOk());
  EXPECT_THAT(check("[::1]:1,dns:///b:2"), IsOk());
  EXPECT_THAT(check("a"), StatusIs(absl::StatusCode::kInvalidArgument,
                                   "the server address \"a\": the port is missing; an address is"));
  EXPECT_THAT(check("a:1,,b:2"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the server address \"\" in \"a:1,,b:2\": it is empty; an address is"));
  for (const char* bad : {"a:1,", ",a:1", ",", "a:1, b:2", "a:1,b", "a:1;b:2"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(check(bad))) << bad;
  }
  // One name of gRPC, which has commas.
  EXPECT_THAT(check("unix:/run/a,b"), IsOk());
  EXPECT_THAT(check("ipv4:10.0.0.1:7471,10.0.0.2:7471"), IsOk());
}

}  // namespace
}  // namespace softlookup
