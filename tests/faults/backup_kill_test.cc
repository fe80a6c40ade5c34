// Kills the server with SIGKILL while it makes backups under appends: what is called a backup
// afterwards must be one. A failure prints SOFTLOOKUP_TEST_SEED=N; with that in the environment the
// run begins with it, as far as the machine's timing allows.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "softlookup/client.h"
#include "tests/faults/cycles.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/random.h"
#include "tests/testing/server_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

class BackupKillTest : public ::testing::Test {
 protected:
  // A row more with every append: the value of row i is i.
  static absl::StatusOr<v1::AppendResponse> AppendOne(Client& client, std::uint64_t row) {
    const std::vector<float> value = {static_cast<float>(row)};
    return client.Append("s", {value, 1, 1}, {value, 1, 1});
  }

  void Start() {
    server_ = nullptr;
    server_ = std::make_unique<ServerProcess>(std::vector<std::string>{
        "--data-dir", directory_.path() + "/data", "--backup-dir", Backups()});
    client_ = std::make_unique<Client>(*Client::Connect(server_->grpc_address(), PatientOptions()));
  }

  std::string Backups() const { return directory_.path() + "/backups"; }

  // Each until a call fails: the server is gone.
  void Append() {
    for (std::uint64_t row = client_->GetStore("s")->row_count();; ++row) {
      if (!AppendOne(*client_, row).ok()) return;
      absl::MutexLock lock(&mutex_);
      acknowledged_rows_ = row + 1;
    }
  }
  void BackUp() {
    for (;;) {
      std::uint64_t rows = 0;
      {
        absl::MutexLock lock(&mutex_);
        rows = acknowledged_rows_;
      }
      const std::string name = std::to_string(++last_backup_);
      rows_before_[name] = rows;
      if (!client_->CreateBackup(name).ok()) return;
      absl::MutexLock lock(&mutex_);
      ++acknowledged_backups_;
      newest_acknowledged_ = name;
    }
  }

  void AwaitBackups(std::uint64_t count) {
    absl::MutexLock lock(&mutex_);
    const std::uint64_t enough = acknowledged_backups_ + count;
    const auto reached = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return acknowledged_backups_ >= enough;
    };
    mutex_.Await(absl::Condition(&reached));
  }

  bool IsThere(const std::string& name) const {
    return std::filesystem::exists(Backups() + "/" + name);
  }

  // A server on what the backup restores has all that was acknowledged before it, and no gap.
  void CheckBackup(const std::string& name) {
    const TemporaryDirectory target;
    const CommandResult restored = RunCommand(
        {ToolBinary(), "backup", "restore", Backups() + "/" + name, target.path() + "/data"});
    ASSERT_EQ(restored.exit_code, 0) << restored.err;
    const ServerProcess server({"--data-dir", target.path() + "/data"});
    Client client = *Client::Connect(server.grpc_address(), PatientOptions());
    std::uint64_t rows = 0;
    const auto check = [&](const v1::ReadRowsResponse& page) {
      for (const v1::Row& row : page.rows()) {
        const auto value = FloatMatrix::FromProto(row.value());
        EXPECT_EQ(value->data, std::vector<float>{static_cast<float>(rows)});
        ++rows;
      }
      return true;
    };
    ASSERT_THAT(client.ReadRows("s", {}, check), IsOk());
    EXPECT_GE(rows, rows_before_.at(name));
    EXPECT_THAT(AppendOne(client, rows), IsOk());
  }

  // The last that was acknowledged, and the one that was being made if it is there.
  void CheckBackups() {
    ASSERT_TRUE(IsThere(newest_acknowledged_)) << newest_acknowledged_;
    ASSERT_NO_FATAL_FAILURE(CheckBackup(newest_acknowledged_));
    const std::string cut = std::to_string(last_backup_);
    if (!IsThere(cut)) {
      ++cut_count_;
    } else if (cut != newest_acknowledged_) {
      ASSERT_NO_FATAL_FAILURE(CheckBackup(cut));
    }
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
  std::uint64_t last_backup_ = 0;
  std::map<std::string, std::uint64_t> rows_before_;  // A backup was begun.
  int cut_count_ = 0;
  absl::Mutex mutex_;
  std::uint64_t acknowledged_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t acknowledged_backups_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string newest_acknowledged_;  // Guarded while threads run.
};

TEST_F(BackupKillTest, WhatIsCalledABackupIsWholeWheneverTheServerWasKilled) {
  const std::uint64_t seed = FirstSeed();
  const std::uint64_t cycles = static_cast<std::uint64_t>(Cycles(10, 100));
  SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 generator(seed);
  Start();
  v1::Store store;
  store.set_name("s");
  store.set_key_dim(1);
  store.set_value_dim(1);
  ASSERT_THAT(client_->CreateStore(store), IsOk());
  for (std::uint64_t cycle = 0; cycle < cycles; ++cycle) {
    std::thread appends([this] { Append(); }), backups([this] { BackUp(); });
    AwaitBackups(1 + generator() % 4);
    // Somewhere in the next one.
    for (std::uint64_t calls = generator() % 30; calls > 0; --calls) (void)client_->GetStore("s");
    EXPECT_EQ(server_->Stop(SIGKILL), 128 + SIGKILL);
    appends.join();
    backups.join();
    ASSERT_NO_FATAL_FAILURE(CheckBackups()) << "cycle " << cycle;
    Start();
    const absl::MutexLock lock(&mutex_);
    ASSERT_GE(client_->GetStore("s")->row_count(), acknowledged_rows_);
  }
  ASSERT_THAT(client_->CreateBackup("last"), IsOk());
  for (const auto& entry : std::filesystem::directory_iterator(Backups())) {
    EXPECT_NE(entry.path().filename().string()[0], '.') << entry.path();
  }
  std::printf("%lu kills, %d of %lu backups cut short\n", cycles, cut_count_, last_backup_);
}

}  // namespace
}  // namespace softlookup::testing
