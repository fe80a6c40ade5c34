#include "core/storage/empty_tables.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "core/storage/background_errors.h"
#include "core/storage/open_database.h"
#include "core/storage/synced_sequence.h"
#include "tests/faults/faulty_env.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using Fault = FaultyFileSystem::Fault;

class EmptyTablesTest : public ::testing::TestWithParam<Fault> {
 protected:
  EmptyTablesTest() {
    auto db =
        OpenDatabase(LogOptions(env_.get(), std::make_shared<BackgroundErrors>()),
                     directory_.path(), SyncedSequence(directory_.path() + "/" + kSyncedName));
    EXPECT_THAT(db, IsOk());
    db_ = *std::move(db);
  }

  void Put(const std::string& key) {
    ASSERT_TRUE(db_->Put(rocksdb::WriteOptions(), key, "value").ok());
    ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  }
  void DeleteRange(const std::string& begin, const std::string& end) {
    ASSERT_TRUE(
        db_->DeleteRange(rocksdb::WriteOptions(), db_->DefaultColumnFamily(), begin, end).ok());
    ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  }
  rocksdb::Status Compact() {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    return db_->CompactRange(options, nullptr, nullptr);
  }
  bool Has(const std::string& key) {
    std::string value;
    return db_->Get(rocksdb::ReadOptions(), key, &value).ok();
  }

  TemporaryDirectory directory_;
  const std::shared_ptr<FaultyFileSystem> files_ = std::make_shared<FaultyFileSystem>();
  const std::unique_ptr<rocksdb::Env> faulty_env_ = MakeEnv(files_);
  const std::unique_ptr<rocksdb::Env> env_ = HideErrorsOfEmptyTables(*faulty_env_);
  std::unique_ptr<rocksdb::DB> db_;
};

INSTANTIATE_TEST_SUITE_P(Faults, EmptyTablesTest,
                         ::testing::Values(Fault::kWriteFails, Fault::kSyncFails, Fault::kDiskFull),
                         [](const auto& info) {
                           return info.param == Fault::kWriteFails  ? "WriteFails"
                                  : info.param == Fault::kSyncFails ? "SyncFails"
                                                                    : "DiskFull";
                         });

TEST_P(EmptyTablesTest, AreNotNeeded) {
  Put("a");
  DeleteRange("a", "b");
  // A write is first asked for a new file, which may fail: RocksDB has no table then.
  files_->FailAt(GetParam(), GetParam() == Fault::kSyncFails ? 1 : 2, /*stays=*/false);
  EXPECT_TRUE(Compact().ok());
  EXPECT_TRUE(files_->has_failed());
  EXPECT_TRUE(absl::EndsWith(files_->failed_file(), ".sst")) << files_->failed_file();
  EXPECT_FALSE(Has("a"));
}

TEST_P(EmptyTablesTest, OthersAre) {
  Put("a");
  Put("c");
  DeleteRange("a", "b");
  files_->FailAt(GetParam(), GetParam() == Fault::kSyncFails ? 1 : 2, /*stays=*/false);
  EXPECT_FALSE(Compact().ok());
  EXPECT_TRUE(absl::EndsWith(files_->failed_file(), ".sst")) << files_->failed_file();
  EXPECT_FALSE(Has("a"));
  EXPECT_TRUE(Has("c"));
}

TEST_P(EmptyTablesTest, OfADeletionThatIsStillNeededAreToo) {
  Put("a");
  const rocksdb::Snapshot* snapshot = db_->GetSnapshot();
  DeleteRange("a", "b");
  files_->FailAt(GetParam(), GetParam() == Fault::kSyncFails ? 1 : 2, /*stays=*/false);
  EXPECT_FALSE(Compact().ok());
  EXPECT_FALSE(Has("a"));
  db_->ReleaseSnapshot(snapshot);
}

}  // namespace
}  // namespace softlookup::testing
