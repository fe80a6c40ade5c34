#include "client/tool/replaced_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "client/tool/exit_code.h"
#include "tests/client/tool/temporary_file.h"

namespace softlookup::tool {
namespace {

namespace fs = std::filesystem;

using ::softlookup::testing::TemporaryFile;
using ::testing::EndsWith;

std::ptrdiff_t FilesBeside(const std::string& path) {
  return std::distance(fs::directory_iterator(fs::path(path).parent_path()), {});
}

TEST(ReplacedFileTest, AnOlderFileStaysUntilTheNewOneIsPublished) {
  const TemporaryFile file("a.txt", "old");
  std::optional<ReplacedFile> replaced = *ReplacedFile::Create(file.path());
  replaced->stream() << "new";
  EXPECT_TRUE(replaced->Close().ok());
  EXPECT_EQ(file.bytes(), "old");
  EXPECT_TRUE(replaced->Publish().ok());
  EXPECT_EQ(file.bytes(), "new");
  replaced.reset();
  EXPECT_EQ(file.bytes(), "new");
  EXPECT_EQ(FilesBeside(file.path()), 1);
}

TEST(ReplacedFileTest, WhatIsNotPublishedLeavesNothing) {
  const TemporaryFile file("a.txt", "old");
  {
    ReplacedFile replaced = *ReplacedFile::Create(file.path());
    replaced.stream() << "new";
    EXPECT_EQ(FilesBeside(file.path()), 2);
    const ReplacedFile moved = std::move(replaced);
    EXPECT_EQ(FilesBeside(file.path()), 2);
  }
  EXPECT_EQ(file.bytes(), "old");
  EXPECT_EQ(FilesBeside(file.path()), 1);
}

TEST(ReplacedFileTest, ALinkStaysAndSoDoesTheMode) {
  const TemporaryFile file("a.txt", "old");
  const std::string link = file.path() + ".link";
  fs::create_symlink(fs::path(file.path()).filename(), link);
  fs::permissions(file.path(), fs::perms::owner_read | fs::perms::owner_write);
  ReplacedFile replaced = *ReplacedFile::Create(link);
  replaced.stream() << "new";
  EXPECT_TRUE(replaced.Close().ok());
  EXPECT_TRUE(replaced.Publish().ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(file.bytes(), "new");
  EXPECT_EQ(fs::status(file.path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(ReplacedFileTest, ADeviceIsWrittenDirectly) {
  ReplacedFile replaced = *ReplacedFile::Create("/dev/null");
  replaced.stream() << "new";
  EXPECT_TRUE(replaced.Close().ok());
  EXPECT_TRUE(replaced.Publish().ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(ReplacedFileTest, AFailureNamesTheFileAndTheReason) {
  const absl::Status missing = ReplacedFile::Create("/no/such/folder/a.txt").status();
  EXPECT_EQ(ExitCodeOf(missing), ExitCode::kInput);
  EXPECT_EQ(missing.message(),
            "/no/such/folder/a.txt: cannot be written: No such file or directory");
  ReplacedFile full = *ReplacedFile::Create("/dev/full");
  full.stream() << "new";
  EXPECT_THAT(std::string(full.Close().message()), EndsWith("No space left on device"));
}

}  // namespace
}  // namespace softlookup::tool
