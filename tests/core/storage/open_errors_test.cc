#include "core/storage/open_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(const rocksdb::Status& status, const std::string& reason) {
  const absl::Status error = OpenError("/srv/stores", status);
  EXPECT_EQ(ReasonOf(error), reason) << error;
  return std::string(error.message());
}

TEST(OpenErrorsTest, DamageAndMissingFilesTellHowToRestore) {
  const auto tells = HasSubstr("softlookup backup restore BACKUP NEW_DATA_DIRECTORY");
  EXPECT_THAT(
      ErrorOf(rocksdb::Status::Corruption("CURRENT file does not end with newline"), "DATA_LOSS"),
      AllOf(HasSubstr("end with newline"), tells));
  EXPECT_THAT(ErrorOf(rocksdb::Status::PathNotFound(
                          "While open a file for random read: /srv/stores/000012.sst",
                          "No such file or directory"),
                      "DATA_LOSS"),
              AllOf(HasSubstr("a file is missing in /srv/stores"),
                    HasSubstr("random read: 000012.sst"), tells));
}

TEST(OpenErrorsTest, ATableThatHasLostItsEndIsNamedWithBothSizes) {
  const testing::TemporaryDirectory directory;
  const std::string table = directory.path() + "/000011.sst";
  std::ofstream(table) << "seven b";
  // As RocksDB 7.8.3 says it: with the size that the manifest has.
  const auto status = rocksdb::Status::Corruption(
      absl::StrCat("file is too short (1279 bytes) to be an sstable", table, " in file ",
                   directory.path(), "/MANIFEST-000005"));
  const absl::Status error = OpenError(directory.path(), status);
  EXPECT_EQ(ReasonOf(error), "DATA_LOSS");
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("the data directory is damaged: 000011.sst has 7 bytes instead of "
                              "1279; restore a backup"),
                    HasSubstr("softlookup backup restore BACKUP NEW_DATA_DIRECTORY")));
  // Where the file tells nothing more, RocksDB's words stay.
  std::filesystem::remove(table);
  EXPECT_THAT(OpenError(directory.path(), status).message(), HasSubstr("too short (1279 bytes)"));
}

TEST(OpenErrorsTest, OtherErrorsAreToldApart) {
  EXPECT_THAT(ErrorOf(rocksdb::Status::IOError("While lock file: /srv/stores/LOCK",
                                               "Resource temporarily unavailable"),
                      "DIRECTORY_IN_USE"),
              HasSubstr("another process has the data directory /srv/stores open"));
  EXPECT_THAT(ErrorOf(rocksdb::Status::NoSpace("While appending"), "STORAGE_FAILED"),
              HasSubstr("whose disk is full"));
  EXPECT_THAT(ErrorOf(rocksdb::Status::IOError("EIO"), "STORAGE_FAILED"),
              HasSubstr("cannot open the data directory /srv/stores: "));
  EXPECT_THAT(ErrorOf(rocksdb::Status::IOError("while open a file for lock: /srv/stores/LOCK",
                                               "Permission denied"),
                      "STORAGE_FAILED"),
              HasSubstr(absl::StrCat("permission denied to uid ", geteuid())));
}

TEST(OpenErrorsTest, AnotherUsersFileIsNamedWithItsOwner) {
  const testing::TemporaryDirectory directory;
  const std::string file = directory.path() + "/CURRENT";
  std::ofstream(file) << "root";
  std::ofstream(directory.path() + "/LOCK");
  const uid_t owner = geteuid(), stranger = owner + 1;
  const absl::Status of_directory = AccessError(directory.path(), stranger);
  EXPECT_EQ(ReasonOf(of_directory), "STORAGE_FAILED");
  EXPECT_THAT(of_directory.message(),
              AllOf(HasSubstr(absl::StrCat(directory.path(), " belongs to uid ", owner)),
                    HasSubstr(absl::StrCat("chown -R ", stranger, " ", directory.path()))));
  EXPECT_THAT(AccessError(directory.path(), owner).message(),
              HasSubstr("chmod -R u+rwX " + directory.path()));
  EXPECT_THAT(AccessError(directory.path() + "/missing", owner).message(),
              HasSubstr("the directories above it"));
  if (lchown(file.c_str(), stranger, static_cast<gid_t>(-1)) != 0) return;  // Only root may.
  EXPECT_THAT(AccessError(directory.path(), owner).message(),
              HasSubstr(absl::StrCat(file, " belongs to uid ", stranger)));
}

}  // namespace
}  // namespace softlookup
