#include "client/tool/whole_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "client/tool/exit_code.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::tool {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

mode_t ModeOf(const std::string& path) {
  struct stat attributes = {};
  EXPECT_EQ(stat(path.c_str(), &attributes), 0) << path;
  return attributes.st_mode & 07777;
}

class WholeFileTest : public ::testing::Test {
 protected:
  WholeFileTest() : umask_(umask(0)) {}
  ~WholeFileTest() override { umask(umask_); }

  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/file";
  const mode_t umask_;  // A loose one must not loosen what is written.
};

TEST_F(WholeFileTest, CreatedFileHasItsMode) {
  ASSERT_TRUE(CreateFile(path_, "secret", kOwnerOnly).ok());
  EXPECT_EQ(ModeOf(path_), 0600u);
  EXPECT_EQ(Contents(path_), "secret");
}

TEST_F(WholeFileTest, ACheckWhetherAFileCanBeWrittenChangesNothing) {
  EXPECT_TRUE(CheckWritable(path_).ok());
  EXPECT_FALSE(fs::exists(path_));
  ASSERT_TRUE(WriteFile(path_, "kept").ok());
  EXPECT_TRUE(CheckWritable(path_).ok());
  EXPECT_EQ(Contents(path_), "kept");
  EXPECT_TRUE(CheckWritable("").ok());
  for (const std::string& path : {directory_.path(), directory_.path() + "/no/file"}) {
    const absl::Status checked = CheckWritable(path);
    EXPECT_EQ(ExitCodeOf(checked), ExitCode::kInput) << path;
    EXPECT_THAT(std::string(checked.message()), HasSubstr(path + ": cannot be written"));
  }
}

TEST_F(WholeFileTest, ALinkToNoFileCanBeWrittenIfItsTargetCan) {
  const std::string link = directory_.path() + "/link";
  fs::create_symlink("file", link);  // Relative to the link.
  EXPECT_TRUE(CheckWritable(link).ok()) << CheckWritable(link);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_FALSE(fs::exists(path_));
  ASSERT_TRUE(WriteFile(link, "plot").ok());
  EXPECT_EQ(Contents(path_), "plot");

  const std::string chain = directory_.path() + "/chain", loop = directory_.path() + "/loop";
  fs::create_symlink(directory_.path() + "/no/file", directory_.path() + "/astray");
  fs::create_symlink("astray", chain);
  fs::create_symlink("loop", loop);
  EXPECT_THAT(CheckWritable(chain).message(),
              HasSubstr(chain + ": cannot be written: No such file or directory"));
  EXPECT_THAT(CheckWritable(loop).message(), HasSubstr(loop + ": cannot be written: "));
}

TEST_F(WholeFileTest, APipeIsRefusedWithoutWaitingForItsReader) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const absl::Status checked = CheckWritable(path_);
  EXPECT_EQ(ExitCodeOf(checked), ExitCode::kInput);
  EXPECT_EQ(checked.message(), path_ + ": cannot be written: it is a pipe");
}

TEST_F(WholeFileTest, NothingIsOverwritten) {
  ASSERT_TRUE(CreateFile(path_, "first", kReadableByAll).ok());
  const absl::Status second = CreateFile(path_, "second", kOwnerOnly);
  EXPECT_TRUE(absl::IsAlreadyExists(second)) << second;
  EXPECT_THAT(std::string(second.message()), HasSubstr(path_));
  EXPECT_EQ(Contents(path_), "first");
  fs::create_symlink("nowhere", directory_.path() + "/link");
  EXPECT_TRUE(absl::IsAlreadyExists(CreateFile(directory_.path() + "/link", "x", kOwnerOnly)));
}

TEST_F(WholeFileTest, CreatedFileAppearsWholeAndLeavesNoOtherBehind) {
  const std::string large(64 << 20, 'x');
  std::atomic<bool> done = false;
  std::size_t parts = 0;
  std::thread reader([&] {
    std::error_code error;
    while (!done) {
      const auto size = fs::file_size(path_, error);
      if (!error && size != large.size()) ++parts;
    }
  });
  EXPECT_TRUE(CreateFile(path_, large, kOwnerOnly).ok());
  done = true;
  reader.join();
  EXPECT_EQ(parts, 0u);
  EXPECT_FALSE(CreateFile(path_, "x", kOwnerOnly).ok());
  EXPECT_EQ(directory_.entry_count(), 1);
}

TEST_F(WholeFileTest, CreatedFileOfAPathWithoutADirectoryIsAnInputError) {
  EXPECT_EQ(ExitCodeOf(CreateFile(directory_.path() + "/none/file", "x", kOwnerOnly)),
            ExitCode::kInput);
}

TEST_F(WholeFileTest, CopyIsForItsOwnerAlone) {
  const std::string large((3 << 20) + 1, 'x');
  ASSERT_TRUE(CreateFile(path_, large, 0666).ok());
  std::string seen;
  const auto see = [&seen](std::string_view part) { seen.append(part); };
  ASSERT_TRUE(CopyFile(path_, path_ + ".copy", see).ok());
  EXPECT_EQ(seen, large);
  EXPECT_EQ(ModeOf(path_ + ".copy"), 0600u);
  EXPECT_EQ(Contents(path_ + ".copy"), large);
  EXPECT_EQ(ExitCodeOf(CopyFile(directory_.path() + "/none", path_ + ".b", see)), ExitCode::kInput);
  EXPECT_FALSE(fs::exists(path_ + ".b"));
}

TEST_F(WholeFileTest, EditMakesANewFileForItsOwnerAlone) {
  ASSERT_TRUE(EditFile(path_, [](const std::string& text) {
                EXPECT_EQ(text, "");
                return text + "new";
              }).ok());
  EXPECT_EQ(ModeOf(path_), 0600u);
  EXPECT_EQ(Contents(path_), "new");
  EXPECT_EQ(directory_.entry_count(), 1);
}

TEST_F(WholeFileTest, EditedFileKeepsItsModeAndIsAnotherFile) {
  ASSERT_TRUE(CreateFile(path_, "old", 0640).ok());
  // Someone who reads it meanwhile reads what was there.
  std::ifstream reader(path_);
  ASSERT_TRUE(EditFile(path_, [](const std::string& text) { return text + " new"; }).ok());
  EXPECT_EQ(ModeOf(path_), 0640u);
  EXPECT_EQ(Contents(path_), "old new");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "old");
}

TEST_F(WholeFileTest, EditThatFailsLeavesEverythingAsItWas) {
  ASSERT_TRUE(CreateFile(path_, "old", 0640).ok());
  const auto fail = [](const std::string&) -> absl::StatusOr<std::string> {
    return absl::AlreadyExistsError("no");
  };
  EXPECT_TRUE(absl::IsAlreadyExists(EditFile(path_, fail)));
  EXPECT_EQ(Contents(path_), "old");
  EXPECT_TRUE(absl::IsAlreadyExists(EditFile(path_ + "2", fail)));
  EXPECT_EQ(directory_.entry_count(), 1);
}

TEST_F(WholeFileTest, EditThatChangesNothingWritesNothing) {
  ASSERT_TRUE(CreateFile(path_, "old", 0640).ok());
  struct stat before = {}, after = {};
  ASSERT_EQ(stat(path_.c_str(), &before), 0);
  ASSERT_TRUE(EditFile(path_, [](const std::string& text) { return text; }).ok());
  ASSERT_EQ(stat(path_.c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
  // An empty file is made all the same if there is none.
  ASSERT_TRUE(EditFile(path_ + "2", [](const std::string& text) { return text; }).ok());
  EXPECT_TRUE(fs::exists(path_ + "2"));
}

TEST_F(WholeFileTest, EditFollowsALink) {
  ASSERT_TRUE(CreateFile(path_, "old", kOwnerOnly).ok());
  const std::string link = directory_.path() + "/link";
  fs::create_symlink(path_, link);
  ASSERT_TRUE(EditFile(link, [](const std::string&) { return "new"; }).ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(Contents(path_), "new");
}

TEST_F(WholeFileTest, EditsAtOnceAreAllThere) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(EditFile(path_, [](const std::string& text) { return text + "x"; }).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Contents(path_), std::string(40, 'x'));
}

TEST_F(WholeFileTest, MadeDirectoriesAreForTheirOwnerAlone) {
  ASSERT_TRUE(EnsureDirectory(directory_.path() + "/a/b/").ok());
  EXPECT_EQ(ModeOf(directory_.path() + "/a"), 0700u);
  EXPECT_EQ(ModeOf(directory_.path() + "/a/b"), 0700u);
  chmod((directory_.path() + "/a").c_str(), 0755);
  EXPECT_TRUE(EnsureDirectory(directory_.path() + "/a").ok());
  EXPECT_EQ(ModeOf(directory_.path() + "/a"), 0755u);
  ASSERT_TRUE(CreateFile(path_, "", kOwnerOnly).ok());
  EXPECT_EQ(ExitCodeOf(EnsureDirectory(path_)), ExitCode::kInput);
}

TEST_F(WholeFileTest, AReportIsWrittenOrItsErrorNamesTheFile) {
  EXPECT_TRUE(WriteFile(path_, "old and longer").ok());
  EXPECT_TRUE(WriteFile(path_, "<svg/>").ok());
  EXPECT_EQ(Contents(path_), "<svg/>");
  const absl::Status status = WriteFile(path_ + "/plot.svg", "<svg/>");
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kInput);
  EXPECT_THAT(status.message(), HasSubstr("plot.svg: cannot be written: Not a directory"));
}

}  // namespace
}  // namespace softlookup::tool
