#include "server/security/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::softlookup::testing::TemporaryDirectory;
using ::testing::MatchesRegex;

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class AuditLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<AuditLog> Open(LineFormat format) const {
    auto log = AuditLog::Open(path_, format);
    EXPECT_THAT(log.status(), IsOk());
    return *std::move(log);
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/audit.log";
};

TEST_F(AuditLogTest, HasALineForEachThatItsOwnerAloneMayRead) {
  auto log = Open(LineFormat::kText);
  log->Write({{"identity", "a"}, {"store", "x\ny"}});
  log->Write({{"identity", "b"}});
  log.reset();
  EXPECT_THAT(Contents(path_),
              MatchesRegex("time=[^ ]+ identity=a store=\"x\\\\ny\"\ntime=[^ ]+ identity=b\n"));
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(AuditLogTest, IsJsonIfTheLogIs) {
  auto log = Open(LineFormat::kJson);
  log->Write({{"identity", "a"}});
  log.reset();
  EXPECT_THAT(Contents(path_), MatchesRegex("\\{\"time\":\"[^\"]+\",\"identity\":\"a\"\\}\n"));
}

TEST_F(AuditLogTest, GoesOnBehindWhatIsThere) {
  Open(LineFormat::kText)->Write({{"n", 1}});
  Open(LineFormat::kText)->Write({{"n", 2}});
  EXPECT_THAT(Contents(path_), MatchesRegex("[^\n]* n=1\n[^\n]* n=2\n"));
}

TEST_F(AuditLogTest, IsOpenedAnewAfterItWasRenamed) {
  auto log = Open(LineFormat::kText);
  log->Write({{"n", 1}});
  std::filesystem::rename(path_, path_ + ".1");
  log->Reopen();
  log->Write({{"n", 2}});
  log.reset();
  const std::string both = Contents(path_ + ".1") + Contents(path_);
  EXPECT_THAT(both, MatchesRegex("[^\n]* n=1\n[^\n]* n=2\n"));
}

TEST_F(AuditLogTest, LinesThatAFullDiskRefusedAreCountedInALaterLine) {
  std::filesystem::create_symlink("/dev/full", path_);
  auto log = Open(LineFormat::kText);
  log->Write({{"n", 1}});
  log->Write({{"n", 2}});
  std::filesystem::remove(path_);
  log->Reopen();
  log->Write({{"n", 3}});  // Written to the old file or to the new one.
  log.reset();
  int lines = 0, left_out = 0;
  std::istringstream contents(Contents(path_));
  for (std::string line; std::getline(contents, line);) {
    const std::size_t at = line.find("left_out=");
    if (at == std::string::npos) {
      ++lines;
    } else {
      left_out += std::stoi(line.substr(at + 9));
    }
  }
  EXPECT_EQ(lines + left_out, 3) << Contents(path_);
  EXPECT_GE(left_out, 2) << Contents(path_);
}

TEST_F(AuditLogTest, APathThatCannotBeOpenedIsAnError) {
  EXPECT_THAT(AuditLog::Open(directory_.path() + "/none/audit.log", LineFormat::kText).status(),
              StatusIs(absl::StatusCode::kUnavailable, "/none/audit.log"));
}

}  // namespace
}  // namespace softlookup::server
