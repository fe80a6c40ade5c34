// The way out when a group cannot be repaired, as docs/cluster.md has it, with real servers and
// real etcds.
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/integration/router_cluster.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

CommandResult Tool(const ServerProcess& server, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {ToolBinary(), "--server", server.grpc_address()});
  return RunCommand(arguments);
}

TEST(RescueTest, ABackupOfTheLastServerRestoresItsStoresInAnotherCluster) {
  constexpr std::int64_t kRows = 20'000;
  RouterCluster lost;
  lost.Found("g", "n1");
  lost.Add("n1", "n2");
  lost.Add("n1", "n3", /*etcd=*/{}, {"--backup-dir", lost.Path("backups")});
  const auto stub = StubOf(lost.node("n1"));
  ASSERT_THAT(CreateStore(*stub, "acme/users"), IsGrpcOk());
  v1::AppendRequest rows;
  rows.set_store("acme/users");
  *rows.mutable_keys() = Message(NormalFloats(kRows, 1), 1);
  *rows.mutable_values() = Message(NormalFloats(kRows, 2), 1);
  ASSERT_THAT(Append(*stub, rows), IsGrpcOk());
  ASSERT_EQ(Tool(lost.node("n1"), {"cluster", "split", "acme/users", "--ranges", "2"}).exit_code,
            0);
  lost.AwaitEqual("n1");
  for (const char* node : {"n1", "n2"}) lost.node(node).Stop(SIGKILL);
  lost.etcd().Kill(0);

  const CommandResult backup = Tool(lost.node("n3"), {"backup", "create", "rescue"});
  ASSERT_EQ(backup.exit_code, 0) << backup.err;
  RouterCluster fresh;
  fresh.Found("g", "n1", {"--backup-dir", fresh.Path("backups")});
  std::filesystem::copy(lost.Path("backups") + "/rescue", fresh.Path("backups") + "/rescue",
                        std::filesystem::copy_options::recursive);
  // On a busy machine the node can lose its lease meanwhile. Nothing is restored then.
  CommandResult restore;
  do {
    restore = Tool(fresh.node("n1"), {"backup", "restore-store", "rescue", "acme/users"});
  } while (restore.exit_code != 0 && absl::StrContains(restore.err, "The write was not made"));
  ASSERT_EQ(restore.exit_code, 0) << restore.err;
  const absl::StatusOr<v1::Store> restored = ClientOf(fresh.node("n1")).GetStore("acme/users");
  ASSERT_THAT(restored, IsOk());
  EXPECT_EQ(restored->row_count(), kRows);
  v1::LookupResponse answer;
  CallContext context;
  const v1::LookupRequest request = OneLookup("acme/users");
  ASSERT_THAT(StubOf(fresh.node("n1"))->Lookup(&context, request, &answer), IsGrpcOk());
  EXPECT_EQ(answer.stats(0).counted_rows(), kRows);
}

}  // namespace
}  // namespace softlookup::testing
