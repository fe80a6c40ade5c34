#include "server/admin/backups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::TemporaryDirectory;
using ::testing::SizeIs;

// The answer to one Create().
class BackupAnswer {
 public:
  Backups::Callback Callback() {
    return [this](absl::StatusOr<admin::v1::Backup> backup) {
      backup_ = std::move(backup);
      is_there_.Notify();
    };
  }
  bool is_there() const { return is_there_.HasBeenNotified(); }
  const absl::StatusOr<admin::v1::Backup>& Await() const {
    is_there_.WaitForNotification();
    return backup_;
  }

 private:
  absl::StatusOr<admin::v1::Backup> backup_;
  absl::Notification is_there_;
};

// Backups of an empty data directory. A copy waits until gate_ is open.
class BackupsTest : public ::testing::Test {
 protected:
  BackupsTest() {
    backups_.emplace(
        copy_, [this] { return damaged_stores_; }, directory_.path(), [this] { ++made_count_; });
  }
  ~BackupsTest() override {
    if (!gate_.HasBeenNotified()) gate_.Notify();  // A test that fails must end, too.
  }

  const TemporaryDirectory directory_;
  absl::Notification gate_;
  absl::Status copy_status_;
  std::vector<std::string> damaged_stores_;
  std::atomic<int> made_count_{0};
  const Backups::Copy copy_ = [this](const std::string& directory) {
    gate_.WaitForNotification();
    std::filesystem::create_directory(directory);
    return copy_status_;
  };
  std::optional<Backups> backups_;
};

TEST_F(BackupsTest, ASecondOneIsRefusedUntilTheFirstIsAnswered) {
  BackupAnswer first, second, third;
  backups_->Create("one", first.Callback());
  backups_->Create("two", second.Callback());
  ASSERT_TRUE(second.is_there()) << "it is refused at once";
  EXPECT_EQ(ReasonOf(second.Await().status()), "BACKUP_IN_PROGRESS");
  gate_.Notify();
  EXPECT_THAT(first.Await(), IsOk());
  backups_->Create("three", third.Callback());
  EXPECT_THAT(third.Await(), IsOk());
  EXPECT_EQ(third.Await()->name(), "three");
  EXPECT_EQ(made_count_, 2);
  EXPECT_THAT(*backups_->List(), SizeIs(2));
}

TEST_F(BackupsTest, OneThatFailsIsNotMade) {
  copy_status_ = absl::UnavailableError("the disk failed");
  gate_.Notify();
  BackupAnswer failed, refused;
  backups_->Create("one", failed.Callback());
  EXPECT_EQ(failed.Await().status(), copy_status_);
  backups_->Create("a/b", refused.Callback());
  ASSERT_TRUE(refused.is_there());
  EXPECT_EQ(ReasonOf(refused.Await().status()), "INVALID_NAME");
  EXPECT_EQ(made_count_, 0);
}

TEST_F(BackupsTest, ABackupNamesTheDamagedStoresOfItsTime) {
  damaged_stores_ = {"torn"};
  gate_.Notify();
  BackupAnswer answer;
  backups_->Create("one", answer.Callback());
  ASSERT_THAT(answer.Await(), IsOk());
  EXPECT_THAT(answer.Await()->damaged_stores(), ::testing::ElementsAre("torn"));
}

TEST_F(BackupsTest, WithoutANameItIsTheTime) {
  gate_.Notify();
  BackupAnswer answer;
  backups_->Create("", answer.Callback());
  ASSERT_THAT(answer.Await(), IsOk());
  absl::Time named;
  std::string error;
  ASSERT_TRUE(absl::ParseTime("%E4Y%m%dT%H%M%SZ", answer.Await()->name(), &named, &error)) << error;
  EXPECT_EQ(absl::ToUnixSeconds(named), answer.Await()->create_time().seconds());
}

TEST_F(BackupsTest, ItsEndWaitsForTheBackupInProgress) {
  BackupAnswer answer;
  backups_->Create("one", answer.Callback());
  gate_.Notify();
  backups_.reset();
  EXPECT_TRUE(answer.is_there());
}

TEST_F(BackupsTest, WithoutADirectoryThereAreNone) {
  Backups backups(
      copy_, [] { return std::vector<std::string>(); }, "", [] {});
  BackupAnswer answer;
  backups.Create("one", answer.Callback());
  ASSERT_TRUE(answer.is_there());
  EXPECT_EQ(ReasonOf(answer.Await().status()), "BACKUPS_DISABLED");
  EXPECT_EQ(ReasonOf(backups.List().status()), "BACKUPS_DISABLED");
  EXPECT_EQ(ReasonOf(backups.Find("one").status()), "BACKUPS_DISABLED");
}

}  // namespace
}  // namespace softlookup::server
