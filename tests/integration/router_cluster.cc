#include "tests/integration/router_cluster.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"
#include "tests/integration/add_replica.h"
#include "tests/integration/scrape.h"
#include "tests/testing/child_process.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {

void RouterCluster::Start(const std::string& group, const std::string& name,
                          const std::string& etcd, const std::vector<std::string>& flags) {
  std::vector<std::string> all = {"--data-dir",       Path(absl::StrCat("data-", name)),
                                  "--cluster-etcd",   etcd,
                                  "--cluster",        "c",
                                  "--group",          group,
                                  "--node",           name,
                                  "--cluster-listen", "127.0.0.1:0"};
  all.insert(all.end(), flags.begin(), flags.end());
  auto server = std::make_unique<ServerProcess>(all, Path(absl::StrCat("log-", name)));
  nodes_[name] = {.group = group, .flags = all, .server = std::move(server)};
}

void RouterCluster::Found(const std::string& group, const std::string& node,
                          const std::vector<std::string>& flags) {
  Start(group, node, absl::StrJoin(etcd_.endpoints(), ","), flags);
}

void RouterCluster::Add(const std::string& first, const std::string& node,
                        const std::vector<std::string>& etcd,
                        const std::vector<std::string>& flags) {
  Client client = ClientOf(this->node(first));
  AddReplicaPatiently(client, node);
  Start(nodes_.at(first).group, node, absl::StrJoin(etcd.empty() ? etcd_.endpoints() : etcd, ","),
        flags);
  // A node counts once it has told of an entry.
  EXPECT_THAT(client.CreateStore(StoreMessage("entry", 1, 1)), IsOk());
  EXPECT_THAT(client.DeleteStore("entry"), IsOk());
  EXPECT_TRUE(AwaitThat([&] {
    const absl::StatusOr<admin::v1::Group> group = client.GetGroup();
    return group.ok() &&
           group->copies() >= static_cast<std::uint64_t>(group->replicas_size() / 2 + 1);
  }));
  AwaitEqual(first);
}

void RouterCluster::Restart(const std::string& node) {
  Node& old = nodes_.at(node);
  old.server = std::make_unique<ServerProcess>(old.flags, Path(absl::StrCat("log-", node)));
}

void RouterCluster::AwaitEqual(const std::string& node) {
  Client client = ClientOf(this->node(node));
  EXPECT_TRUE(AwaitThat([&] {
    const absl::StatusOr<admin::v1::Group> group = client.GetGroup();
    return group.ok() &&
           std::ranges::all_of(group->replicas(), [&](const admin::v1::Replica& replica) {
             return replica.applied_entry() == group->last_entry();
           });
  }));
}

std::vector<std::string> RouterCluster::RouterFlags() const {
  return {"--router", "--cluster-etcd", absl::StrJoin(etcd_.endpoints(), ","), "--cluster", "c"};
}

void RouterCluster::StartRouter(const std::vector<std::string>& flags) {
  std::vector<std::string> all = RouterFlags();
  all.insert(all.end(), flags.begin(), flags.end());
  router_ = std::make_unique<ServerProcess>(all, Path("log-router"));
}

void RouterCluster::AwaitConnected(const std::vector<std::string>& nodes) {
  for (const std::string& node : nodes) {
    EXPECT_TRUE(AwaitThat([&] { return NodeMetric(*router_, "node_connected", node) > 0; }));
  }
}

void RouterCluster::Split(const std::string& store, int ranges) {
  CallTool({"cluster", "split", store, "--ranges", absl::StrCat(ranges)});
}

void RouterCluster::Rebalance(const std::string& store, const std::string& nodes) {
  CallTool({"cluster", "rebalance", store, "--nodes", nodes});
}

void RouterCluster::CallTool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), ToolBinary());
  arguments.insert(arguments.end(), {"--server", router_->grpc_address()});
  const CommandResult result = RunCommand(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

std::shared_ptr<grpc::Channel> ChannelTo(const ServerProcess& server) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(server.grpc_address(), grpc::InsecureChannelCredentials(),
                                   arguments);
}

std::unique_ptr<v1::SoftLookup::Stub> StubOf(const ServerProcess& server) {
  return v1::SoftLookup::NewStub(ChannelTo(server));
}

Client ClientOf(const ServerProcess& server) {
  return *Client::Connect(server.grpc_address(), PatientOptions());
}

double NodeMetric(const ServerProcess& router, const std::string& name, const std::string& node,
                  const std::string& more) {
  return MetricOf(router, absl::StrCat("softlookup_router_", name, "{group=\"g\",node=\"", node,
                                       "\"", more, "}"));
}

void ExpectSameAnswer(const RawAnswer& routed, const RawAnswer& direct, const std::string& what) {
  SCOPED_TRACE(what);
  EXPECT_EQ(routed.status.error_code(), direct.status.error_code());
  EXPECT_EQ(routed.status.error_message(), direct.status.error_message());
  // The entries of a map are in no order.
  google::rpc::Status routed_details, direct_details;
  EXPECT_TRUE(routed_details.ParseFromString(routed.status.error_details()));
  EXPECT_TRUE(direct_details.ParseFromString(direct.status.error_details()));
  EXPECT_THAT(routed_details, IsMessage(direct_details));
  ASSERT_EQ(routed.messages.size(), direct.messages.size());
  for (std::size_t i = 0; i < routed.messages.size(); ++i) {
    if (routed.messages[i] == direct.messages[i]) continue;
    v1::LookupResponse routed_error, direct_error;  // On a stream of lookups.
    EXPECT_TRUE(routed_error.ParseFromString(routed.messages[i]));
    EXPECT_TRUE(direct_error.ParseFromString(direct.messages[i]));
    EXPECT_THAT(routed_error, IsMessage(direct_error));
    EXPECT_NE(direct_error.error().code(), 0);
  }
}

v1::AppendRequest OneRow(const std::string& store, float value) {
  v1::AppendRequest request;
  request.set_store(store);
  *request.mutable_keys() = Message({value}, 1);
  *request.mutable_values() = Message({value}, 1);
  return request;
}

v1::LookupRequest OneLookup(const std::string& store) {
  v1::LookupRequest request;
  request.set_store(store);
  *request.mutable_queries() = Message({1}, 1);
  return request;
}

grpc::Status CreateStore(v1::SoftLookup::Stub& stub, const std::string& store) {
  CallContext context;
  v1::CreateStoreRequest request;
  *request.mutable_store() = StoreMessage(store, 1, 1);
  v1::Store response;
  return stub.CreateStore(&context, request, &response);
}

grpc::Status DeleteStore(v1::SoftLookup::Stub& stub, const std::string& store) {
  CallContext context;
  v1::DeleteStoreRequest request;
  request.set_name(store);
  v1::DeleteStoreResponse response;
  return stub.DeleteStore(&context, request, &response);
}

grpc::Status Append(v1::SoftLookup::Stub& stub, const v1::AppendRequest& request,
                    v1::AppendResponse* response) {
  CallContext context;
  v1::AppendResponse unused;
  return stub.Append(&context, request, response == nullptr ? &unused : response);
}

grpc::Status LookUp(v1::SoftLookup::Stub& stub, const std::string& store, std::uint64_t* rows) {
  CallContext context;
  v1::LookupResponse response;
  const grpc::Status status = stub.Lookup(&context, OneLookup(store), &response);
  *rows = response.row_count();
  return status;
}

}  // namespace softlookup::testing
