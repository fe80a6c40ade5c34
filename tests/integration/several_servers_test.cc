// Clients that name all nodes of a group: their writes find the primary, and go on when it is lost.
// With the real server and a real etcd.
#include <signal.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/add_replica.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

// The nodes n, which is the primary at first, m and o.
class SeveralServersTest : public ::testing::Test {
 protected:
  SeveralServersTest() {
    for (const std::string node : {"n", "m", "o"}) {
      if (node != "n") Add(node);
      nodes_.push_back(std::make_unique<ServerProcess>(std::vector<std::string>{
          "--data-dir", directory_.path() + "/" + node, "--cluster-etcd", etcd_.endpoints()[0],
          "--cluster", "c", "--group", "g", "--node", node, "--cluster-listen", "127.0.0.1:0"}));
    }
    // Until the group bears the loss of a node, which it does from an entry that all have on.
    Client client = ClientOf({0});
    EXPECT_THAT(client.CreateStore(StoreMessage("first", 1, 1)), IsOk());
    EXPECT_TRUE(AwaitThat([&] { return client.GetGroup()->copies() >= 2; }));
  }

  void Add(const std::string& node) {
    Client client = ClientOf({0});
    AddReplicaPatiently(client, node);
  }

  // The addresses of nodes, in this order.
  std::string AddressesOf(const std::vector<std::size_t>& nodes) const {
    std::string addresses;
    for (const std::size_t node : nodes) {
      absl::StrAppend(&addresses, addresses.empty() ? "" : ",", nodes_[node]->grpc_address());
    }
    return addresses;
  }
  Client ClientOf(const std::vector<std::size_t>& nodes) const {
    return *Client::Connect(AddressesOf(nodes), PatientOptions());
  }

  const TemporaryDirectory directory_;
  const EtcdMembers etcd_{1};
  std::vector<std::unique_ptr<ServerProcess>> nodes_;
};

TEST_F(SeveralServersTest, AWriteFindsThePrimaryWhereverItIsNamed) {
  EXPECT_THAT(ClientOf({1}).CreateStore(StoreMessage("s", 1, 1)),
              StatusIs(absl::StatusCode::kUnavailable, "node n is"));
  EXPECT_THAT(ClientOf({1, 0}).CreateStore(StoreMessage("s", 1, 1)), IsOk());
  EXPECT_THAT(ClientOf({1, 2, 0}).CreateStore(StoreMessage("t", 1, 1)), IsOk());
  EXPECT_THAT(ClientOf({1, 2}).CreateStore(StoreMessage("u", 1, 1)),
              StatusIs(absl::StatusCode::kUnavailable, "node n is"));
  const CommandResult tool = RunCommand({ToolBinary(), "--server", AddressesOf({2, 1, 0}), "store",
                                         "create", "u", "--key-dim", "1", "--value-dim", "1"});
  EXPECT_EQ(tool.exit_code, 0) << tool.err;
}

TEST_F(SeveralServersTest, AStreamWithAWriterGoesOnAtTheNextPrimary) {
  Client client = ClientOf({0, 1, 2});
  ASSERT_THAT(client.CreateStore(StoreMessage("s", 1, 1)), IsOk());
  AppendStream stream = *client.OpenAppendStream("s", {.writer = "w"});
  std::uint64_t rows = 0;
  const auto append = [&] {
    const std::vector<float> row = {static_cast<float>(rows++)};
    ASSERT_THAT(stream.Append(View(row, 1), View(row, 1)), IsOk());
  };
  while (stream.acknowledged().acknowledged_rows < 50) append();
  ASSERT_EQ(nodes_[0]->Stop(SIGKILL), 128 + SIGKILL);
  const std::uint64_t before = stream.acknowledged().acknowledged_rows;
  while (stream.acknowledged().acknowledged_rows < before + 200) append();
  const absl::StatusOr<AppendSummary> summary = stream.Finish();
  ASSERT_THAT(summary, IsOk());
  EXPECT_EQ(summary->acknowledged_rows, rows);
  EXPECT_GT(summary->reconnections, 0u);

  // A write that is made once finds the primary, too.
  EXPECT_THAT(client.CreateStore(StoreMessage("t", 1, 1)), IsOk());
  for (const std::size_t node : {1, 2}) {
    Client reader = ClientOf({0, node});
    ASSERT_TRUE(AwaitThat([&] { return reader.GetStore("s")->revision() >= summary->revision; }));
    std::uint64_t read = 0;
    EXPECT_THAT(reader.ReadRows("s", {},
                                [&](const v1::ReadRowsResponse& page) {
                                  for (const v1::Row& row : page.rows()) {
                                    EXPECT_EQ(Floats(row.value())[0], static_cast<float>(read++));
                                  }
                                  return true;
                                }),
                IsOk());
    EXPECT_EQ(read, rows);
  }
}

}  // namespace
}  // namespace softlookup::testing
