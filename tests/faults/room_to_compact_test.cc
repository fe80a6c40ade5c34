// RocksDB compacts tables by itself only while the disk has room for that.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/storage/log_database.h"
#include "core/storage/open_database.h"
#include "core/storage/records.h"
#include "core/storage/table_files.h"
#include "tests/faults/faulty_env.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

constexpr std::uint64_t kTableBytes = std::uint64_t{2} << 20;

class RoomToCompactTest : public ::testing::Test {
 protected:
  void Open() {
    database_ = nullptr;  // Two cannot have it open.
    database_ = std::make_unique<LogDatabase>(directory_.path(), RocksdbAccess::kWrite, env_.get());
    ASSERT_THAT(database_->Open(), IsOk());
  }
  // Writes a table of kTableBytes. The write before it sees the tables that there were.
  void WriteTable(std::uint64_t number) {
    rocksdb::WriteBatch changes;
    const std::string key = EncodeKey({.store = 1, .kind = RecordKind::kRows, .number = number});
    ASSERT_TRUE(changes.Put(key, std::string(kTableBytes, 'v')).ok());
    ASSERT_THAT(database_->Write(changes, Sync::kYes, /*makes_room=*/false), IsOk());
    ASSERT_THAT(database_->Use([](rocksdb::DB& db) {
      EXPECT_TRUE(db.Flush(rocksdb::FlushOptions()).ok());
      return absl::OkStatus();
    }),
                IsOk());
  }
  bool CompactsByItself() {
    bool compacts = false;
    EXPECT_THAT(database_->Use([&](rocksdb::DB& db) {
      compacts = !db.GetOptions().disable_auto_compactions;
      return absl::OkStatus();
    }),
                IsOk());
    return compacts;
  }

  const TemporaryDirectory directory_;
  const std::shared_ptr<FaultyFileSystem> files_ = std::make_shared<FaultyFileSystem>();
  const std::unique_ptr<rocksdb::Env> env_ = MakeEnv(files_);
  std::unique_ptr<LogDatabase> database_;
};

TEST_F(RoomToCompactTest, IsAskedForWhenTheDatabaseIsOpened) {
  Open();
  WriteTable(1);
  EXPECT_FALSE(CompactsByItself());  // Not allowed yet.
  for (const bool has_room : {true, false, true}) {
    Open();
    files_->SetFreeBytes(kRoomToReopen + (has_room ? 2 : 0) * kTableBytes);
    database_->AllowTableCompaction();
    EXPECT_EQ(CompactsByItself(), has_room);
  }
}

TEST_F(RoomToCompactTest, IsAskedForAgainWhenThereAreOtherTables) {
  Open();
  files_->SetFreeBytes(kRoomToReopen + kTableBytes);
  database_->AllowTableCompaction();
  EXPECT_TRUE(CompactsByItself());  // There is no table yet.
  WriteTable(1);
  WriteTable(2);
  EXPECT_FALSE(CompactsByItself());
  files_->SetFreeBytes(kRoomToReopen + 10 * kTableBytes);
  WriteTable(3);
  EXPECT_TRUE(CompactsByItself());
}

}  // namespace
}  // namespace softlookup::testing
