#include "server/admin/data_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "server/admin/backup_directory.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::server {
namespace {

namespace fs = std::filesystem;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::softlookup::testing::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DataDirectoryTest : public ::testing::Test {
 protected:
  DataDirectoryTest() { fs::create_directory(directory_); }

  void Put(const std::string& name) const {
    fs::create_directories(fs::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << "text";
  }
  // Makes the backup `name` in the directory.
  void PutBackup(const std::string& name, absl::Time begin) const {
    EXPECT_THAT(BackupDirectory(directory_)
                    .Make(name, begin, {},
                          [](const std::string& copy) {
                            fs::create_directory(copy);
                            std::ofstream(copy + "/CURRENT") << "root";
                            return absl::OkStatus();
                          }),
                IsOk());
  }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  absl::StatusOr<DataDirectoryState> Inspect(const std::vector<std::string>& own_paths = {}) const {
    return InspectDataDirectory(directory_, own_paths);
  }
  std::string ErrorOf(const std::vector<std::string>& own_paths = {}) const {
    const absl::Status status = Inspect(own_paths).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    return std::string(status.message());
  }

  const TemporaryDirectory parent_;
  const std::string directory_ = parent_.path() + "/data";
};

TEST_F(DataDirectoryTest, ADirectoryThatIsMissingOrEmptyIsNew) {
  EXPECT_EQ(*Inspect(), DataDirectoryState::kNew);
  EXPECT_EQ(*InspectDataDirectory(Path("missing"), {}), DataDirectoryState::kNew);
  EXPECT_FALSE(fs::exists(Path("missing")));
}

TEST_F(DataDirectoryTest, WhatAFreshDiskOrAStartThatWasCutShortHasIsNobodys) {
  fs::create_directory(Path("lost+found"));
  for (const char* name : {"LOCK", "LOG", "LOG.old.1700000000", "OPTIONS-000005", "IDENTITY",
                           "000001.dbtmp", "OPTIONS-000007.dbtmp"}) {
    Put(name);
    EXPECT_EQ(*Inspect(), DataDirectoryState::kNew) << name;
  }
}

TEST_F(DataDirectoryTest, AnyFileOfStoresMakesItAnExistingOne) {
  Put("hosts");
  for (const char* name :
       {"CURRENT", "SYNCED", "RESERVE", "MANIFEST-000004", "000012.sst", "000003.log"}) {
    if (std::string(name) == "000003.log") fs::remove(Path("hosts"));
    Put(name);
    EXPECT_EQ(*Inspect(), DataDirectoryState::kExisting) << name;
    fs::remove(Path(name));
  }
}

TEST_F(DataDirectoryTest, FilesOfOthersAreRefusedByTheFirstName) {
  for (const char* name : {"notes.txt", "hosts", "zebra/stripes", "LOCK"}) Put(name);
  EXPECT_THAT(ErrorOf(), AllOf(HasSubstr(directory_ + " is no data directory: it has hosts,"),
                               HasSubstr("an empty or new directory")));
  EXPECT_FALSE(fs::exists(Path("CURRENT")));
}

TEST_F(DataDirectoryTest, OnlyANumberMakesAFileOneOfTheLog) {
  for (const char* name : {"app.log", "tables.sst", ".sst", "CURRENT.txt"}) {
    Put(name);
    EXPECT_THAT(ErrorOf(), HasSubstr(std::string("it has ") + name)) << name;
    fs::remove(Path(name));
  }
}

TEST_F(DataDirectoryTest, WhatTheServersFlagsNameMayLieInIt) {
  Put("backups/one/BACKUP.json");
  Put("log/audit.log");
  Put("auth.json");
  const std::vector<std::string> own = {Path("backups"), Path("log/audit.log"), "",
                                        Path("auth.json"), parent_.path() + "/elsewhere"};
  EXPECT_EQ(*Inspect(own), DataDirectoryState::kNew);
  EXPECT_EQ(*InspectDataDirectory(directory_ + "/", own), DataDirectoryState::kNew);
  Put("token");
  EXPECT_THAT(ErrorOf(own), HasSubstr("it has token,"));
}

TEST_F(DataDirectoryTest, ALinkThatAFlagNamesMayLieInIt) {
  fs::create_directory(parent_.path() + "/elsewhere");
  fs::create_directory_symlink(parent_.path() + "/elsewhere", Path("backups"));
  EXPECT_EQ(*Inspect({Path("backups")}), DataDirectoryState::kNew);
  EXPECT_THAT(ErrorOf(), HasSubstr("it has backups,"));
}

TEST_F(DataDirectoryTest, ABackupIsNoDataDirectory) {
  PutBackup("one", absl::UnixEpoch());
  EXPECT_THAT(InspectDataDirectory(Path("one"), {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "softlookup backup restore " + Path("one") + " DATA_DIRECTORY"));
}

TEST_F(DataDirectoryTest, ADirectoryOfBackupsNamesTheCommandThatRestoresTheNewest) {
  EXPECT_THAT(CheckHasNoBackups(directory_), IsOk());
  PutBackup("newest", absl::FromUnixSeconds(200));
  PutBackup("oldest", absl::FromUnixSeconds(100));
  EXPECT_THAT(ErrorOf(),
              AllOf(HasSubstr(directory_ + " is a directory of backups"),
                    HasSubstr("softlookup backup restore " + Path("newest") + " DATA_DIRECTORY"),
                    Not(HasSubstr("Did you mean"))));
  EXPECT_THAT(CheckHasNoBackups(directory_),
              StatusIs(absl::StatusCode::kFailedPrecondition, Path("newest")));
  // With stores in it, it is a data directory all the same.
  Put("CURRENT");
  EXPECT_EQ(*Inspect(), DataDirectoryState::kExisting);
}

TEST_F(DataDirectoryTest, ADataDirectoryInItIsSuggested) {
  PutBackup("older", absl::UnixEpoch());
  Put(".cut.partial/CURRENT");
  Put("stores/CURRENT");
  EXPECT_THAT(ErrorOf(),
              AllOf(HasSubstr("it has .cut.partial,"), Not(HasSubstr("a directory of backups")),
                    HasSubstr("Did you mean --data-dir " + Path("stores") + "?")));
}

TEST_F(DataDirectoryTest, WhatIsNoDirectoryIsLeftToTheEngine) {
  Put("file");
  EXPECT_EQ(*InspectDataDirectory(Path("file"), {}), DataDirectoryState::kExisting);
}

}  // namespace
}  // namespace softlookup::server
