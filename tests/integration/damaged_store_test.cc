// A store whose bytes on disk are damaged, as callers and the operator see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tests/integration/integration_test.h"
#include "tests/testing/damage_table.h"
#include "tests/testing/server_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kDim = 16;
constexpr float kTornComponent = 2.5f;

class DamagedStoreTest : public ::testing::Test {
 protected:
  void Start() {
    server_.emplace(std::vector<std::string>{"--data-dir", data_, "--backup-dir", backups_,
                                             "--log-level", "warning"},
                    log_);
  }
  void Stop() {
    EXPECT_EQ(server_->Stop(SIGTERM), 0);
    server_.reset();
  }

  Client Connect() const { return *Client::Connect(server_->grpc_address()); }
  CommandResult Tool(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {ToolBinary(), "--server", server_->grpc_address()});
    return RunCommand(arguments);
  }

  // Makes a store whose components all are `component`.
  void Fill(const std::string& name, float component) const {
    Client client = Connect();
    ASSERT_THAT(client.CreateStore(StoreMessage(name, kDim, kDim)), IsOk());
    const std::vector<float> rows(1000 * kDim, component);
    for (int i = 0; i < 4; ++i) {
      ASSERT_THAT(client.Append(name, View(rows, kDim), View(rows, kDim)), IsOk());
    }
  }

  TemporaryDirectory directory_;
  const std::string data_ = directory_.path() + "/data", backups_ = directory_.path() + "/backups";
  const std::string log_ = directory_.path() + "/log";
  std::optional<ServerProcess> server_;
};

TEST_F(DamagedStoreTest, IsListedWithItsDamageAndCanBeDeleted) {
  Start();
  Fill("people", 1.25f);
  Fill("torn", kTornComponent);
  Fill("vectors", 3.75f);
  Stop();
  DamageRow(OnlyTableIn(data_), std::vector<float>(2 * kDim, kTornComponent));

  Start();
  {
    Client client = Connect();
    const auto stores = client.ListStores();
    ASSERT_THAT(stores, IsOk());
    ASSERT_EQ(stores->size(), 3u);
    EXPECT_EQ((*stores)[0].damage(), "");
    const v1::Store& torn = (*stores)[1];
    EXPECT_EQ(torn.name(), "torn");
    EXPECT_THAT(torn.damage(), HasSubstr("checksum"));
    EXPECT_EQ(torn.key_dim(), kDim);
    EXPECT_EQ(torn.row_count(), 4000u);
    EXPECT_EQ(torn.live_row_count(), 0u);
    EXPECT_EQ(torn.byte_size(), 0u);
    const auto got = client.GetStore("torn");
    ASSERT_THAT(got, IsOk());
    EXPECT_THAT(*got, IsMessage(torn));
    const std::vector<float> query(kDim, 1);
    const absl::Status refused = client.Lookup("torn", View(query, kDim)).status();
    EXPECT_THAT(refused,
                StatusIs(absl::StatusCode::kDataLoss, "; restore a backup, or delete the store"));
    EXPECT_EQ(client.CreateStore(StoreMessage("torn", 1, 1)).status().code(),
              absl::StatusCode::kAlreadyExists);
    const auto is_damaged =
        StatusIs(absl::StatusCode::kDataLoss, "; restore a backup, or delete the store");
    EXPECT_THAT(client.RenameStore("torn", "mended"), is_damaged);
    EXPECT_THAT(client.RenameStore("people", "torn", {.replace = true}), is_damaged);
    EXPECT_EQ(client.RenameStore("people", "torn").status().code(),
              absl::StatusCode::kAlreadyExists);
  }
  EXPECT_THAT(Tool({"store", "list"}).out, HasSubstr("damaged\n"));
  EXPECT_THAT(Tool({"store", "get", "torn"}).out, HasSubstr("\ndamaged      "));
  const CommandResult refused = Tool({"lookup", "torn", "--query", "1"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("DATA_LOSS"), HasSubstr("restore a backup")));
  const CommandResult deleted = Tool({"store", "delete", "torn"});
  EXPECT_EQ(deleted.exit_code, 0) << deleted.err;
  Stop();

  Start();
  EXPECT_THAT(Tool({"store", "list"}).out,
              AllOf(HasSubstr("people"), HasSubstr("vectors"), Not(HasSubstr("torn")),
                    Not(HasSubstr("damaged"))));
  Fill("torn", 1);
  EXPECT_EQ(Connect().GetStore("torn")->damage(), "");
  EXPECT_EQ(Connect().GetStore("people")->live_row_count(), 4000u);
  EXPECT_EQ(Connect().GetStore("vectors")->live_row_count(), 4000u);
  Stop();
}

TEST_F(DamagedStoreTest, ABackupThatHasItSaysSo) {
  Start();
  Fill("people", 1.25f);
  Fill("torn", kTornComponent);
  const CommandResult before = Tool({"backup", "create", "before"});
  EXPECT_EQ(before.exit_code, 0);
  EXPECT_EQ(before.err, "");
  EXPECT_THAT(Tool({"backup", "list"}).out, Not(HasSubstr("damaged")));
  Stop();
  // The backup shares the table with the data directory, and must not be damaged with it.
  const std::filesystem::path table = OnlyTableIn(data_);
  std::filesystem::copy_file(table, directory_.path() + "/table");
  std::filesystem::rename(directory_.path() + "/table", table);
  DamageRow(table, std::vector<float>(2 * kDim, kTornComponent));

  Start();
  const CommandResult after = Tool({"backup", "create", "after"});
  EXPECT_EQ(after.exit_code, 0);
  EXPECT_THAT(after.err, AllOf(HasSubstr("warning: "), HasSubstr("damage: torn;"),
                               HasSubstr("keep an older backup")));
  EXPECT_THAT(Tool({"backup", "list"}).out,
              AllOf(HasSubstr("damaged stores\n"), HasSubstr(" torn\n")));
  EXPECT_THAT(Tool({"backup", "list", "-o", "json"}).out,
              HasSubstr("\"damaged_stores\":[\"torn\"]"));
  for (const char* name : {"before", "after"}) {
    const std::string backup = backups_ + "/" + name;
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"backup", "verify", backup},
          {"backup", "restore", backup, directory_.path() + "/restored-" + name}}) {
      const CommandResult result = Tool(arguments);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_EQ(result.err.find("the damage: torn;") != std::string::npos,
                std::string(name) == "after")
          << result.err;
    }
  }
  Stop();
  std::ifstream in(log_);
  const std::string log((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(log, HasSubstr("backup after has the damage of stores that could not be loaded: "
                             "torn;"));
}

}  // namespace
}  // namespace softlookup::testing
