#include "core/storage/open_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/storage/records.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::testing::HasSubstr;

class OpenDatabaseTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<rocksdb::DB>> Open() {
    return OpenDatabase(LogOptions(rocksdb::Env::Default(), errors_), directory_.path(), synced_);
  }

  const softlookup::testing::TemporaryDirectory directory_;
  const std::shared_ptr<BackgroundErrors> errors_ = std::make_shared<BackgroundErrors>();
  SyncedSequence synced_{directory_.path() + "/" + kSyncedName};
};

TEST_F(OpenDatabaseTest, ANewDatabaseHasNoFormatUntilOneIsWritten) {
  absl::Status damage;
  EXPECT_FALSE(HasDatabase(directory_.path(), RocksdbAccess::kRead, damage));
  EXPECT_THAT(damage, IsOk());
  auto db = Open();
  ASSERT_THAT(db, IsOk());
  EXPECT_TRUE(HasDatabase(directory_.path(), RocksdbAccess::kWrite, damage));
  auto format = ReadFormat(**db);
  ASSERT_THAT(format, IsOk());
  EXPECT_FALSE(*format);
  ASSERT_TRUE((*db)->Put(rocksdb::WriteOptions(), FormatKey(), EncodeFormat()).ok());
  format = ReadFormat(**db);
  ASSERT_THAT(format, IsOk());
  EXPECT_TRUE(*format);
}

TEST_F(OpenDatabaseTest, ADirectoryWithFilesButNoRootIsDamaged) {
  for (const char* name : {"000002.sst", "000001.sst"}) {
    std::ofstream(directory_.path() + "/" + name) << "rows";
  }
  for (const RocksdbAccess access : {RocksdbAccess::kRead, RocksdbAccess::kWrite}) {
    absl::Status damage;
    EXPECT_FALSE(HasDatabase(directory_.path(), access, damage));
    EXPECT_EQ(ReasonOf(damage), "DATA_LOSS");
    EXPECT_THAT(damage.message(),
                HasSubstr("CURRENT is missing beside 000001.sst in " + directory_.path()));
    EXPECT_THAT(damage.message(), HasSubstr("restore a backup"));
  }
  EXPECT_EQ(ReasonOf(Open().status()), "DATA_LOSS");
}

// Calls `harm` with the file of a database whose name has `part`. Returns the error of opening the
// database then. Its SyncedSequence says `synced`.
absl::Status ErrorAfter(const std::string& part, std::uint64_t synced,
                        const std::function<void(const std::filesystem::path&)>& harm) {
  const softlookup::testing::TemporaryDirectory directory;
  const auto errors = std::make_shared<BackgroundErrors>();
  SyncedSequence sequence(directory.path() + "/" + kSyncedName);
  const auto open = [&] {
    return OpenDatabase(LogOptions(rocksdb::Env::Default(), errors), directory.path(), sequence);
  };
  {
    const auto db = open();
    EXPECT_THAT(db, IsOk());
    EXPECT_TRUE((*db)->Put(rocksdb::WriteOptions(), "key", "value").ok());
    EXPECT_TRUE((*db)->Flush(rocksdb::FlushOptions()).ok());
    if (synced > 0) sequence.Set(synced);
  }
  std::filesystem::path harmed;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (absl::StrContains(entry.path().string(), part)) harmed = entry.path();
  }
  EXPECT_FALSE(harmed.empty()) << part;
  harm(harmed);
  return open().status();
}

TEST(OpenDatabaseErrorTest, ADatabaseThatLacksATableOrItsManifestTellsHowToRestore) {
  for (const std::uint64_t synced : {0, 1}) {
    for (const char* part : {".sst", "MANIFEST-"}) {
      const absl::Status status = ErrorAfter(
          part, synced, [](const std::filesystem::path& file) { std::filesystem::remove(file); });
      EXPECT_EQ(ReasonOf(status), "DATA_LOSS") << status;
      EXPECT_THAT(status.message(), HasSubstr(part)) << status;
      EXPECT_THAT(status.message(), HasSubstr("No such file or directory"));
      EXPECT_THAT(status.message(), HasSubstr("softlookup backup restore "));
    }
  }
}

TEST(OpenDatabaseErrorTest, ATableThatHasLostItsEndIsNamedWithBothSizes) {
  for (const std::uint64_t synced : {0, 1}) {
    std::string expected;
    const absl::Status status = ErrorAfter(".sst", synced, [&](const std::filesystem::path& table) {
      expected = absl::StrCat(table.filename().string(), " has 100 bytes instead of ",
                              std::filesystem::file_size(table));
      std::filesystem::resize_file(table, 100);
    });
    EXPECT_EQ(ReasonOf(status), "DATA_LOSS") << status;
    EXPECT_THAT(status.message(), HasSubstr(expected));
    EXPECT_THAT(status.message(), HasSubstr("softlookup backup restore "));
  }
}

TEST_F(OpenDatabaseTest, ADatabaseThatCouldNotBeBegunIsSeenAndCanBeBegun) {
  for (const char* name : {"MANIFEST-000001", "OPTIONS-000003", "IDENTITY"}) {
    std::ofstream(directory_.path() + "/" + name) << "begun";
    absl::Status damage;
    EXPECT_FALSE(HasDatabase(directory_.path(), RocksdbAccess::kRead, damage));
    EXPECT_EQ(ReasonOf(damage), "DATA_LOSS");
    damage = absl::OkStatus();
    EXPECT_FALSE(HasDatabase(directory_.path(), RocksdbAccess::kWrite, damage));
    EXPECT_THAT(damage, IsOk());
  }
  EXPECT_THAT(Open(), IsOk());
}

TEST_F(OpenDatabaseTest, ADatabaseThatEndsBeforeTheSyncedChangeHasLostSome) {
  ASSERT_THAT(Open(), IsOk());
  synced_.Set(1000);
  EXPECT_EQ(ReasonOf(Open().status()), "DATA_LOSS");
  rocksdb::FileLock* lock = nullptr;
  EXPECT_EQ(ReasonOf(OpenDatabaseToRead(LogOptions(rocksdb::Env::Default(), errors_),
                                        directory_.path(), synced_, lock)
                         .status()),
            "DATA_LOSS");
  ASSERT_NE(lock, nullptr);
  rocksdb::Env::Default()->UnlockFile(lock).PermitUncheckedError();
}

TEST_F(OpenDatabaseTest, ADatabaseThatIsOpenIsInUse) {
  const auto db = Open();
  ASSERT_THAT(db, IsOk());
  rocksdb::FileLock* lock = nullptr;
  EXPECT_EQ(ReasonOf(OpenDatabaseToRead(LogOptions(rocksdb::Env::Default(), errors_),
                                        directory_.path(), synced_, lock)
                         .status()),
            "DIRECTORY_IN_USE");
  EXPECT_EQ(lock, nullptr);
}

}  // namespace
}  // namespace softlookup
