#include "core/storage/log_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/storage/records.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;

// What the database does after errors of the file system is tested in tests/faults.
class LogDatabaseTest : public ::testing::Test {
 protected:
  std::unique_ptr<LogDatabase> OpenOrFail(RocksdbAccess access) {
    auto database =
        std::make_unique<LogDatabase>(directory_.path(), access, rocksdb::Env::Default());
    EXPECT_THAT(database->Open(), IsOk());
    return database;
  }

  // The value of `key`, empty if there is none.
  static std::string ValueOf(const LogDatabase& database, const std::string& key) {
    std::string value;
    EXPECT_THAT(database.Use([&](rocksdb::DB& db) {
      db.Get(rocksdb::ReadOptions(), key, &value).PermitUncheckedError();
      return absl::OkStatus();
    }),
                IsOk());
    return value;
  }

  const testing::TemporaryDirectory directory_;
};

rocksdb::WriteBatch Record(const std::string& key, const std::string& value) {
  rocksdb::WriteBatch changes;
  EXPECT_TRUE(changes.Put(key, value).ok());
  return changes;
}

TEST_F(LogDatabaseTest, WhatIsWrittenIsThereWhenItIsOpenedAgain) {
  {
    const auto database = OpenOrFail(RocksdbAccess::kWrite);
    rocksdb::WriteBatch synced = Record("a", "1");
    EXPECT_THAT(database->Write(synced, Sync::kYes, /*makes_room=*/false), IsOk());
    rocksdb::WriteBatch unsynced = Record("b", "2");
    EXPECT_THAT(database->Write(unsynced, Sync::kNo, /*makes_room=*/true), IsOk());
    EXPECT_FALSE(database->has_failed());
  }
  const auto database = OpenOrFail(RocksdbAccess::kRead);
  EXPECT_EQ(ValueOf(*database, "a"), "1");
  EXPECT_EQ(ValueOf(*database, "b"), "2");
  // Opening it to write said what format it has.
  EXPECT_NE(ValueOf(*database, FormatKey()), "");
}

TEST_F(LogDatabaseTest, TheResultOfUseIsTheCallers) {
  const auto database = OpenOrFail(RocksdbAccess::kWrite);
  EXPECT_EQ(database->Use([](rocksdb::DB&) { return absl::NotFoundError("none"); }),
            absl::NotFoundError("none"));
}

TEST_F(LogDatabaseTest, WhatIsDeletedLeavesNoRecord) {
  const auto database = OpenOrFail(RocksdbAccess::kWrite);
  rocksdb::WriteBatch changes = Record("a", "1");
  ASSERT_THAT(database->Write(changes, Sync::kYes, /*makes_room=*/false), IsOk());
  const KeyRange range{.begin = "a", .end = "b"};
  rocksdb::WriteBatch deletion;
  ASSERT_TRUE(deletion.DeleteRange(range.begin, range.end).ok());
  ASSERT_THAT(database->Write(deletion, Sync::kYes, /*makes_room=*/true), IsOk());
  database->DropDeleted({range});
  EXPECT_EQ(ValueOf(*database, "a"), "");
}

using LogDatabaseDeathTest = LogDatabaseTest;

TEST_F(LogDatabaseDeathTest, ChangesThatMakeRoomAreSmall) {
  LogDatabase database(directory_.path(), RocksdbAccess::kWrite, rocksdb::Env::Default());
  rocksdb::WriteBatch changes =
      Record("a", std::string(LogDatabase::kFullDiskChangesBytesMax + 1, 'x'));
  EXPECT_DEATH(database.Write(changes, Sync::kYes, /*makes_room=*/true).IgnoreError(),
               "kFullDiskChangesBytesMax");
}

}  // namespace
}  // namespace softlookup
