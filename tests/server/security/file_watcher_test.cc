#include "server/security/file_watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::softlookup::testing::TemporaryDirectory;
using ::testing::ElementsAre;

class FileWatcherTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }
  void Put(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name) + ".new") << text;
    std::filesystem::rename(Path(name) + ".new", Path(name));
  }
  absl::Status Add(std::vector<std::string> paths) {
    return watcher_.Add(
        "files", std::move(paths),
        [this](const auto& contents) {
          if (contents[0] == "broken") return absl::InvalidArgumentError("broken");
          loaded_.push_back(contents[0]);
          return absl::OkStatus();
        },
        counter_);
  }
  // "2 applied, 1 rejected", and then ", rejected now" if it is so.
  std::string Counts() const {
    const ReloadCounts counts = counter_.counts();
    return absl::StrCat(counts.applied, " applied, ", counts.rejected, " rejected",
                        counts.is_rejected ? ", rejected now" : "");
  }

  TemporaryDirectory directory_;
  std::vector<std::string> loaded_;
  ReloadCounter counter_;
  FileWatcher watcher_;
};

TEST_F(FileWatcherTest, LoadsWhatIsThereAndWhatChanges) {
  Put("a", "one");
  ASSERT_THAT(Add({Path("a")}), IsOk());
  watcher_.CheckNow();
  EXPECT_THAT(loaded_, ElementsAre("one"));
  Put("a", "two");
  watcher_.CheckNow();
  watcher_.CheckNow();
  EXPECT_THAT(loaded_, ElementsAre("one", "two"));
}

TEST_F(FileWatcherTest, WhatIsBrokenOrGoneLeavesTheLastOne) {
  Put("a", "one");
  ASSERT_THAT(Add({Path("a")}), IsOk());
  Put("a", "broken");
  watcher_.CheckNow();
  std::filesystem::remove(Path("a"));
  watcher_.CheckNow();
  EXPECT_THAT(loaded_, ElementsAre("one"));
  Put("a", "two");
  watcher_.CheckNow();
  EXPECT_THAT(loaded_, ElementsAre("one", "two"));
}

TEST_F(FileWatcherTest, ChangesAreCountedByWhatBecameOfThem) {
  Put("a", "one");
  ASSERT_THAT(Add({Path("a")}), IsOk());
  watcher_.CheckNow();
  EXPECT_EQ(Counts(), "0 applied, 0 rejected") << "nothing has changed";
  Put("a", "broken");
  watcher_.CheckNow();
  watcher_.CheckNow();
  EXPECT_EQ(Counts(), "0 applied, 1 rejected, rejected now");
  std::filesystem::remove(Path("a"));
  watcher_.CheckNow();
  EXPECT_EQ(Counts(), "0 applied, 2 rejected, rejected now");
  Put("a", "one");
  watcher_.CheckNow();
  EXPECT_EQ(Counts(), "1 applied, 2 rejected");
}

TEST_F(FileWatcherTest, AFileOfASetLoadsThemAll) {
  Put("a", "one");
  Put("b", "x");
  ASSERT_THAT(Add({Path("a"), Path("b")}), IsOk());
  Put("b", "y");
  watcher_.CheckNow();
  EXPECT_THAT(loaded_, ElementsAre("one", "one"));
}

TEST_F(FileWatcherTest, AtFirstWhatIsWrongIsAnError) {
  EXPECT_THAT(Add({Path("none")}), StatusIs(absl::StatusCode::kInvalidArgument, Path("none")));
  Put("a", "broken");
  EXPECT_THAT(Add({Path("a")}), StatusIs(absl::StatusCode::kInvalidArgument, "broken"));
  EXPECT_THAT(loaded_, ElementsAre());
}

TEST_F(FileWatcherTest, LooksByItself) {
  Put("a", "one");
  absl::Notification changed;
  ASSERT_THAT(watcher_.Add(
                  "files", {Path("a")},
                  [&](const auto& contents) {
                    if (contents[0] == "two") changed.Notify();
                    return absl::OkStatus();
                  },
                  counter_),
              IsOk());
  watcher_.Start(absl::Milliseconds(1));
  Put("a", "two");
  changed.WaitForNotification();
}

}  // namespace
}  // namespace softlookup::server
