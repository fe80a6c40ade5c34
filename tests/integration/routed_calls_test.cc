// The port of nodes answers a router as the port of clients answers the identity that the router
// names. A client that sends a router's metadata itself gains nothing. With the real server and a
// real etcd.
#include <signal.h>
#include <sys/wait.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/ranges/ranges.grpc.pb.h"
#include "softlookup/admin/v1/admin.grpc.pb.h"
#include "tests/integration/integration_test.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

using Metadata = std::vector<std::pair<std::string, std::string>>;

std::string MetadataOf(const grpc::Status& status, const std::string& key) {
  const google::rpc::ErrorInfo info = InfoOf(status);
  const auto found = info.metadata().find(key);
  return found == info.metadata().end() ? "" : found->second;
}

// Calls on one channel, each with metadata of its own.
class Caller {
 public:
  explicit Caller(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {}

  std::unique_ptr<v1::SoftLookup::Stub> Stub() const { return v1::SoftLookup::NewStub(channel_); }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  grpc::Status CreateStore(const std::string& name, const Metadata& metadata = {}) const {
    v1::CreateStoreRequest request;
    *request.mutable_store() = StoreMessage(name, 1, 1);
    v1::Store response;
    return Call(&v1::SoftLookup::Stub::CreateStore, request, &response, metadata);
  }
  grpc::Status ListStores(const Metadata& metadata = {}) const {
    v1::ListStoresResponse response;
    return Call(&v1::SoftLookup::Stub::ListStores, v1::ListStoresRequest(), &response, metadata);
  }
  // Looks up in the store "s", as of `revision` or later.
  grpc::Status Lookup(std::uint64_t revision, const Metadata& metadata = {}) const {
    v1::LookupResponse response;
    return Call(&v1::SoftLookup::Stub::Lookup, LookupOf(revision), &response, metadata);
  }
  static v1::LookupRequest LookupOf(std::uint64_t revision) {
    v1::LookupRequest request;
    request.set_store("s");
    request.set_min_revision(revision);
    *request.mutable_queries() = Message({1}, 1);
    return request;
  }
  // Asks for the part of LookupOf() over all rows, as of `revision`: with `begins`, as the first
  // part of the lookup.
  grpc::Status AnswerPart(bool begins, std::uint64_t revision,
                          const Metadata& metadata = {}) const {
    const auto stub = cluster::v1::RangeService::NewStub(channel_);
    CallContext context;
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    cluster::v1::AnswerPartRequest request;
    *request.mutable_lookup() = LookupOf(0);
    request.mutable_part()->set_revision(revision);
    cluster::v1::PartialLookup response;
    return begins ? stub->AnswerFirstPart(&context, request, &response)
                  : stub->AnswerPart(&context, request, &response);
  }
  // As IntegrationTest::Call().
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (v1::SoftLookup::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&, Response*),
                    const Request& request, Response* response, const Metadata& metadata) const {
    CallContext context;
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    return (Stub().get()->*method)(&context, request, response);
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
};

Metadata As(const std::string& identity) { return {{"identity", identity}}; }

class RoutedCallsTest : public ::testing::Test {
 protected:
  // Starts the node "n", the only one of its group.
  void Start(std::vector<std::string> more = {}) {
    std::vector<std::string> flags = {
        "--data-dir",  Path("data"), "--cluster-etcd",   etcd_.endpoints()[0],
        "--cluster",   "c",          "--group",          "g",
        "--node",      "n",          "--cluster-listen", "127.0.0.1:0",
        "--log-level", "info",       "--log-format",     "json"};
    flags.insert(flags.end(), more.begin(), more.end());
    server_ = std::make_unique<ServerProcess>(flags, Path("log"));
    const std::string log = Contents(Path("log"));
    const std::string before = "cluster on ";
    const std::size_t begin = log.rfind(before) + before.size();
    peer_address_ = log.substr(begin, log.find(';', begin) - begin);
  }
  // One connection of a router.
  Caller Router(const std::shared_ptr<grpc::ChannelCredentials>& credentials =
                    grpc::InsecureChannelCredentials()) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxSendMessageSize(-1);
    return Caller(grpc::CreateCustomChannel(peer_address_, credentials, arguments));
  }
  Caller ClientOf() const {
    return Caller(grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials()));
  }
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }

  const TemporaryDirectory directory_;
  EtcdMembers etcd_{1};
  std::unique_ptr<ServerProcess> server_;
  std::string peer_address_;
};

TEST_F(RoutedCallsTest, EveryMethodIsServed) {
  Start();
  const Caller router = Router();
  ASSERT_THAT(router.CreateStore("s"), IsGrpcOk());
  v1::AppendRequest append;
  append.set_store("s");
  *append.mutable_keys() = Message({1}, 1);
  *append.mutable_values() = Message({5}, 1);
  v1::AppendResponse appended;
  ASSERT_THAT(router.Call(&v1::SoftLookup::Stub::Append, append, &appended, {}), IsGrpcOk());
  v1::LookupResponse found;
  ASSERT_THAT(router.Call(&v1::SoftLookup::Stub::Lookup, Caller::LookupOf(0), &found, {}),
              IsGrpcOk());
  EXPECT_EQ(Floats(found.values())[0], 5);

  CallContext context;
  const auto stream = router.Stub()->StreamLookup(&context);
  ASSERT_TRUE(stream->Write(Caller::LookupOf(0)));
  ASSERT_TRUE(stream->Read(&found));
  EXPECT_EQ(Floats(found.values())[0], 5);
  stream->WritesDone();
  EXPECT_THAT(stream->Finish(), IsGrpcOk());

  CallContext group_context;
  admin::v1::Group group;
  EXPECT_THAT(admin::v1::Admin::NewStub(router.channel())
                  ->GetGroup(&group_context, admin::v1::GetGroupRequest(), &group),
              IsGrpcOk());
  EXPECT_EQ(group.primary(), "n");
  EXPECT_EQ(ReasonOf(CallRaw(router.channel(), "/a/b", "", "").status), "UNKNOWN_METHOD");
  // Both ports show the same stores.
  EXPECT_THAT(ClientOf().Lookup(2), IsGrpcOk());
}

TEST_F(RoutedCallsTest, AMessageMayBeAsLargeAsThatOfAClient) {
  Start();
  const Caller router = Router();
  v1::AppendRequest append;
  append.set_store("none");
  v1::AppendResponse appended;
  const auto append_bytes = [&](std::size_t megabytes) {
    append.mutable_keys()->set_data(std::string(megabytes << 20, '\0'));
    return router.Call(&v1::SoftLookup::Stub::Append, append, &appended, {});
  };
  EXPECT_EQ(ReasonOf(append_bytes(63)), "INVALID_MATRIX");
  EXPECT_EQ(ReasonOf(append_bytes(65)), "MESSAGE_TOO_LARGE");
}

TEST_F(RoutedCallsTest, WithoutRulesNoIdentityIsBelieved) {
  Start();
  EXPECT_THAT(Router().ListStores(), IsGrpcOk());
  const grpc::Status refused = Router().ListStores(As("a"));
  EXPECT_THAT(refused, IsGrpcError(StatusCode::UNAUTHENTICATED, "the same --auth file"));
  EXPECT_EQ(ReasonOf(refused), "UNAUTHENTICATED");
  // A client may send what it likes.
  EXPECT_THAT(ClientOf().ListStores(As("a")), IsGrpcOk());
}

TEST_F(RoutedCallsTest, TheRightsOfTheNamedIdentityApply) {
  const SecurityFiles files;
  files.AddIdentity("reader", "read", "*");
  const std::string token = files.AddIdentity("manager", "manage", "s");
  Start({"--auth", files.auth()});
  const Caller router = Router();
  EXPECT_THAT(router.CreateStore("s", As("manager")), IsGrpcOk());
  EXPECT_THAT(router.Lookup(0, As("reader")), IsGrpcOk());
  const grpc::Status denied = router.CreateStore("t", As("reader"));
  EXPECT_THAT(denied, IsGrpcError(StatusCode::PERMISSION_DENIED, "\"reader\" may not call"));
  EXPECT_EQ(MetadataOf(denied, "identity"), "reader");
  EXPECT_THAT(router.CreateStore("t", As("manager")),
              IsGrpcError(StatusCode::PERMISSION_DENIED, "in the store \"t\""));

  // A token says nothing here. The router has looked at it.
  const std::pair<std::string, std::string> authorization("authorization", "Bearer " + token);
  EXPECT_THAT(router.CreateStore("t", {authorization, {"identity", "reader"}}),
              IsGrpcError(StatusCode::PERMISSION_DENIED, "\"reader\" may not call"));
  for (const Metadata& metadata :
       {Metadata{}, Metadata{authorization}, As("nobody"), As(""),
        Metadata{{"identity", "reader"}, {"identity", "reader"}}, As(std::string(4000, 'x'))}) {
    EXPECT_THAT(router.ListStores(metadata),
                IsGrpcError(StatusCode::UNAUTHENTICATED, "the same --auth file"));
  }
}

TEST_F(RoutedCallsTest, TheMetadataOfRoutersMeansNothingOnThePortOfClients) {
  const SecurityFiles files;
  const std::string token = files.AddIdentity("reader", "read", "*");
  files.AddIdentity("manager", "manage", "*");
  Start({"--auth", files.auth(), "--audit-log", Path("audit")});
  const Caller client = ClientOf();
  EXPECT_THAT(client.ListStores(As("manager")),
              IsGrpcError(StatusCode::UNAUTHENTICATED, "asks for a token"));
  const std::pair<std::string, std::string> authorization("authorization", "Bearer " + token);
  EXPECT_THAT(client.ListStores({authorization, {"identity", "nobody"}}), IsGrpcOk());
  EXPECT_THAT(client.CreateStore(
                  "s", {authorization, {"identity", "manager"}, {"client", "ipv4:1.2.3.4:5"}}),
              IsGrpcError(StatusCode::PERMISSION_DENIED, "\"reader\" may not call"));
  EXPECT_EQ(server_->Stop(SIGTERM), 0);
  EXPECT_THAT(Contents(Path("audit")), HasSubstr("\"peer\":\"ipv4:127.0.0.1:"));
  EXPECT_THAT(Contents(Path("audit")), ::testing::Not(HasSubstr("1.2.3.4")));
}

// When an identity loses a right, its streams end.
TEST_F(RoutedCallsTest, ChangedRulesReachStreamsOfRouters) {
  const SecurityFiles files;
  files.AddIdentity("reader", "read", "*");
  files.AddIdentity("manager", "manage", "*");
  Start({"--auth", files.auth()});
  const Caller router = Router();
  ASSERT_THAT(router.CreateStore("s", As("manager")), IsGrpcOk());
  CallContext context;
  context.AddMetadata("identity", "reader");
  const auto stream = router.Stub()->StreamLookup(&context);
  v1::LookupResponse found;
  ASSERT_TRUE(stream->Write(Caller::LookupOf(0)));
  ASSERT_TRUE(stream->Read(&found));
  ASSERT_EQ(RunCommand({ToolBinary(), "auth", "remove", files.auth(), "reader"}).exit_code, 0);
  kill(server_->pid(), SIGHUP);
  EXPECT_FALSE(stream->Read(&found));
  EXPECT_THAT(stream->Finish(), IsGrpcError(StatusCode::UNAUTHENTICATED, "the same --auth file"));
}

// Gives the one identity of `files` a limit, such as `"requests_per_second": 1`.
void Limit(const SecurityFiles& files, const std::string& limit) {
  std::string rules = Contents(files.auth());
  const std::size_t grants = rules.find("\"grants\"");
  ASSERT_NE(grants, std::string::npos);
  rules.insert(grants, "\"limits\": {" + limit + "}, ");
  Replace(files.auth(), rules);
}

// An identity has one rate, whatever way its calls come.
TEST_F(RoutedCallsTest, TheLimitsOfTheNamedIdentityApply) {
  const SecurityFiles files;
  const std::string token = files.AddIdentity("a", "read", "*");
  Limit(files, "\"requests_per_second\": 0.001");
  Start({"--auth", files.auth()});
  grpc::Status status;
  while (status.ok()) status = Router().ListStores(As("a"));
  EXPECT_EQ(ReasonOf(status), "IDENTITY_LIMIT");
  EXPECT_EQ(ReasonOf(ClientOf().ListStores({{"authorization", "Bearer " + token}})),
            "IDENTITY_LIMIT");
}

// The first part of a lookup counts as the lookup, and no other.
TEST_F(RoutedCallsTest, TheFirstPartOfALookupIsCharged) {
  for (const char* limit : {"\"requests_per_second\": 0.001", "\"rows_per_second\": 0.001"}) {
    const SecurityFiles files;
    files.AddIdentity("a", "manage", "*");
    Start({"--auth", files.auth()});
    const grpc::Status created = Router().CreateStore("s", As("a"));
    EXPECT_TRUE(created.ok() || created.error_code() == StatusCode::ALREADY_EXISTS);
    Limit(files, limit);
    kill(server_->pid(), SIGHUP);
    const Caller router = Router();
    // The new rules may take a while. Each of them lets one request through.
    grpc::Status status;
    for (int i = 0; i < 10'000 && status.ok(); ++i) {
      status = router.AnswerPart(/*begins=*/true, 1, As("a"));
    }
    EXPECT_EQ(ReasonOf(status), "IDENTITY_LIMIT") << status.error_message();
    // What begins anew is charged then.
    EXPECT_EQ(ReasonOf(router.AnswerPart(/*begins=*/true, 0, As("a"))), "SNAPSHOT_GONE");
    EXPECT_THAT(router.AnswerPart(/*begins=*/false, 1, As("a")), IsGrpcOk());
    EXPECT_EQ(server_->Stop(SIGTERM), 0);
  }
}

TEST_F(RoutedCallsTest, TheAuditLogHasTheAddressThatTheRouterTells) {
  Start({"--audit-log", Path("audit")});
  const Caller router = Router();
  const auto client = [](const std::string& address) { return Metadata{{"client", address}}; };
  const std::string longest = "unix:" + std::string(95, 'x');
  EXPECT_THAT(router.CreateStore("a", client("ipv4:1.2.3.4:5")), IsGrpcOk());
  EXPECT_THAT(router.CreateStore("b", client(longest)), IsGrpcOk());
  // These are ignored.
  EXPECT_THAT(router.CreateStore("c", client(longest + "x")), IsGrpcOk());
  EXPECT_THAT(router.CreateStore("d", client("a b")), IsGrpcOk());
  EXPECT_THAT(router.CreateStore("e", client("")), IsGrpcOk());
  EXPECT_THAT(router.CreateStore("f", {{"client", "ipv4:1.1.1.1:1"}, {"client", "x"}}), IsGrpcOk());
  EXPECT_EQ(server_->Stop(SIGTERM), 0);
  const std::string audit = Contents(Path("audit"));
  const auto expect_peer = [&](const std::string& store, const std::string& peer) {
    const std::size_t end = audit.find("\"store\":\"" + store + "\"");
    ASSERT_NE(end, std::string::npos) << audit;
    const std::size_t line = audit.rfind('\n', end) + 1;  // 0 if it is the first line.
    EXPECT_THAT(audit.substr(line, end - line), HasSubstr("\"peer\":\"" + peer));
  };
  expect_peer("a", "ipv4:1.2.3.4:5\"");
  expect_peer("b", longest + "\"");
  for (const char* store : {"c", "d", "e", "f"}) expect_peer(store, "ipv4:127.0.0.1:");
}

TEST_F(RoutedCallsTest, ARouterMayShortenTheWaitForARevision) {
  Start({"--revision-timeout", "0.1"});
  const Caller router = Router();
  ASSERT_THAT(router.CreateStore("s"), IsGrpcOk());
  const auto expect_wait = [](const grpc::Status& ended, const std::string& wait) {
    EXPECT_THAT(ended, IsGrpcError(StatusCode::DEADLINE_EXCEEDED,
                                   "lets a lookup wait for " + wait + " at most"));
    EXPECT_EQ(MetadataOf(ended, "waited_for"), "revision");
    EXPECT_EQ(MetadataOf(ended, "field"), "min_revision");
  };
  const auto wait_for = [](const std::string& text) {
    return Metadata{{"revision-wait-ms", text}};
  };
  expect_wait(router.Lookup(100, wait_for("3")), "3ms");
  expect_wait(router.Lookup(100, wait_for("0")), "0");
  expect_wait(router.Lookup(100, wait_for("999999999")), "100ms");
  for (const char* text :
       {"", "-1", "1 ", "x", "1000000000", "99999999999999999999", "0x1", "+3"}) {
    expect_wait(router.Lookup(100, wait_for(text)), "100ms");
  }
  expect_wait(ClientOf().Lookup(100, wait_for("3")), "100ms");

  CallContext context;
  context.AddMetadata("revision-wait-ms", "3");
  const auto stream = router.Stub()->StreamLookup(&context);
  v1::LookupResponse response;
  ASSERT_TRUE(stream->Write(Caller::LookupOf(100)));
  ASSERT_TRUE(stream->Read(&response));
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(response.error().details(0).UnpackTo(&info));
  EXPECT_EQ(info.metadata().at("waited_for"), "revision");
  EXPECT_THAT(response.error().message(), HasSubstr("for 3ms at most"));
}

TEST_F(RoutedCallsTest, APartWaitsLessForItsRevisionUnlessTheRouterTellsOtherwise) {
  Start({"--revision-timeout", "0.5"});
  const Caller router = Router();
  ASSERT_THAT(router.CreateStore("s"), IsGrpcOk());
  for (const bool begins : {true, false}) {
    EXPECT_THAT(router.AnswerPart(begins, 100),
                IsGrpcError(StatusCode::DEADLINE_EXCEEDED, "wait for 250ms at most"));
    EXPECT_THAT(router.AnswerPart(begins, 100, {{"revision-wait-ms", "3600000"}}),
                IsGrpcError(StatusCode::DEADLINE_EXCEEDED, "wait for 500ms at most"));
  }
}

// The deadline is the client's own. Nobody else would answer in time.
TEST_F(RoutedCallsTest, ADeadlineDoesNotSayThatTheWaitWasShort) {
  Start();
  const Caller router = Router();
  ASSERT_THAT(router.CreateStore("s"), IsGrpcOk());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  v1::LookupResponse response;
  const grpc::Status ended = router.Stub()->Lookup(&context, Caller::LookupOf(100), &response);
  EXPECT_EQ(ended.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(MetadataOf(ended, "waited_for"), "");
}

// A connection of a client has a limit on its calls, and is cut if it cancels them at once.
TEST_F(RoutedCallsTest, AConnectionOfARouterHasNoLimitsOfAClient) {
  Start({"--max-streams-per-connection", "1"});
  const Caller router = Router();
  ASSERT_THAT(router.CreateStore("s"), IsGrpcOk());
  const std::unique_ptr<v1::SoftLookup::Stub> stub = router.Stub();
  using Stream = grpc::ClientReaderWriter<v1::LookupRequest, v1::LookupResponse>;
  struct OpenStream {
    CallContext context;
    std::unique_ptr<Stream> stream;
  };
  constexpr int kStreams = 200;
  std::vector<OpenStream> streams(kStreams);
  const auto expect_all_answer = [&] {
    v1::LookupResponse response;
    for (OpenStream& open : streams) {
      ASSERT_TRUE(open.stream->Write(Caller::LookupOf(0)));
      ASSERT_TRUE(open.stream->Read(&response));
      EXPECT_FALSE(response.has_error());
    }
  };
  for (OpenStream& open : streams) open.stream = stub->StreamLookup(&open.context);
  expect_all_answer();

  for (int i = 0; i < 2000; ++i) {
    CallContext context;
    const auto cancelled = stub->StreamLookup(&context);
    ASSERT_TRUE(cancelled->Write(Caller::LookupOf(100)));
    context.TryCancel();
    EXPECT_EQ(cancelled->Finish().error_code(), StatusCode::CANCELLED);
  }
  expect_all_answer();
}

// Streams and waits end, and new calls are refused. A router that asks again and again does not
// keep the server from stopping, which would take an hour.
TEST_F(RoutedCallsTest, ASignalEndsCallsAsThoseOfClients) {
  Start();
  const Caller router = Router();
  ASSERT_THAT(router.CreateStore("s"), IsGrpcOk());
  CallContext context;
  const auto stream = router.Stub()->StreamLookup(&context);
  v1::LookupResponse response;
  ASSERT_TRUE(stream->Write(Caller::LookupOf(0)));
  ASSERT_TRUE(stream->Read(&response));
  grpc::Status waited;
  std::thread waiting([&] { waited = router.Lookup(100); });
  grpc::Status last;
  std::thread asking([&] {
    do last = router.ListStores();
    while (last.ok() || ReasonOf(last) == "SHUTTING_DOWN");
  });
  EXPECT_EQ(server_->Stop(SIGTERM), 0);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(ReasonOf(stream->Finish()), "SHUTTING_DOWN");
  waiting.join();
  // The call may have come only after the port was closed.
  EXPECT_EQ(waited.error_code(), StatusCode::UNAVAILABLE);
  asking.join();
  EXPECT_TRUE(last.error_code() == StatusCode::UNAVAILABLE ||
              last.error_code() == StatusCode::CANCELLED)
      << last.error_code() << ": " << last.error_message();
}

TEST_F(RoutedCallsTest, OnlyCertificatesOfNodesLetSomebodyIn) {
  const SecurityFiles files;
  files.MakeAuthority("other");
  Start({"--cluster-ca", files.Path("tls/ca.pem"), "--cluster-certificate",
         files.Path("tls/server.pem"), "--cluster-key", files.Path("tls/server-key.pem")});
  EXPECT_THAT(Router(files.ClientCredentials(Transport::kMutualTls)).ListStores(), IsGrpcOk());
  EXPECT_EQ(Router(files.ClientCredentials(Transport::kTls)).ListStores().error_code(),
            StatusCode::UNAVAILABLE);
  EXPECT_EQ(Router(files.ClientCredentials(Transport::kMutualTls, "other/client"))
                .ListStores()
                .error_code(),
            StatusCode::UNAVAILABLE);
  EXPECT_EQ(Router().ListStores().error_code(), StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace softlookup::testing
