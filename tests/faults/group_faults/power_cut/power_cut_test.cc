// What a power cut takes from a directory, and what it leaves.
#include "tests/faults/group_faults/power_cut/power_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/testing/random.h"
#include "tests/testing/server_process.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

namespace fs = std::filesystem;

class PowerCutTest : public ::testing::Test {
 protected:
  PowerCutTest() { fs::create_directory(directory_); }

  // Runs a program that the library watches.
  void Run(const std::vector<std::string>& command) {
    std::vector<std::string> all = power_cut_.Prefix(directory_);
    all.insert(all.end(), command.begin(), command.end());
    const CommandResult result = RunCommand(all);
    ASSERT_EQ(result.exit_code, 0) << command[0] << ": " << result.err;
  }
  // Adds `bytes` to a file, and syncs it if `options` say so.
  void Write(const std::string& file, int bytes, const std::string& options = "notrunc") {
    Run({"dd", "if=/dev/zero", "of=" + Path(file), "oflag=append", "bs=" + std::to_string(bytes),
         "count=1", "conv=" + options});
  }
  std::string Path(const std::string& file) const { return directory_ + "/" + file; }
  // The size of a file; -1: there is none.
  std::int64_t Size(const std::string& file) const {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(Path(file), error);
    return error ? -1 : static_cast<std::int64_t>(size);
  }

  const TemporaryDirectory parent_;
  const std::string directory_ = fs::canonical(parent_.path()).string() + "/data";
  const PowerCut power_cut_;
};

TEST_F(PowerCutTest, TakesEndsAndNamesThatWereNotSyncedAndNothingElse) {
  std::set<std::int64_t> sizes_of_old, sizes_of_new, sizes_of_replaced;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Write("old", 1000, "notrunc,fsync");
    Write("replaced", 10, "notrunc,fsync");
    Run({"sync", directory_});
    Write("old", 500);
    Write("new", 300);
    Write("other", 20, "notrunc,fsync");
    Run({"mv", Path("other"), Path("replaced")});
    Draw draw(seed);
    power_cut_.Cut(directory_, draw);
    sizes_of_old.insert(Size("old"));
    sizes_of_new.insert(Size("new"));
    sizes_of_replaced.insert(Size("replaced"));
    for (const auto& entry : fs::directory_iterator(directory_)) fs::remove(entry.path());
  }
  EXPECT_EQ(*sizes_of_old.begin(), 1000);
  EXPECT_EQ(*sizes_of_old.rbegin(), 1500);
  EXPECT_EQ(*sizes_of_new.begin(), -1);
  EXPECT_EQ(*sizes_of_new.rbegin(), 300);
  EXPECT_EQ(sizes_of_replaced, (std::set<std::int64_t>{10, 20}));
}

TEST_F(PowerCutTest, TakesNothingOnceAllIsSynced) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Write("file", 100, "notrunc,fdatasync");
    Run({"mv", Path("file"), Path("renamed")});
    Run({"sync", directory_});
    Draw draw(seed);
    const PowerCut::Taken taken = power_cut_.Cut(directory_, draw);
    EXPECT_EQ(taken.names, 0);
    EXPECT_EQ(taken.bytes, 0);
    EXPECT_EQ(Size("renamed"), 100);
    fs::remove(Path("renamed"));
  }
}

TEST_F(PowerCutTest, NamesInADirectoryThatWasRenamedAreTheirOwn) {
  std::set<std::string> left;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    fs::create_directory(Path("before"));
    Write("before/file", 100, "notrunc,fsync");
    Run({"mv", Path("before"), Path("after")});
    Run({"sync", directory_});
    Draw draw(seed);
    power_cut_.Cut(directory_, draw);
    EXPECT_FALSE(fs::exists(Path("before")));
    left.insert(fs::exists(Path("after/file")) ? "all" : "the directory");
    fs::remove_all(Path("after"));
  }
  EXPECT_EQ(left, (std::set<std::string>{"all", "the directory"}));
}

}  // namespace
}  // namespace softlookup::testing
