#include "core/storage/disk_reserve.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

constexpr std::uint64_t kAmpleRoom = std::numeric_limits<std::uint64_t>::max();

class DiskReserveTest : public ::testing::Test {
 protected:
  bool IsThere() const { return std::filesystem::exists(file_); }

  const softlookup::testing::TemporaryDirectory directory_;
  const std::string file_ = directory_.path() + "/RESERVE";
  DiskReserve reserve_{file_};
};

TEST_F(DiskReserveTest, IsMadeReleasedAndMadeAgain) {
  reserve_.Release();
  for (int i = 0; i < 2; ++i) {
    reserve_.Make(kAmpleRoom);
    ASSERT_TRUE(IsThere());
    EXPECT_EQ(std::filesystem::file_size(file_), DiskReserve::kBytes);
    reserve_.Make(0);
    EXPECT_TRUE(IsThere()) << "it needs no more room";
    EXPECT_TRUE(reserve_.is_held());
    reserve_.Release();
    EXPECT_FALSE(reserve_.is_held());
    EXPECT_FALSE(IsThere());
  }
}

TEST_F(DiskReserveTest, TakesNoRoomThatOthersNeed) {
  reserve_.Make(DiskReserve::kBytes + DiskReserve::kBytesLeftMin - 1);
  EXPECT_FALSE(IsThere());
  EXPECT_FALSE(reserve_.is_held());
  reserve_.Make(DiskReserve::kBytes + DiskReserve::kBytesLeftMin);
  EXPECT_TRUE(IsThere());
}

TEST_F(DiskReserveTest, AFileThatHoldsNoRoomIsReplaced) {
  std::ofstream(file_) << "cut short";
  reserve_.Make(kAmpleRoom);
  EXPECT_EQ(std::filesystem::file_size(file_), DiskReserve::kBytes);
  // A hole.
  std::filesystem::resize_file(file_, 0);
  std::filesystem::resize_file(file_, DiskReserve::kBytes);
  reserve_.Make(0);
  EXPECT_FALSE(IsThere());
}

TEST_F(DiskReserveTest, ADirectoryThatIsNotThereIsNoError) {
  DiskReserve reserve(directory_.path() + "/missing/RESERVE");
  reserve.Make(kAmpleRoom);
  reserve.Release();
}

}  // namespace
}  // namespace softlookup
