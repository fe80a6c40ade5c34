// Lookups that must see all that was acknowledged to anyone, at whatever server of a group. With
// real servers and a real etcd.
#include <signal.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "softlookup/error_details.h"
#include "tests/integration/add_replica.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using grpc::StatusCode;

// A server of the group, and a client of it.
struct Node {
  explicit Node(const std::vector<std::string>& flags, const std::string& log = "")
      : server(flags, log), client(*Client::Connect(server.grpc_address(), PatientOptions())) {}

  // Appends a row to the store "s". Does not try again.
  absl::Status Append() {
    CallContext context;
    v1::AppendRequest request;
    request.set_store("s");
    *request.mutable_keys() = Message({1}, 1);
    *request.mutable_values() = Message({1}, 1);
    v1::AppendResponse response;
    const grpc::Status status = Stub()->Append(&context, request, &response);
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
  static v1::LookupRequest LookupOf(bool linearizable, const std::string& store = "s") {
    v1::LookupRequest request;
    request.set_store(store);
    request.set_linearizable(linearizable);
    *request.mutable_queries() = Message({1}, 1);
    return request;
  }
  grpc::Status Lookup(bool linearizable, v1::LookupResponse* response,
                      const std::string& store = "s") {
    CallContext context;
    return Stub()->Lookup(&context, LookupOf(linearizable, store), response);
  }
  std::unique_ptr<v1::SoftLookup::Stub> Stub() const {
    return v1::SoftLookup::NewStub(
        grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials()));
  }

  ServerProcess server;
  Client client;
};

class LinearizableTest : public ::testing::Test {
 protected:
  // Starts a group of `count` servers with an empty store "s". The first one is the primary.
  void StartGroup(int count) {
    Start(0);
    ASSERT_THAT(nodes_[0]->client.CreateStore(StoreMessage("s", 1, 1)), IsOk());
    for (int index = 1; index < count; ++index) {
      AddReplicaPatiently(nodes_[0]->client, NameOf(index));
      Start(index);
    }
    const auto copies = static_cast<std::uint64_t>(count / 2 + 1);
    ASSERT_TRUE(AwaitThat([&] { return nodes_[0]->client.GetGroup()->copies() == copies; }));
  }
  void Start(int index) {
    const std::string path = absl::StrCat(directory_.path(), "/", index);
    const std::vector<std::string> flags = {
        "--data-dir", path,          "--cluster-etcd",   etcd_.endpoints()[0],
        "--cluster",  "c",           "--group",          "g",
        "--node",     NameOf(index), "--cluster-listen", "127.0.0.1:0"};
    nodes_[index] = std::make_unique<Node>(flags, path + ".log");
  }
  static std::string NameOf(int index) { return absl::StrCat("n", index); }

  const TemporaryDirectory directory_;
  EtcdMembers etcd_{1};
  std::array<std::unique_ptr<Node>, 3> nodes_;
};

TEST_F(LinearizableTest, AServerThatFollowsShowsWhatWasAcknowledgedBefore) {
  StartGroup(2);
  v1::LookupResponse response;
  for (std::uint64_t rows = 1; rows <= 100; ++rows) {
    ASSERT_THAT(nodes_[0]->Append(), IsOk());
    ASSERT_THAT(nodes_[1]->Lookup(/*linearizable=*/true, &response), IsGrpcOk());
    ASSERT_EQ(response.row_count(), rows);
    ASSERT_THAT(nodes_[0]->Lookup(/*linearizable=*/true, &response), IsGrpcOk());
    ASSERT_EQ(response.row_count(), rows);
  }
  // So it does for a whole store, which is looked for only once all is there.
  for (int store = 0; store < 20; ++store) {
    const std::string name = absl::StrCat("t", store);
    ASSERT_THAT(nodes_[0]->client.CreateStore(StoreMessage(name, 1, 1)), IsOk());
    ASSERT_THAT(nodes_[1]->Lookup(/*linearizable=*/true, &response, name), IsGrpcOk());
  }
}

TEST_F(LinearizableTest, ALookupOfAStreamShowsWhatWasAcknowledgedBefore) {
  StartGroup(2);
  CallContext context;
  const auto stub = nodes_[1]->Stub();
  const auto stream = stub->StreamLookup(&context);
  v1::LookupResponse response;
  for (std::uint64_t rows = 1; rows <= 50; ++rows) {
    ASSERT_THAT(nodes_[0]->Append(), IsOk());
    ASSERT_TRUE(stream->Write(Node::LookupOf(/*linearizable=*/true)));
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_FALSE(response.has_error()) << response.error().message();
    ASSERT_EQ(response.row_count(), rows);
  }
}

// The first server does not run while another one becomes the primary. When it runs again, it takes
// itself for the primary for a while.
TEST_F(LinearizableTest, APrimaryThatWasReplacedShowsWhatItsSuccessorHasAcknowledged) {
  StartGroup(3);
  ASSERT_THAT(nodes_[0]->Append(), IsOk());
  kill(nodes_[0]->server.pid(), SIGSTOP);
  int primary = 1;
  while (!nodes_[primary]->Append().ok()) primary = 3 - primary;
  ASSERT_THAT(nodes_[primary]->Append(), IsOk());
  kill(nodes_[0]->server.pid(), SIGCONT);
  v1::LookupResponse response;
  grpc::Status status;
  EXPECT_TRUE(AwaitThat([&] {
    status = nodes_[0]->Lookup(/*linearizable=*/true, &response);
    return status.error_code() != StatusCode::UNAVAILABLE;
  }));
  ASSERT_THAT(status, IsGrpcOk());
  // An append whose answer did not come may have been made, too.
  EXPECT_GE(response.row_count(), 3u);
}

TEST_F(LinearizableTest, WithoutEtcdItFailsAndOtherLookupsGoOn) {
  StartGroup(1);
  Node& node = *nodes_[0];
  etcd_.Freeze(0);
  v1::LookupResponse response;
  const grpc::Status failed = node.Lookup(/*linearizable=*/true, &response);
  EXPECT_THAT(failed, IsGrpcError(StatusCode::UNAVAILABLE, "etcd has not answered"));
  EXPECT_EQ(ReasonOf(failed), "CLUSTER_UNAVAILABLE");
  EXPECT_THAT(failed.error_details(), ::testing::HasSubstr("google.rpc.RetryInfo"));
  EXPECT_THAT(node.Lookup(/*linearizable=*/false, &response), IsGrpcOk());

  // A deadline and its caller end it before that.
  const auto stub = node.Stub();
  grpc::ClientContext hasty;
  hasty.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  EXPECT_EQ(stub->Lookup(&hasty, Node::LookupOf(true), &response).error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  CallContext cancelled;
  const auto stream = stub->StreamLookup(&cancelled);
  ASSERT_TRUE(stream->Write(Node::LookupOf(true)));
  ASSERT_TRUE(stream->Write(Node::LookupOf(true)));
  cancelled.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::CANCELLED);

  // A failed lookup of a stream does not end the stream.
  CallContext context;
  const auto going_on = stub->StreamLookup(&context);
  ASSERT_TRUE(going_on->Write(Node::LookupOf(true)));
  ASSERT_TRUE(going_on->Read(&response));
  EXPECT_EQ(response.error().code(), StatusCode::UNAVAILABLE);
  ASSERT_TRUE(going_on->Write(Node::LookupOf(false)));
  ASSERT_TRUE(going_on->Read(&response));
  EXPECT_FALSE(response.has_error());
  etcd_.Thaw(0);
  do {
    ASSERT_TRUE(going_on->Write(Node::LookupOf(true)));
    ASSERT_TRUE(going_on->Read(&response));
  } while (response.has_error());
}

TEST_F(LinearizableTest, AServerThatStopsEndsThoseThatWait) {
  StartGroup(1);
  etcd_.Freeze(0);
  CallContext context;
  const auto stub = nodes_[0]->Stub();
  const auto stream = stub->StreamLookup(&context);
  ASSERT_TRUE(stream->Write(Node::LookupOf(false)));
  v1::LookupResponse response;
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_TRUE(stream->Write(Node::LookupOf(true)));
  kill(nodes_[0]->server.pid(), SIGTERM);
  // The stream may have ended before it has read the lookup.
  if (stream->Read(&response)) {
    EXPECT_EQ(response.error().code(), StatusCode::UNAVAILABLE);
  }
  EXPECT_EQ(ReasonOf(stream->Finish()), "SHUTTING_DOWN");
  EXPECT_EQ(nodes_[0]->server.Stop(0), 0);
}

TEST(LinearizableAloneTest, AServerWithoutAGroupAnswersAtOnce) {
  Node node({});
  ASSERT_THAT(node.client.CreateStore(StoreMessage("s", 1, 1)), IsOk());
  ASSERT_THAT(node.Append(), IsOk());
  LookupOptions options;
  options.linearizable = true;
  const std::vector<float> query = {1};
  const absl::StatusOr<LookupAnswer> answer = node.client.Lookup("s", View(query, 1), options);
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->row_count, 1u);
}

}  // namespace
}  // namespace softlookup::testing
