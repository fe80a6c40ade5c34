#include "client/tool/restore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "client/tool/exit_code.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::tool {
namespace {

TEST(RestoreTest, RestoredDataIsForItsOwnerAlone) {
  const testing::TemporaryDirectory directory;
  const std::string backup = directory.path() + "/backup", data = directory.path() + "/new/data";
  std::filesystem::create_directory(backup);
  std::ofstream(backup + "/BACKUP.json")
      << R"({"format": 1, "files": [{"name": "000001.sst", "byteSize": "4"}]})";
  std::ofstream(backup + "/000001.sst") << "rows";
  chmod((backup + "/000001.sst").c_str(), 0666);
  const mode_t before = umask(0);
  const auto restored = RestoreBackup(backup, data);
  umask(before);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->bytes, 4u);
  const auto mode_of = [](const std::string& path) {
    struct stat attributes = {};
    EXPECT_EQ(stat(path.c_str(), &attributes), 0) << path;
    return attributes.st_mode & 07777;
  };
  EXPECT_EQ(mode_of(directory.path() + "/new"), 0700u);
  EXPECT_EQ(mode_of(data), 0700u);
  EXPECT_EQ(mode_of(data + "/000001.sst"), 0600u);
}

TEST(RestoreTest, ATargetInTheBackupIsRefused) {
  const testing::TemporaryDirectory directory;
  const std::string backup = directory.path() + "/backup", link = directory.path() + "/link";
  std::filesystem::create_directory(backup);
  std::filesystem::create_directory_symlink(backup, link);
  std::ofstream(backup + "/BACKUP.json")
      << R"({"format": 1, "files": [{"name": "000001.sst", "byteSize": "4"}]})";
  std::ofstream(backup + "/000001.sst") << "rows";
  for (const std::string& target :
       {backup + "/new", backup + "/a/../new/data", link + "/new", backup}) {
    const auto restored = RestoreBackup(backup, target);
    EXPECT_EQ(ExitCodeOf(restored.status()), ExitCode::kInput) << target;
    EXPECT_THAT(std::string(restored.status().message()),
                ::testing::HasSubstr("lies in the backup " + backup));
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(backup), {}), 2);
  EXPECT_TRUE(RestoreBackup(link, directory.path() + "/backup-data").ok());
}

}  // namespace
}  // namespace softlookup::tool
