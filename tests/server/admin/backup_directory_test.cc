#include "server/admin/backup_directory.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::server {
namespace {

namespace fs = std::filesystem;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::softlookup::testing::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Backups of a data directory with one file.
class BackupDirectoryTest : public ::testing::Test {
 protected:
  absl::Status Make(const std::string& name, absl::Time begin = absl::UnixEpoch()) const {
    return backups_.Make(name, begin, {}, [](const std::string& directory) {
      fs::create_directory(directory);
      std::ofstream(directory + "/data") << "abc";
      return absl::OkStatus();
    });
  }
  std::string Path(const std::string& name) const { return backups_.path() + "/" + name; }
  // Puts a directory beside the backups that has the file `name`.
  void PutDirectory(const std::string& directory, const std::string& name,
                    const std::string& text) const {
    fs::create_directories(Path(directory));
    std::ofstream(Path(directory) + "/" + name) << text;
  }
  std::vector<std::string> Entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(backups_.path())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::vector<std::string> ListedNames() const {
    const absl::StatusOr<std::vector<admin::v1::Backup>> backups = backups_.List();
    EXPECT_THAT(backups, IsOk());
    std::vector<std::string> names;
    for (const admin::v1::Backup& backup : *backups) names.push_back(backup.name());
    return names;
  }

  const TemporaryDirectory directory_;
  const BackupDirectory backups_{directory_.path() + "/parent/backups"};
};

TEST_F(BackupDirectoryTest, ABackupIsTheCopyWithAManifestOfItsFiles) {
  const absl::Time begin = absl::FromUnixSeconds(1'700'000'000) + absl::Nanoseconds(7);
  ASSERT_THAT(Make("one", begin), IsOk());
  EXPECT_THAT(Entries(), ElementsAre("one"));
  EXPECT_TRUE(fs::exists(Path("one/data")));

  std::ostringstream json;
  json << std::ifstream(Path("one/BACKUP.json")).rdbuf();
  admin::v1::BackupManifest manifest;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json.str(), &manifest).ok());
  EXPECT_EQ(manifest.format(), 2u);
  ASSERT_EQ(manifest.files_size(), 1);
  EXPECT_EQ(manifest.files(0).name(), "data");
  EXPECT_EQ(manifest.files(0).byte_size(), 3u);
  EXPECT_EQ(manifest.files(0).sha256(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");

  const std::optional<admin::v1::Backup> backup = backups_.Find("one");
  ASSERT_TRUE(backup.has_value());
  EXPECT_EQ(backup->name(), "one");
  EXPECT_EQ(backup->byte_size(), 3u);
  EXPECT_EQ(backup->create_time().seconds(), 1'700'000'000);
  EXPECT_EQ(backup->create_time().nanos(), 7);
  EXPECT_EQ(backups_.Find("two"), std::nullopt);
}

TEST_F(BackupDirectoryTest, ListsTheOldestFirst) {
  EXPECT_THAT(ListedNames(), IsEmpty()) << "the directory does not exist yet";
  const absl::Time begin = absl::FromUnixSeconds(100);
  ASSERT_THAT(Make("c", begin), IsOk());
  ASSERT_THAT(Make("b", begin - absl::Nanoseconds(1)), IsOk());
  ASSERT_THAT(Make("a", begin), IsOk());
  EXPECT_THAT(ListedNames(), ElementsAre("b", "a", "c"));
}

TEST_F(BackupDirectoryTest, OnlyADirectoryWithAManifestIsABackup) {
  PutDirectory("stranger", "CURRENT", "MANIFEST-000001\n");
  PutDirectory("cut", "BACKUP.json", "half of {");
  PutDirectory(".one.partial", "BACKUP.json", "{\"format\": 2}");
  PutDirectory("newer", "BACKUP.json", "{\"format\": 3, \"unknown\": true}");
  EXPECT_THAT(ListedNames(), ElementsAre("newer"));
}

TEST_F(BackupDirectoryTest, TheNewestTimeIsThatOfTheLastBackupBeforeNow) {
  const absl::Time now = absl::FromUnixSeconds(100);
  EXPECT_EQ(backups_.NewestTime(now), absl::UnixEpoch());
  ASSERT_THAT(Make("old", now - absl::Seconds(2)), IsOk());
  ASSERT_THAT(Make("new", now - absl::Seconds(1)), IsOk());
  ASSERT_THAT(Make("ahead", now + absl::Seconds(1)), IsOk());
  EXPECT_EQ(backups_.NewestTime(now), now - absl::Seconds(1));
}

TEST_F(BackupDirectoryTest, AFileInItsPlaceIsAnError) {
  fs::create_directory(directory_.path() + "/parent");
  std::ofstream(backups_.path()) << "a file";
  for (const absl::Status& status : {Make("one"), backups_.List().status()}) {
    EXPECT_EQ(ReasonOf(status), "STORAGE_FAILED") << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(backups_.path()));
  }
  EXPECT_EQ(backups_.NewestTime(absl::InfiniteFuture()), std::nullopt);
}

TEST_F(BackupDirectoryTest, PrepareMakesTheDirectoryAndLeavesNothingInIt) {
  ASSERT_THAT(backups_.Prepare(), IsOk());
  EXPECT_THAT(Entries(), IsEmpty());
  ASSERT_THAT(Make("one"), IsOk());
  ASSERT_THAT(backups_.Prepare(), IsOk());
  EXPECT_THAT(Entries(), ElementsAre("one"));
}

TEST_F(BackupDirectoryTest, PrepareNamesTheFlagThePathTheReasonAndTheUser) {
  fs::create_directory(directory_.path() + "/parent");
  std::ofstream(backups_.path()) << "a file";
  const std::string user = absl::StrCat("uid ", geteuid(), ", the user that runs this process");
  const absl::Status in_place = backups_.Prepare();
  EXPECT_EQ(ReasonOf(in_place), "STORAGE_FAILED") << in_place;
  EXPECT_THAT(
      std::string(in_place.message()),
      AllOf(StartsWith("--backup-dir: cannot make " + backups_.path() + ": "), HasSubstr(user)));
  // Not even root can write there.
  EXPECT_THAT(std::string(BackupDirectory("/proc/self").Prepare().message()),
              AllOf(StartsWith("--backup-dir: cannot write to /proc/self: "), HasSubstr(user)));
  EXPECT_THAT(std::string(BackupDirectory("/proc/self/backups").Prepare().message()),
              StartsWith("--backup-dir: cannot make /proc/self/backups: "));
}

TEST(BackupAccessErrorTest, TellsWhatHelps) {
  const auto message = [](std::errc error) {
    return std::string(
        BackupAccessError("write to", "/srv/backups", std::make_error_code(error), 999).message());
  };
  EXPECT_EQ(message(std::errc::permission_denied),
            "--backup-dir: cannot write to /srv/backups: Permission denied; let uid 999, the user "
            "that runs this process, write there: install -d -o 999 -m 0700 /srv/backups");
  EXPECT_THAT(message(std::errc::read_only_file_system), HasSubstr("ReadWritePaths="));
  EXPECT_THAT(message(std::errc::not_a_directory), HasSubstr("name a directory in which uid 999"));
}

TEST_F(BackupDirectoryTest, ANameIsTakenByWhateverHasIt) {
  ASSERT_THAT(Make("one"), IsOk());
  fs::create_symlink("nowhere", Path("link"));
  for (const std::string name : {"one", "link"}) {
    const absl::Status status = Make(name);
    EXPECT_EQ(ReasonOf(status), "BACKUP_EXISTS") << status;
    EXPECT_THAT(MetadataOf(status), ::testing::Contains(std::pair("backup", name)));
  }
  EXPECT_THAT(Entries(), ElementsAre("link", "one"));
}

TEST_F(BackupDirectoryTest, OneIsMadeAtATime) {
  absl::Status second;
  EXPECT_THAT(backups_.Make("one", absl::UnixEpoch(), {},
                            [&](const std::string& directory) {
                              fs::create_directory(directory);
                              second = Make("two");
                              return absl::OkStatus();
                            }),
              IsOk());
  EXPECT_EQ(ReasonOf(second), "BACKUP_IN_PROGRESS") << second;
  EXPECT_NE(RetryAfterOf(second), std::nullopt);
  EXPECT_THAT(Entries(), ElementsAre("one"));
  EXPECT_THAT(Make("two"), IsOk());
}

TEST_F(BackupDirectoryTest, ACopyThatFailsLeavesNothing) {
  const absl::Status status =
      backups_.Make("one", absl::UnixEpoch(), {}, [](const std::string& directory) {
        fs::create_directory(directory);
        fs::create_directory(directory + ".tmp");
        return absl::InternalError("the copy failed");
      });
  EXPECT_EQ(status.message(), "the copy failed");
  EXPECT_THAT(Entries(), IsEmpty());
}

TEST_F(BackupDirectoryTest, WhatACrashLeftGoesWithTheNextBackup) {
  for (const char* name : {".cut.partial", ".cut.partial.tmp", ".other", "stranger"}) {
    PutDirectory(name, "CURRENT", "MANIFEST-000001\n");
  }
  ASSERT_THAT(Make("cut"), IsOk());
  EXPECT_THAT(Entries(), ElementsAre(".other", "cut", "stranger"));
}

TEST_F(BackupDirectoryTest, AFileThatIsNotAsItWasBackedUpIsNamed) {
  ASSERT_THAT(Make("one"), IsOk());
  const CancelToken cancel;
  EXPECT_THAT(backups_.Check("one", cancel), IsOk());
  EXPECT_EQ(backups_.DirectoryOf("one"), Path("one"));
  for (const char* text : {"abd", "abcd", ""}) {
    std::ofstream(Path("one/data")) << text;
    const absl::Status damaged = backups_.Check("one", cancel);
    EXPECT_THAT(damaged, StatusIs(absl::StatusCode::kDataLoss, "Backup one is damaged: data "));
    EXPECT_THAT(MetadataOf(damaged),
                ElementsAre(std::pair("backup", "one"), std::pair("file", "data")));
  }
  fs::remove(Path("one/data"));
  EXPECT_THAT(backups_.Check("one", cancel),
              StatusIs(absl::StatusCode::kDataLoss, "data is missing"));
}

TEST_F(BackupDirectoryTest, OnlyAManifestOfAKnownFormatThatNamesItsOwnFilesIsBelieved) {
  ASSERT_THAT(Make("one"), IsOk());
  PutDirectory(".", "outside", "abc");
  const CancelToken cancel;
  for (const char* manifest :
       {R"({"format": 3, "files": [{"name": "data", "byte_size": "3"}]})",
        R"({"format": 0, "files": [{"name": "data", "byte_size": "3"}]})", R"({"format": 2})",
        R"({"format": 2, "files": [{"name": "data", "byte_size": "3"}]})", "half of {",
        R"({"format": 1, "files": [{"name": "../outside", "byte_size": "3"}]})",
        R"({"format": 1, "files": [{"name": "..", "byte_size": "3"}]})"}) {
    PutDirectory("one", "BACKUP.json", manifest);
    EXPECT_THAT(backups_.Check("one", cancel),
                StatusIs(absl::StatusCode::kDataLoss, "Backup one is damaged: "))
        << manifest;
  }
  // A backup of format 1 has no checksums.
  PutDirectory("one", "BACKUP.json",
               R"({"format": 1, "files": [{"name": "data", "byte_size": "3"}]})");
  EXPECT_THAT(backups_.Check("one", cancel), IsOk());
}

TEST_F(BackupDirectoryTest, ABackupThatTheUserMayNotReadIsToBeGivenToHim) {
  ASSERT_THAT(Make("one"), IsOk());
  const auto check = [this](uid_t user) {
    const absl::Status status = backups_.Get("one").status();
    const bool is_told =
        ReasonOf(status) == "STORAGE_FAILED" &&
        absl::StrContains(status.message(), "BACKUP.json: Permission denied; give it to uid ") &&
        absl::StrContains(status.message(), absl::StrCat("chown -R ", user, " ")) &&
        absl::EndsWith(status.message(), "/one");
    if (!is_told) std::cerr << status << std::endl;
    return is_told;
  };
  if (geteuid() != 0) {
    std::filesystem::permissions(backups_.DirectoryOf("one") + "/BACKUP.json",
                                 std::filesystem::perms::none);
    EXPECT_TRUE(check(geteuid()));
    return;
  }
  // Nobody keeps the administrator from reading.
  constexpr uid_t kNobody = 65534;
  EXPECT_EXIT(
      {
        const bool is_nobody = setuid(kNobody) == 0;
        std::_Exit(is_nobody && check(kNobody) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(BackupDirectoryTest, ABackupThatIsNotThereIsNotFound) {
  const CancelToken cancel;
  EXPECT_EQ(ReasonOf(backups_.Get("one").status()), "BACKUP_NOT_FOUND");
  EXPECT_EQ(ReasonOf(backups_.Check("one", cancel)), "BACKUP_NOT_FOUND");
  PutDirectory("stranger", "CURRENT", "MANIFEST-000001");
  EXPECT_THAT(backups_.Get("stranger"),
              StatusIs(absl::StatusCode::kNotFound, "no backup stranger"));
  ASSERT_THAT(Make("one"), IsOk());
  EXPECT_EQ(backups_.Get("one")->name(), "one");
}

TEST_F(BackupDirectoryTest, ACancelEndsTheCheck) {
  ASSERT_THAT(Make("one"), IsOk());
  CancelToken cancel;
  cancel.Cancel();
  EXPECT_EQ(backups_.Check("one", cancel).code(), absl::StatusCode::kCancelled);
}

TEST_F(BackupDirectoryTest, ABackupKeepsTheNamesOfItsDamagedStores) {
  ASSERT_THAT(Make("whole"), IsOk());
  const auto copy = [](const std::string& directory) {
    fs::create_directory(directory);
    return absl::OkStatus();
  };
  ASSERT_THAT(backups_.Make("torn", absl::UnixEpoch(), {"a", "b/c"}, copy), IsOk());
  EXPECT_THAT(backups_.Get("whole")->damaged_stores(), IsEmpty());
  EXPECT_THAT(backups_.Get("torn")->damaged_stores(), ElementsAre("a", "b/c"));
}

TEST(BackupNameTest, IsUpTo64CharactersAndNotHidden) {
  const std::string longest(64, 'x');
  for (const std::string& name : {longest, std::string("a"), std::string("A-9_.z")}) {
    EXPECT_THAT(CheckBackupName("name", name), IsOk()) << name;
  }
  for (const std::string& name :
       {longest + "x", std::string(), std::string(".hidden"), std::string("a/b"),
        std::string("a b"), std::string("ä"), std::string("a\0b", 3)}) {
    const absl::Status status = CheckBackupName("name", name);
    EXPECT_EQ(ReasonOf(status), "INVALID_NAME") << name;
    EXPECT_THAT(MetadataOf(status), ::testing::Contains(std::pair("field", "name"))) << name;
  }
}

}  // namespace
}  // namespace softlookup::server
