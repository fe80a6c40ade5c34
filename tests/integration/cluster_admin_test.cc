// The operator's calls about a group of replicas, by the library and by the tool: what they tell
// and change, what is refused, and how a call ends that etcd keeps waiting. With the real server
// and a real etcd.
#include <signal.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "softlookup/error_details.h"
#include "tests/integration/add_replica.h"
#include "tests/integration/integration_test.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> NodesOf(const admin::v1::Group& group) {
  std::vector<std::string> nodes;
  for (const admin::v1::Replica& replica : group.replicas()) nodes.push_back(replica.node());
  return nodes;
}

// The server "n", which has founded its group and made a store.
class ClusterAdminTest : public ::testing::Test {
 protected:
  explicit ClusterAdminTest(const std::vector<std::string>& flags = {})
      : server_(FlagsOf("n", flags)),
        client_(*Client::Connect(server_.grpc_address(), PatientOptions())) {
    EXPECT_THAT(client_.CreateStore(StoreMessage("s", 1, 1)), IsOk());
    // A new primary changes nothing before it has read what it has made of the group. Nothing is
    // changed by this.
    EXPECT_TRUE(
        AwaitThat([&] { return !absl::IsUnavailable(client_.RemoveReplica("none").status()); }));
  }

  std::vector<std::string> FlagsOf(const std::string& node,
                                   const std::vector<std::string>& more) const {
    std::vector<std::string> flags = {"--data-dir",     Path("data-" + node),
                                      "--cluster-etcd", etcd_.endpoints()[0],
                                      "--cluster",      "c",
                                      "--group",        "g",
                                      "--node",         node,
                                      "--audit-log",    Path("audit-" + node),
                                      "--log-format",   "json"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }
  CommandResult Tool(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {ToolBinary(), "--server", server_.grpc_address()});
    return RunCommand(arguments);
  }
  // Reads the group until its last entry is `entry`, and "n" has told to have it.
  admin::v1::Group GroupWithEntry(std::uint64_t entry) {
    admin::v1::Group group;
    EXPECT_TRUE(AwaitThat([&] {
      group = *client_.GetGroup();
      return group.last_entry() == entry && group.replicas(0).applied_entry() == entry;
    }));
    return group;
  }

  const TemporaryDirectory directory_;
  EtcdMembers etcd_{1};
  ServerProcess server_;
  Client client_;
};

TEST_F(ClusterAdminTest, AGroupOfOneIsTold) {
  const admin::v1::Group group = GroupWithEntry(1);
  EXPECT_EQ(group.cluster(), "c");
  EXPECT_EQ(group.group(), "g");
  EXPECT_EQ(group.node(), "n");
  EXPECT_EQ(group.primary(), "n");
  EXPECT_EQ(group.epoch(), 1u);
  EXPECT_EQ(group.copies(), 1u);
  ASSERT_THAT(NodesOf(group), ElementsAre("n"));
  EXPECT_EQ(group.replicas(0).address(), "");
}

TEST_F(ClusterAdminTest, ANodeIsAddedAndRemoved) {
  for (int time = 0; time < 2; ++time) {
    const auto added = client_.AddReplica("m");
    ASSERT_THAT(added, IsOk());
    EXPECT_THAT(NodesOf(*added), ElementsAre("n", "m"));
    EXPECT_EQ(added->replicas(1).applied_entry(), 0u);
    EXPECT_EQ(added->copies(), 1u) << "m has nothing yet";
    EXPECT_EQ(added->primary(), "n");
  }
  ASSERT_THAT(client_.CreateStore(StoreMessage("t", 1, 1)), IsOk());
  for (int time = 0; time < 2; ++time) {
    const auto removed = client_.RemoveReplica("m");
    ASSERT_THAT(removed, IsOk());
    EXPECT_THAT(NodesOf(*removed), ElementsAre("n"));
    EXPECT_EQ(removed->copies(), 1u);
  }
  ASSERT_EQ(server_.Stop(SIGTERM), 0);
  const std::string audit = Contents(Path("audit-n"));
  for (const char* method : {"AddReplica", "RemoveReplica"}) {
    EXPECT_THAT(audit,
                HasSubstr(absl::StrCat("\"method\":\"", method,
                                       "\",\"store\":\"\",\"node\":\"m\",\"result\":\"OK\"")));
  }
}

TEST_F(ClusterAdminTest, WhatCannotBeChangedIsRefused) {
  const auto expect_unchanged = [](const absl::StatusOr<admin::v1::Group>& group,
                                   const std::string& text) {
    EXPECT_THAT(group, StatusIs(absl::StatusCode::kFailedPrecondition, text));
    EXPECT_EQ(ErrorReason(group.status()), "GROUP_UNCHANGED");
  };
  expect_unchanged(client_.RemoveReplica("n"), "node n is the primary");
  expect_unchanged(client_.MovePrimary(), "the group has no other replica");
  for (const std::string& node : {std::string(), std::string("a b"), std::string("a/b"),
                                  std::string("\xc3\xa9"), std::string(65, 'x')}) {
    SCOPED_TRACE(node);
    for (const auto& group : {client_.AddReplica(node), client_.RemoveReplica(node)}) {
      EXPECT_THAT(group, StatusIs(absl::StatusCode::kInvalidArgument, "node: "));
      EXPECT_EQ(ErrorReason(group.status()), "INVALID_NAME");
      EXPECT_EQ(ErrorMetadata(group.status())["field"], "node");
    }
  }
  for (const std::string& node : {std::string("a"), std::string("A.-_9"), std::string(64, 'x')}) {
    EXPECT_THAT(client_.AddReplica(node), IsOk());
  }
  EXPECT_THAT(client_.AddReplica("b"), IsOk());
  expect_unchanged(client_.AddReplica("c"), "the group has its limit of 5 replicas");
  EXPECT_EQ(client_.GetGroup()->replicas_size(), 5);
}

// The other replica was never started, so nobody takes over.
TEST_F(ClusterAdminTest, ThePrimaryStepsDownAndReturnsIfNobodyTakesOver) {
  AddReplicaPatiently(client_, "m");
  const CommandResult moved = Tool({"cluster", "move-leader", "--timeout", "100"});
  ASSERT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_EQ(moved.out,
            "node n has stepped down, and no other node has taken over yet; `softlookup cluster "
            "status` shows when one has\n");
  absl::StatusOr<admin::v1::Group> group;
  ASSERT_TRUE(AwaitThat([&] {
    group = client_.GetGroup();
    return !group.ok() || !group->primary().empty();
  }));
  ASSERT_THAT(group, IsOk());
  EXPECT_EQ(group->primary(), "n");
  EXPECT_EQ(group->epoch(), 2u);
}

// A group of which other nodes can be replicas. Without certificates they are reached over loopback
// addresses alone.
class ClusterPairTest : public ClusterAdminTest {
 protected:
  ClusterPairTest() : ClusterAdminTest(kListen) {}

  inline static const std::vector<std::string> kListen = {"--cluster-listen", "127.0.0.1:0"};
};

TEST_F(ClusterPairTest, TheLeadMovesToAReplicaThatHasAllEntries) {
  AddReplicaPatiently(client_, "m");
  const ServerProcess other(FlagsOf("m", kListen));
  Client client = *Client::Connect(other.grpc_address(), PatientOptions());
  // Until n has read that m has all entries, which then are on both disks.
  absl::StatusOr<admin::v1::Group> group;
  ASSERT_TRUE(AwaitThat([&] {
    group = client_.GetGroup();
    return !group.ok() || (group->copies() >= 2 && group->replicas(1).applied_entry() > 0);
  }));
  ASSERT_THAT(group, IsOk());
  EXPECT_THAT(group->replicas(0).address(), HasSubstr("127.0.0.1:"));
  EXPECT_THAT(group->replicas(1).address(), HasSubstr("127.0.0.1:"));
  const absl::StatusOr<admin::v1::Group> refused = client.RemoveReplica("n");
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition, "node n is the primary"));
  EXPECT_EQ(ErrorReason(refused.status()), "GROUP_UNCHANGED");

  const CommandResult moved = Tool({"cluster", "move-leader", "--timeout", "100"});
  ASSERT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_EQ(moved.out, "node m is the primary of group g now; node n goes on as a replica\n");
  // m hears from etcd on its own that it is the primary.
  ASSERT_TRUE(AwaitThat([&] {
    group = client.GetGroup();
    return !group.ok() || group->primary() == "m";
  }));
  ASSERT_THAT(group, IsOk());
  EXPECT_EQ(group->node(), "m");
  EXPECT_EQ(group->epoch(), 2u);
}

// The grace of the server is an hour, so a stop that waits for etcd would show.
TEST_F(ClusterAdminTest, ACallThatWaitsForEtcdEndsAtItsDeadlineAndWhenTheServerStops) {
  etcd_.Freeze(0);
  absl::Status waiting;
  std::thread caller([&] {
    Client client = *Client::Connect(server_.grpc_address(), PatientOptions());
    waiting = client.AddReplica("m").status();
  });
  // Until the other call is being made, or was refused because one of these is.
  absl::Status status;
  while (ErrorReason(status) != "GROUP_UNCHANGED") {
    status = client_.AddReplica("m", {.deadline = absl::Milliseconds(200)}).status();
    ASSERT_FALSE(status.ok());
  }
  EXPECT_EQ(server_.Stop(SIGTERM), 0);
  caller.join();
  EXPECT_TRUE(absl::IsUnavailable(waiting) || absl::IsCancelled(waiting) ||
              absl::IsFailedPrecondition(waiting))
      << waiting;
}

TEST_F(ClusterAdminTest, TheToolTellsAndChangesTheGroup) {
  GroupWithEntry(1);
  const CommandResult alone = Tool({"cluster", "move-leader"});
  EXPECT_EQ(alone.exit_code, 4);
  EXPECT_THAT(alone.err, HasSubstr("GROUP_UNCHANGED: The group was not changed: the group has no "
                                   "other replica"));
  const CommandResult added = Tool({"cluster", "add", "m"});
  ASSERT_EQ(added.exit_code, 0) << added.err;
  EXPECT_EQ(added.out,
            "node m is a replica of group g; next, start it with --node m and an empty "
            "--data-dir\n");
  const CommandResult status = Tool({"cluster", "status"});
  ASSERT_EQ(status.exit_code, 0) << status.err;
  EXPECT_EQ(status.out,
            "group g of cluster c: epoch 1, last entry 1, each entry on at least 1 of 2 replicas\n"
            "node  role     address  entries behind\n"
            "n     primary  -                     0\n"
            "m     replica  -                     1\n");
  const CommandResult json = Tool({"cluster", "status", "-o", "json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  EXPECT_EQ(json.out,
            "{\"cluster\":\"c\",\"group\":\"g\",\"node\":\"n\",\"primary\":\"n\",\"epoch\":1,"
            "\"last_entry\":1,\"copies\":1,\"replicas\":["
            "{\"node\":\"n\",\"address\":\"\",\"applied_entry\":1},"
            "{\"node\":\"m\",\"address\":\"\",\"applied_entry\":0}]}\n");
  const CommandResult removed = Tool({"cluster", "remove", "m"});
  ASSERT_EQ(removed.exit_code, 0) << removed.err;
  EXPECT_EQ(removed.out,
            "node m is no replica of group g any more; its server ends, and its data directory "
            "can be deleted\n");
  const CommandResult wrong = Tool({"cluster", "add", "a b"});
  EXPECT_EQ(wrong.exit_code, 4);
  EXPECT_THAT(wrong.err, HasSubstr("INVALID_NAME: node: \"a b\" is not 1 to 64 letters"));
}

TEST(NoClusterTest, AServerThatIsNoReplicaSaysSo) {
  const ServerProcess server;
  Client client = *Client::Connect(server.grpc_address(), PatientOptions());
  for (const auto& group : {client.GetGroup(), client.AddReplica("m"), client.RemoveReplica("m"),
                            client.MovePrimary()}) {
    EXPECT_THAT(group, StatusIs(absl::StatusCode::kFailedPrecondition,
                                "This server is no replica: it was not started with "
                                "--cluster-etcd"));
    EXPECT_EQ(ErrorReason(group.status()), "NO_CLUSTER");
  }
  const CommandResult tool =
      RunCommand({ToolBinary(), "--server", server.grpc_address(), "cluster", "status"});
  EXPECT_EQ(tool.exit_code, 4);
  EXPECT_THAT(tool.err, HasSubstr("NO_CLUSTER"));
}

}  // namespace
}  // namespace softlookup::testing
