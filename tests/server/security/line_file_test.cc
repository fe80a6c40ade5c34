#include "server/security/line_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/testing/temporary_directory.h"

namespace softlookup::server {
namespace {

// While the object lives, no file of this process can grow beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_;
  sighandler_t handler_;
};

class LineFileTest : public ::testing::Test {
 protected:
  LineFileTest() { EXPECT_TRUE(file_.Open()); }

  std::string Contents() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::int64_t AppendLimited(const std::string& lines, rlim_t bytes) {
    const FileSizeLimit limit(bytes);
    return file_.Append(lines);
  }

  const softlookup::testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/lines";
  LineFile file_{path_};
};

TEST_F(LineFileTest, AppendsLines) {
  EXPECT_EQ(file_.Append("a\n"), 0);
  EXPECT_EQ(file_.Append("b\nc\n"), 0);
  EXPECT_EQ(file_.Append(""), 0);
  EXPECT_EQ(Contents(), "a\nb\nc\n");
}

TEST_F(LineFileTest, CountsTheLinesThatAreNotInItWhole) {
  EXPECT_EQ(AppendLimited("a\nbb\ncc\n", 3), 2);
  EXPECT_EQ(AppendLimited("dd\n", 3), 1);
  EXPECT_EQ(Contents(), "a\nb");
}

TEST_F(LineFileTest, TheNextLineDoesNotRunIntoOneThatWasCut) {
  EXPECT_EQ(AppendLimited("aaa\n", 1), 1);
  EXPECT_EQ(file_.Append("b\n"), 0);
  EXPECT_EQ(file_.Append("c\n"), 0);
  EXPECT_EQ(Contents(), "a\nb\nc\n");
}

TEST_F(LineFileTest, ACutLineIsEndedAlsoAfterTheSameFileIsOpenedAgain) {
  EXPECT_EQ(AppendLimited("aaa\n", 1), 1);
  EXPECT_TRUE(file_.Open());
  EXPECT_EQ(file_.Append("b\n"), 0);
  EXPECT_EQ(Contents(), "a\nb\n");
}

TEST_F(LineFileTest, ANewFileBeginsWithALine) {
  EXPECT_EQ(AppendLimited("aaa\n", 1), 1);
  std::filesystem::rename(path_, path_ + ".1");
  EXPECT_TRUE(file_.Open());
  EXPECT_EQ(file_.Append("b\n"), 0);
  EXPECT_EQ(Contents(), "b\n");
}

TEST_F(LineFileTest, TheOldFileStaysInUseIfTheNewOneCannotBeOpened) {
  const std::string kept = path_ + ".1";
  std::filesystem::rename(path_, kept);
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(file_.Open());
  EXPECT_EQ(file_.Append("a\n"), 0);
  EXPECT_EQ(std::filesystem::file_size(kept), 2u);
}

}  // namespace
}  // namespace softlookup::server
