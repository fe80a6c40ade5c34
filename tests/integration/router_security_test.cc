// Who may do what through a router: TLS on all links, identities by token and by certificate, and
// what a client that lies about itself gains. With real servers and a real etcd.
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/router_cluster.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kLookup[] = "/softlookup.v1.SoftLookup/Lookup";
constexpr char kStreamLookup[] = "/softlookup.v1.SoftLookup/StreamLookup";
constexpr char kAppend[] = "/softlookup.v1.SoftLookup/Append";
constexpr char kCreate[] = "/softlookup.v1.SoftLookup/CreateStore";
constexpr char kList[] = "/softlookup.v1.SoftLookup/ListStores";
constexpr char kWatch[] = "/softlookup.v1.SoftLookup/WatchMemory";
constexpr char kGetGroup[] = "/softlookup.admin.v1.Admin/GetGroup";

std::string CreateRequest(const std::string& store) {
  v1::CreateStoreRequest request;
  *request.mutable_store() = StoreMessage(store, 1, 1);
  return request.SerializeAsString();
}
std::string LookupRequest(const std::string& store) { return OneLookup(store).SerializeAsString(); }
std::string WatchRequest(const std::string& store) {
  v1::WatchMemoryRequest request;
  request.set_store(store);
  return request.SerializeAsString();
}

// A node and a router, both with auth rules and TLS everywhere: an administrator, a reader of
// acme/*, and the identity of a certificate, which may write acme/*.
class RouterSecurityTest : public ::testing::Test {
 protected:
  RouterSecurityTest()
      : admin_(files_.AddIdentity("root", "admin", "*")),
        reader_(files_.AddIdentity("reader", "read", "acme/*")),
        cluster_(1, EtcdTls{.ca = files_.Path("tls/ca.pem"),
                            .certificate = files_.Path("tls/server.pem"),
                            .key = files_.Path("tls/server-key.pem")}) {
    const CommandResult added =
        RunCommand({ToolBinary(), "auth", "add", files_.auth(), "cert", "--role", "write",
                    "--stores", "acme/*", "--certificate-name", "client"});
    EXPECT_EQ(added.exit_code, 0) << added.err;
    std::vector<std::string> flags = Links("tls/ca.pem");
    for (const std::string& flag : files_.Flags(Transport::kMutualTls)) flags.push_back(flag);
    cluster_.Found("g", "n", flags);
  }

  // The flags of links to etcd and to nodes.
  std::vector<std::string> Links(const std::string& nodes_ca) const {
    return {"--cluster-etcd-ca",
            files_.Path("tls/ca.pem"),
            "--cluster-etcd-certificate",
            files_.Path("tls/client.pem"),
            "--cluster-etcd-key",
            files_.Path("tls/client-key.pem"),
            "--cluster-ca",
            files_.Path(nodes_ca),
            "--cluster-certificate",
            files_.Path("tls/server.pem"),
            "--cluster-key",
            files_.Path("tls/server-key.pem")};
  }
  void StartRouter() {
    std::vector<std::string> flags = Links("tls/ca.pem");
    for (const std::string& flag : files_.Flags(Transport::kMutualTls)) flags.push_back(flag);
    cluster_.StartRouter(flags);
  }
  // A channel with the client's certificate, whose name is an identity's, or with the server's,
  // whose name is nobody's.
  std::shared_ptr<grpc::Channel> Channel(const ServerProcess& server,
                                         const std::string& pair = "tls/server") const {
    return grpc::CreateChannel(server.grpc_address(),
                               files_.ClientCredentials(Transport::kMutualTls, pair));
  }
  RawAnswer Call(const std::string& path, const std::string& request, const std::string& token) {
    return CallRaw(Channel(cluster_.router()), path, request, token);
  }

  const SecurityFiles files_;
  const std::string admin_, reader_;
  RouterCluster cluster_;
};

TEST_F(RouterSecurityTest, TheNodeDecidesByTheIdentityThatTheRouterHasFound) {
  StartRouter();
  for (const char* store : {"acme/s", "other/s"}) {
    EXPECT_THAT(Call(kCreate, CreateRequest(store), admin_).status, IsGrpcOk());
  }
  EXPECT_THAT(Call(kLookup, LookupRequest("acme/s"), reader_).status, IsGrpcOk());
  EXPECT_THAT(Call(kLookup, LookupRequest("other/s"), admin_).status, IsGrpcOk());
  v1::ListStoresResponse list;
  ASSERT_TRUE(list.ParseFromString(Call(kList, "", reader_).messages.at(0)));
  ASSERT_EQ(list.stores_size(), 1);
  EXPECT_EQ(list.stores(0).name(), "acme/s");
  const struct {
    const char* path;
    std::string request, token, reason;
  } kDenied[] = {{kLookup, LookupRequest("other/s"), reader_, "PERMISSION_DENIED"},
                 {kLookup, LookupRequest("other/none"), reader_, "PERMISSION_DENIED"},
                 {kWatch, WatchRequest("other/s"), reader_, "PERMISSION_DENIED"},
                 {kAppend, OneRow("acme/s", 1).SerializeAsString(), reader_, "PERMISSION_DENIED"},
                 {kCreate, CreateRequest("acme/t"), reader_, "PERMISSION_DENIED"},
                 {kGetGroup, "", reader_, "PERMISSION_DENIED"},
                 {kLookup, LookupRequest("acme/s"), "", "UNAUTHENTICATED"},
                 {kLookup, LookupRequest("acme/s"), std::string(43, 'x'), "UNAUTHENTICATED"},
                 {kWatch, WatchRequest("acme/s"), "", "UNAUTHENTICATED"}};
  // To the node, each message of a stream is a Lookup, so its text names that.
  EXPECT_EQ(ReasonOf(Call(kStreamLookup, LookupRequest("other/s"), reader_).status),
            "PERMISSION_DENIED");
  for (const auto& denied : kDenied) {
    const RawAnswer routed = Call(denied.path, denied.request, denied.token);
    const RawAnswer direct =
        CallRaw(Channel(cluster_.node("n")), denied.path, denied.request, denied.token);
    EXPECT_EQ(ReasonOf(routed.status), denied.reason) << denied.path;
    ExpectSameAnswer(routed, direct, denied.path);
  }
}

TEST_F(RouterSecurityTest, ACertificateIsAnIdentityAtTheRouter) {
  StartRouter();
  ASSERT_THAT(Call(kCreate, CreateRequest("acme/s"), admin_).status, IsGrpcOk());
  const auto channel = Channel(cluster_.router(), "tls/client");
  EXPECT_THAT(CallRaw(channel, kAppend, OneRow("acme/s", 1).SerializeAsString(), "").status,
              IsGrpcOk());
  EXPECT_EQ(ReasonOf(CallRaw(channel, kCreate, CreateRequest("acme/t"), "").status),
            "PERMISSION_DENIED");
}

TEST_F(RouterSecurityTest, AClientsOwnMetadataGainNothing) {
  StartRouter();
  ASSERT_THAT(Call(kCreate, CreateRequest("other/s"), admin_).status, IsGrpcOk());
  for (const ServerProcess* server : {&cluster_.router(), &cluster_.node("n")}) {
    const auto stub = v1::SoftLookup::NewStub(Channel(*server));
    for (const std::string& token : {std::string(), reader_}) {
      for (const int times : {1, 2}) {
        CallContext context;
        if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
        for (int i = 0; i < times; ++i) context.AddMetadata("identity", "root");
        context.AddMetadata("client", "ipv4:127.0.0.1:1");
        v1::LookupResponse response;
        EXPECT_EQ(ReasonOf(stub->Lookup(&context, OneLookup("other/s"), &response)),
                  token.empty() ? "UNAUTHENTICATED" : "PERMISSION_DENIED");
      }
    }
  }
}

TEST_F(RouterSecurityTest, RightsThatAreWithdrawnEndTheStreams) {
  StartRouter();
  ASSERT_THAT(Call(kCreate, CreateRequest("acme/s"), admin_).status, IsGrpcOk());
  const auto channel = Channel(cluster_.router());
  RawCall watch(channel, kWatch, reader_);
  ASSERT_TRUE(watch.Write(WatchRequest("acme/s"), /*is_last=*/true));
  ASSERT_TRUE(watch.Read().has_value());
  RawCall lookups(channel, kStreamLookup, reader_);
  ASSERT_TRUE(lookups.Write(LookupRequest("acme/s")));
  ASSERT_TRUE(lookups.Read().has_value());
  Replace(files_.auth(), R"({"identities": []})");
  kill(cluster_.router().pid(), SIGHUP);
  while (watch.Read().has_value()) {
  }
  EXPECT_EQ(ReasonOf(watch.Finish()), "UNAUTHENTICATED");
  while (lookups.Read().has_value()) {
  }
  EXPECT_EQ(ReasonOf(lookups.Finish()), "UNAUTHENTICATED");
}

// The same when only the node hears of it.
TEST_F(RouterSecurityTest, RightsThatTheNodeWithdrawsEndTheStreams) {
  StartRouter();
  ASSERT_THAT(Call(kCreate, CreateRequest("acme/s"), admin_).status, IsGrpcOk());
  kill(cluster_.router().pid(), SIGSTOP);
  Replace(files_.auth(), R"({"identities": []})");
  kill(cluster_.node("n").pid(), SIGHUP);
  // Until the node has read it.
  EXPECT_TRUE(AwaitThat([&] {
    return !CallRaw(Channel(cluster_.node("n")), kLookup, LookupRequest("acme/s"), reader_)
                .status.ok();
  }));
  kill(cluster_.router().pid(), SIGCONT);
  EXPECT_EQ(ReasonOf(Call(kLookup, LookupRequest("acme/s"), reader_).status), "UNAUTHENTICATED");
}

TEST_F(RouterSecurityTest, ARouterWithoutAuthRulesIsRefusedByNodesThatHaveThem) {
  cluster_.StartRouter(Links("tls/ca.pem"));
  const RawAnswer answer =
      CallRaw(ChannelTo(cluster_.router()), kLookup, LookupRequest("acme/s"), admin_);
  EXPECT_EQ(ReasonOf(answer.status), "UNAUTHENTICATED");
  EXPECT_THAT(answer.status.error_message(), HasSubstr("router"));
  EXPECT_THAT(answer.status.error_message(), HasSubstr("--auth"));
}

}  // namespace
}  // namespace softlookup::testing
