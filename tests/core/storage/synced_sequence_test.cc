#include "core/storage/synced_sequence.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

class SyncedSequenceTest : public ::testing::Test {
 protected:
  std::uint64_t Read() const { return SyncedSequence(file_).Read(); }

  const testing::TemporaryDirectory directory_;
  const std::string file_ = directory_.path() + "/mark";
};

TEST_F(SyncedSequenceTest, IsWhatWasSetLast) {
  EXPECT_EQ(Read(), 0u);
  SyncedSequence synced(file_);
  for (const std::uint64_t number : {std::uint64_t{7}, std::uint64_t{9}, ~std::uint64_t{0}}) {
    synced.Set(number);
    EXPECT_EQ(synced.Read(), number);
    EXPECT_EQ(Read(), number);
  }
}

TEST_F(SyncedSequenceTest, AFileThatIsCutShortHasNone) {
  SyncedSequence(file_).Set(7);
  for (const std::uintmax_t size : {15, 8, 0}) {
    std::filesystem::resize_file(file_, size);
    EXPECT_EQ(Read(), 0u) << size;
  }
}

TEST_F(SyncedSequenceTest, AFileWithAFlippedBitHasNone) {
  for (int bit = 0; bit < 128; ++bit) {
    SyncedSequence(file_).Set(7);
    std::fstream file(file_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(bit / 8);
    const auto byte = static_cast<char>(file.get() ^ (1 << bit % 8));
    file.seekp(bit / 8);
    file.put(byte);
    file.close();
    EXPECT_EQ(Read(), 0u) << bit;
  }
}

TEST_F(SyncedSequenceTest, OneThatCannotBeWrittenStays) {
  SyncedSequence synced(directory_.path() + "/nowhere/mark");
  synced.Set(7);
  EXPECT_EQ(synced.Read(), 0u);
}

}  // namespace
}  // namespace softlookup
