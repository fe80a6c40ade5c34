// The ranges of a store of a group, by the library and by the tool, at nodes and through a router:
// how they are planned, set and told, that all nodes have the same, and what is refused. With real
// servers and a real etcd.
#include <signal.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "softlookup/error_details.h"
#include "tests/integration/router_cluster.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Of a store of dimensions 1 and 1: eight blocks of 1,024 rows of 8 bytes.
constexpr std::uint64_t kStep = 8 * 1'024;
constexpr std::uint64_t kRowBytes = 8;
constexpr std::uint64_t kRows = 2 * kStep + 3'616;

void MakeRows(const ServerProcess& server, const std::string& store, std::uint64_t count) {
  const auto stub = StubOf(server);
  ASSERT_THAT(CreateStore(*stub, store), IsGrpcOk());
  v1::AppendRequest rows;
  rows.set_store(store);
  *rows.mutable_keys() = Message(std::vector<float>(count, 1), 1);
  *rows.mutable_values() = rows.keys();
  ASSERT_THAT(Append(*stub, rows), IsGrpcOk());
}

std::vector<std::string> NodesOf(const admin::v1::StoreRange& range) {
  return {range.nodes().begin(), range.nodes().end()};
}

// Expects the ranges [0, kStep) at `first` and [kStep, ) at `second`, of kRows rows.
void ExpectTwoRanges(const absl::StatusOr<admin::v1::StoreRanges>& answer,
                     const std::vector<std::string>& first,
                     const std::vector<std::string>& second) {
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->store(), "s");
  EXPECT_EQ(answer->row_count(), kRows);
  ASSERT_EQ(answer->ranges_size(), 2);
  EXPECT_EQ(answer->ranges(0).begin(), 0u);
  EXPECT_EQ(NodesOf(answer->ranges(0)), first);
  EXPECT_EQ(answer->ranges(0).row_count(), kStep);
  EXPECT_EQ(answer->ranges(0).live_row_count(), kStep);
  EXPECT_EQ(answer->ranges(0).byte_size(), kStep * kRowBytes);
  EXPECT_EQ(answer->ranges(1).begin(), kStep);
  EXPECT_EQ(NodesOf(answer->ranges(1)), second);
  EXPECT_EQ(answer->ranges(1).row_count(), kRows - kStep);
  EXPECT_EQ(answer->ranges(1).live_row_count(), kRows - kStep);
  EXPECT_EQ(answer->ranges(1).byte_size(), (kRows - kStep) * kRowBytes);
}

// The nodes "n2", which leads, and "n1", with the store "s" of kRows rows, and a router.
class ClusterRangesTest : public ::testing::Test {
 protected:
  ClusterRangesTest() {
    cluster_.Found("g", "n2");
    cluster_.Add("n2", "n1");
    cluster_.StartRouter();
    MakeRows(cluster_.node("n2"), "s", kRows);
  }

  CommandResult Tool(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {ToolBinary(), "--server", cluster_.router().grpc_address(), "cluster"});
    return RunCommand(arguments);
  }

  // Waits until the node shows this revision.
  void AwaitRevision(const std::string& node, const std::string& store, std::uint64_t revision) {
    CallContext context;
    v1::LookupRequest request = OneLookup(store);
    request.set_min_revision(revision);
    request.mutable_filter()->set_last(1);  // The last rows are in RAM at all nodes.
    v1::LookupResponse response;
    ASSERT_THAT(StubOf(cluster_.node(node))->Lookup(&context, request, &response), IsGrpcOk());
  }

  RouterCluster cluster_;
};

TEST_F(ClusterRangesTest, AllNodesHaveTheRangesThatThePrimaryHasSet) {
  Client client = ClientOf(cluster_.router());
  const std::uint64_t revision = client.GetStore("s")->revision();
  ExpectTwoRanges(client.SplitStore("s", 2, /*dry_run=*/true), {"n1"}, {"n2"});
  absl::StatusOr<admin::v1::StoreRanges> ranges = client.GetRanges("s");
  ASSERT_THAT(ranges, IsOk());
  EXPECT_THAT(ranges->ranges(), IsEmpty());
  EXPECT_EQ(ranges->revision(), revision);

  ranges = client.SplitStore("s", 2);
  ExpectTwoRanges(ranges, {"n1"}, {"n2"});
  EXPECT_EQ(ranges->revision(), revision + 1);
  ExpectTwoRanges(client.MoveRange("s", kStep, {"n1"}, /*dry_run=*/true), {"n1"}, {"n1"});
  ExpectTwoRanges(client.MoveRange("s", 0, {"n2", "n1"}), {"n2", "n1"}, {"n2"});
  for (const char* node : {"n1", "n2"}) {
    AwaitRevision(node, "s", revision + 2);
    ranges = ClientOf(cluster_.node(node)).GetRanges("s");
    ExpectTwoRanges(ranges, {"n2", "n1"}, {"n2"});
    EXPECT_EQ(ranges->revision(), revision + 2);
  }
  // A node answers for its own rows alone, and a router asks each of its own.
  std::uint64_t rows = 0;
  EXPECT_THAT(LookUp(*StubOf(cluster_.router()), "s", &rows), IsGrpcOk());
  EXPECT_EQ(rows, kRows);
  const auto residents = [&](const char* node) {
    const auto answer = client.GetRanges("s", node);
    EXPECT_THAT(answer, IsOk());
    EXPECT_EQ(answer->node(), node);
    return std::pair(answer->ranges(0).resident_count(), answer->ranges(1).resident_count());
  };
  EXPECT_TRUE(AwaitThat([&] { return residents("n1") == std::pair(kStep, kRows - 2 * kStep); }));
  EXPECT_TRUE(AwaitThat([&] { return residents("n2") == std::pair(kStep, kRows - kStep); }));
  const grpc::Status alone = LookUp(*StubOf(cluster_.node("n1")), "s", &rows);
  EXPECT_EQ(alone.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(alone.error_message(), HasSubstr("ask a router of the cluster"));
  EXPECT_THAT(ClientOf(cluster_.node("n1")).GetRanges("s", "n2"),
              StatusIs(absl::StatusCode::kInvalidArgument, "node: this is node n1"));
  EXPECT_THAT(client.GetRanges("s", "n9"),
              StatusIs(absl::StatusCode::kInvalidArgument, "node: node n9 is no replica"));

  ASSERT_EQ(cluster_.node("n1").Stop(SIGTERM), 0);
  cluster_.Restart("n1");
  ExpectTwoRanges(ClientOf(cluster_.node("n1")).GetRanges("s"), {"n2", "n1"}, {"n2"});
  ASSERT_THAT(client.RenameStore("s", "s2"), IsOk());
  EXPECT_EQ(client.GetRanges("s2")->ranges_size(), 2);
  const auto whole = client.SplitStore("s2", 1);
  ASSERT_THAT(whole, IsOk());
  EXPECT_THAT(whole->ranges(), IsEmpty());
  AwaitRevision("n1", "s2", whole->revision());
  EXPECT_THAT(ClientOf(cluster_.node("n1")).GetRanges("s2")->ranges(), IsEmpty());
}

TEST_F(ClusterRangesTest, ARouterFindsANodeThatHasJustJoined) {
  Client client = ClientOf(cluster_.router());
  ASSERT_THAT(client.GetStore("s"), IsOk());  // It has a map of the cluster.
  cluster_.Add("n2", "n3");
  const auto ranges = client.GetRanges("s", "n3");
  ASSERT_THAT(ranges, IsOk());
  EXPECT_EQ(ranges->node(), "n3");
}

TEST_F(ClusterRangesTest, WhatCannotBeSetIsRefusedAndChangesNothing) {
  Client client = ClientOf(cluster_.router());
  ASSERT_THAT(client.SplitStore("s", 2), IsOk());
  const std::uint64_t revision = client.GetStore("s")->revision();
  const auto expect_invalid = [](const absl::StatusOr<admin::v1::StoreRanges>& answer,
                                 const std::string& field, const std::string& text) {
    EXPECT_THAT(answer, StatusIs(absl::StatusCode::kInvalidArgument, field + ": "));
    EXPECT_THAT(answer.status().message(), HasSubstr(text));
    EXPECT_EQ(ErrorReason(answer.status()), "INVALID_OPTION");
    EXPECT_EQ(ErrorMetadata(answer.status())["field"], field);
  };
  for (const bool dry_run : {false, true}) {
    SCOPED_TRACE(dry_run);
    for (const std::uint32_t count : {0u, 257u}) {
      expect_invalid(client.SplitStore("s", count, dry_run), "range_count", "must be in [1, 256]");
    }
    expect_invalid(client.SplitStore("s", 4, dry_run), "range_count",
                   "the 20000 rows of the store have 3 of them");
    expect_invalid(client.MoveRange("s", 1, {"n1"}, dry_run), "begin",
                   "no range of the store begins at 1");
    expect_invalid(client.MoveRange("s", 0, {}, dry_run), "nodes", "must have 1 to 5 nodes");
    expect_invalid(client.MoveRange("s", 0, {"n1", "n3"}, dry_run), "nodes[1]",
                   "node n3 is no replica of the group, which has n1, n2");
    expect_invalid(client.MoveRange("s", 0, {"a b"}, dry_run), "nodes[0]", "is not 1 to 64");
    expect_invalid(client.MoveRange("s", 0, {"n1", "n1"}, dry_run), "nodes[1]", "stands twice");
    for (const auto& answer :
         {client.SplitStore("none", 2, dry_run), client.MoveRange("none", 0, {"n1"}, dry_run),
          client.GetRanges("none")}) {
      EXPECT_EQ(ErrorReason(answer.status()), "STORE_NOT_FOUND");
    }
  }
  EXPECT_FALSE(client.MoveRange("s", 0, {"1", "2", "3", "4", "5", "6"}).ok());
  // A node that follows plans, and changes nothing.
  Client follower = ClientOf(cluster_.node("n1"));
  for (const auto& answer : {follower.SplitStore("s", 3), follower.MoveRange("s", 0, {"n2"})}) {
    EXPECT_EQ(ErrorReason(answer.status()), "STORAGE_FAILED");
    EXPECT_EQ(ErrorMetadata(answer.status())["primary"], "n2");
  }
  EXPECT_EQ(client.GetStore("s")->revision(), revision);
}

TEST_F(ClusterRangesTest, TheToolShowsThePlanAndMakesIt) {
  const std::string table =
      "begin   end  nodes   rows  live rows  bytes of rows\n"
      "    0  8192  n1      8192       8192       64.0 KiB\n"
      " 8192     -  n2     11808      11808       92.2 KiB\n";
  const CommandResult plan = Tool({"split", "s", "--ranges", "2", "--dry-run"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(plan.out, "plan for store s, revision 2: 20000 rows in 2 ranges\n" + table);
  EXPECT_EQ(Tool({"ranges", "s"}).out, "store s, revision 2: 20000 rows, not cut into ranges\n");
  const CommandResult split = Tool({"split", "s", "--ranges", "2"});
  ASSERT_EQ(split.exit_code, 0) << split.err;
  EXPECT_EQ(split.out, plan.out + "done: revision 3 of the store has 2 ranges\n");
  EXPECT_EQ(Tool({"ranges", "s"}).out,
            "store s, revision 3: 20000 rows in 2 ranges\n"
            "begin   end  nodes (rows in RAM)   rows  live rows  bytes of rows\n"
            "    0  8192  n1 100%               8192       8192       64.0 KiB\n"
            " 8192     -  n2 100%              11808      11808       92.2 KiB\n");

  const std::vector<std::string> move = {"move", "s", "--begin", "8192", "--to", "n2,n1"};
  std::vector<std::string> dry_move = move;
  dry_move.push_back("--dry-run");
  const CommandResult planned = Tool(dry_move);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("\n 8192     -  n2,n1"));
  EXPECT_EQ(Tool(move).out, planned.out + "done: revision 4 of the store has 2 ranges\n");
  const std::string json =
      R"({"store":"s","revision":4,"row_count":20000,"ranges":[)"
      R"({"begin":0,"end":8192,"nodes":["n1"],"row_count":8192,"live_row_count":8192,)"
      R"("byte_size":65536},)"
      R"({"begin":8192,"nodes":["n2","n1"],"row_count":11808,"live_row_count":11808,)"
      R"("byte_size":94464}]})"
      "\n";
  EXPECT_EQ(Tool({"ranges", "s", "-o", "json"}).out, json);
  dry_move.insert(dry_move.end(), {"-o", "json"});
  EXPECT_EQ(Tool(dry_move).out, json);

  const CommandResult wrong = Tool({"move", "s", "--begin", "5", "--to", "n1"});
  EXPECT_EQ(wrong.exit_code, 4);
  EXPECT_THAT(wrong.err, HasSubstr("INVALID_OPTION: --begin: no range of the store begins at 5"));
  EXPECT_THAT(Tool({"split", "s", "--ranges", "4"}).err, HasSubstr("INVALID_OPTION: --ranges: "));
  // Before the store is whole again, each node has all rows, which is a change of one range.
  EXPECT_EQ(Tool({"split", "s", "--ranges", "1", "-o", "json"}).out,
            "{\"store\":\"s\",\"revision\":6,\"row_count\":20000,\"ranges\":[]}\n");
}

TEST_F(ClusterRangesTest, ARangeMovesFromANodeThatHasLeft) {
  ASSERT_EQ(Tool({"split", "s", "--ranges", "2"}).exit_code, 0);
  cluster_.node("n1").Stop(SIGKILL);
  ASSERT_EQ(Tool({"remove", "n1"}).exit_code, 0);
  const CommandResult moved = Tool({"move", "s", "--begin", "0", "--to", "n2"});
  ASSERT_EQ(moved.exit_code, 0) << moved.err;
  ExpectTwoRanges(ClientOf(cluster_.router()).GetRanges("s"), {"n2"}, {"n2"});
  // It is a node like any other that is none of the group by now.
  const CommandResult back = Tool({"move", "s", "--begin", "0", "--to", "n1"});
  EXPECT_EQ(back.exit_code, 4);
  EXPECT_THAT(back.err, HasSubstr("node n1 is no replica of the group, which has n2"));
}

TEST_F(ClusterRangesTest, AServerThatCannotAskTheNodesMovesNothing) {
  ASSERT_EQ(Tool({"split", "s", "--ranges", "2"}).exit_code, 0);
  const CommandResult moved =
      RunCommand({ToolBinary(), "--server", cluster_.node("n2").grpc_address(), "cluster", "move",
                  "s", "--begin", "8192", "--to", "n1"});
  EXPECT_EQ(moved.exit_code, 4);
  EXPECT_THAT(moved.err,
              HasSubstr("this is node n2, which answers for itself alone; ask a router"));
  ExpectTwoRanges(ClientOf(cluster_.router()).GetRanges("s"), {"n1"}, {"n2"});
}

TEST(ClusterRangesAloneTest, AServerOfNoGroupSaysSo) {
  const ServerProcess server;
  Client client = *Client::Connect(server.grpc_address(), PatientOptions());
  for (const auto& answer :
       {client.SplitStore("s", 2), client.MoveRange("s", 0, {"n"}), client.GetRanges("s")}) {
    EXPECT_THAT(answer,
                StatusIs(absl::StatusCode::kFailedPrecondition, "This server is no replica"));
    EXPECT_EQ(ErrorReason(answer.status()), "NO_CLUSTER");
  }
}

TEST(ClusterRangesRightsTest, TheyTakeAdminAndLeaveALine) {
  const SecurityFiles files;
  const std::string admin = files.AddIdentity("o", "admin", "*");
  const std::string manage = files.AddIdentity("m", "manage", "*");
  std::vector<std::string> flags = files.Flags(Transport::kPlaintext);
  flags.insert(flags.end(), {"--audit-log", files.Path("audit.log"), "--log-format", "json"});
  RouterCluster cluster;
  cluster.Found("g", "n", flags);
  admin::v1::SplitStoreRequest split;
  split.set_store("s");
  split.set_range_count(1);
  admin::v1::MoveRangeRequest move;
  move.set_store("s");
  move.add_nodes("n");
  admin::v1::GetRangesRequest get;
  get.set_store("s");
  const auto call = [&](const std::string& method, const std::string& token) {
    const std::string request = method == "SplitStore"  ? split.SerializeAsString()
                                : method == "MoveRange" ? move.SerializeAsString()
                                                        : get.SerializeAsString();
    return CallRaw(ChannelTo(cluster.node("n")), "/softlookup.admin.v1.Admin/" + method, request,
                   token)
        .status;
  };
  for (const char* method : {"SplitStore", "MoveRange", "GetRanges"}) {
    EXPECT_EQ(ReasonOf(call(method, manage)), "PERMISSION_DENIED") << method;
    EXPECT_EQ(ReasonOf(call(method, admin)), "STORE_NOT_FOUND") << method;
  }
  ASSERT_EQ(cluster.node("n").Stop(SIGTERM), 0);
  const std::string audit = Contents(files.Path("audit.log"));
  for (const char* method : {"SplitStore", "MoveRange", "GetRanges"}) {
    EXPECT_THAT(audit, HasSubstr(absl::StrCat("\"method\":\"", method,
                                              "\",\"store\":\"s\",\"result\":\"NOT_FOUND\"")));
    EXPECT_THAT(audit, HasSubstr("\"event\":\"denial\",\"identity\":\"m\""));
  }
}

}  // namespace
}  // namespace softlookup::testing
