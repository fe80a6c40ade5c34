// Backups that a disk, a copy or somebody has damaged.
#include "client/tool/backup_files.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "client/tool/exit_code.h"
#include "client/tool/restore.h"
#include "tests/testing/random.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::tool {
namespace {

namespace fs = std::filesystem;
using admin::v1::BackupManifest;
using ::testing::AllOf;
using ::testing::HasSubstr;

// SHA-256 of "MANIFEST-000005" and a line feed, and of "some rows".
constexpr char kManifest[] = R"({
 "format": 2,
 "create_time": "2026-11-25T17:00:00Z",
 "files": [
  {"name": "CURRENT", "byte_size": "16",
   "sha256": "9c283f6e81028b9eb0760d918ee4bc0aa256ed3b926393c1734c760c4bd724fd"},
  {"name": "000007.sst", "byte_size": "9",
   "sha256": "3818bf0061cd5584782d3b34ffc301d9cf78d168896838bb62d7091151a25e2e"}
 ]
})";

class BackupFilesTest : public ::testing::Test {
 protected:
  BackupFilesTest() { Write(files_); }

  // Replaces the backup.
  void Write(const std::map<std::string, std::string>& files) {
    fs::remove_all(backup());
    fs::create_directory(backup());
    for (const auto& [name, bytes] : files) {
      std::ofstream(backup() + "/" + name, std::ios::binary) << bytes;
    }
  }
  std::string backup() const { return directory_.path() + "/backup"; }
  std::string data() const { return directory_.path() + "/data"; }

  // Returns the errors of a check, one a line. "": the backup is whole.
  std::string Check() const {
    const auto manifest = ReadBackupManifest(backup());
    if (!manifest.ok()) return manifest.status().ToString();
    std::string errors;
    const int bad = CountBadFiles(backup(), *manifest, [&](const absl::Status& status) {
      EXPECT_EQ(ExitCodeOf(status), ExitCode::kInput);
      errors += std::string(status.message()) + "\n";
    });
    EXPECT_EQ(bad, std::count(errors.begin(), errors.end(), '\n'));
    return errors;
  }
  // Returns whether the backup is restored, and removes what was restored.
  bool Restores() const {
    const bool restored = RestoreBackup(backup(), data()).ok();
    EXPECT_EQ(fs::exists(data()), restored);
    fs::remove_all(data());
    return restored;
  }

  const std::map<std::string, std::string> files_ = {
      {"BACKUP.json", kManifest}, {"CURRENT", "MANIFEST-000005\n"}, {"000007.sst", "some rows"}};

 private:
  const testing::TemporaryDirectory directory_;
};

TEST_F(BackupFilesTest, AWholeBackupIsWhole) {
  EXPECT_EQ(Check(), "");
  EXPECT_TRUE(Restores());
}

TEST_F(BackupFilesTest, EveryBadFileIsNamed) {
  auto files = files_;
  files["CURRENT"] = "MANIFEST-000004\n";
  files.erase("000007.sst");
  Write(files);
  EXPECT_THAT(Check(), AllOf(HasSubstr("/CURRENT: is damaged: its SHA-256 is"),
                             HasSubstr("/000007.sst: No such file")));
  files = files_;
  files["000007.sst"] += "!";
  Write(files);
  EXPECT_THAT(Check(), HasSubstr("/000007.sst: has 10 bytes instead of the backup's 9"));
}

TEST_F(BackupFilesTest, ManifestsThatSayTooLittleAreRefused) {
  const std::string file = R"({"name": "CURRENT", "byte_size": "16"})";
  for (const auto& [manifest, error] : std::map<std::string, std::string>{
           {R"({"format": 2})", "names no files"},
           {R"({"format": 3, "files": [{"name": "CURRENT"}]})", "has format 3"},
           {R"({"format": 2, "files": [)" + file + "]}", "has no SHA-256 of CURRENT"},
           {R"({"format": 1, "files": [{"name": ".."}]})", "is not a file in it"},
           {R"({"format": 1, "files": [{"name": "a/b"}]})", "is not a file in it"}}) {
    auto files = files_;
    files["BACKUP.json"] = manifest;
    Write(files);
    EXPECT_THAT(Check(), HasSubstr(error)) << manifest;
    EXPECT_FALSE(Restores()) << manifest;
  }
}

TEST_F(BackupFilesTest, ABackupOfAnOlderVersionIsCheckedBySizes) {
  auto files = files_;
  files["BACKUP.json"] = R"({"format": 1, "files": [{"name": "CURRENT", "byte_size": "16"}]})";
  Write(files);
  EXPECT_EQ(Check(), "");
  EXPECT_TRUE(RestoreBackup(backup(), data())->sizes_only);
  EXPECT_TRUE(fs::exists(data() + "/CURRENT"));
}

// What is taken of a damaged backup is what was backed up.
TEST_F(BackupFilesTest, DamageIsRefusedOrHarmless) {
  const BackupManifest whole = *ReadBackupManifest(backup());
  int refused = 0;
  for (std::uint64_t seed = testing::FirstSeed(), end = seed + 1000; seed < end; ++seed) {
    testing::Draw draw(seed);
    SCOPED_TRACE(::testing::Message() << "SOFTLOOKUP_TEST_SEED=" << seed);
    auto files = files_;
    auto damaged = std::next(files.begin(), draw.Int(0, 2));
    std::string& bytes = damaged->second;
    const std::int64_t at = draw.Int(0, static_cast<std::int64_t>(bytes.size()) - 1);
    const std::int64_t kind = draw.Int(0, 9);
    if (kind == 0) {
      files.erase(damaged);
    } else if (kind == 1) {
      bytes.resize(static_cast<std::size_t>(at));
    } else {
      bytes[static_cast<std::size_t>(at)] ^= static_cast<char>(1 << draw.Int(0, 7));
    }
    Write(files);
    const bool restores = Restores();
    ASSERT_EQ(Check().empty(), restores);
    refused += restores ? 0 : 1;
    if (!restores) continue;
    // Only the time can have changed.
    BackupManifest read = *ReadBackupManifest(backup());
    *read.mutable_create_time() = whole.create_time();
    ASSERT_TRUE(google::protobuf::util::MessageDifferencer::Equals(read, whole));
    ASSERT_EQ(files.at("CURRENT"), files_.at("CURRENT"));
    ASSERT_EQ(files.at("000007.sst"), files_.at("000007.sst"));
  }
  EXPECT_GT(refused, 900);
}

}  // namespace
}  // namespace softlookup::tool
