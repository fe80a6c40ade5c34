#include "client/cli/byte_size.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

namespace softlookup::cli {
namespace {

TEST(ParseByteSizeTest, TakesBytesAndBinaryUnitsAndNothingElse) {
  const std::pair<const char*, std::int64_t> kSizes[] = {
      {"0", 0},
      {"1", 1},
      {"1000000", 1'000'000},
      {"1KiB", 1024},
      {"512MiB", 512 << 20},
      {"512 MiB", 512 << 20},
      {"3gib", std::int64_t{3} << 30},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
      {"8388607TiB", std::int64_t{8388607} << 40}};
  for (const auto& [text, bytes] : kSizes) EXPECT_EQ(ParseByteSize(text), bytes) << text;
  for (const char* text :
       {"", " ", "MiB", "-1", "+1", "1.5GiB", "1GB", "1K", "1B", "1GiB1", "GiB1", "1 0", "0x10",
        "9223372036854775808", "8388608TiB", "99999999999999999999MiB", "4GiB ", " 4GiB"}) {
    EXPECT_EQ(ParseByteSize(text), std::nullopt) << text;
  }
}

TEST(ByteSizeTest, ReplacesASizeByItsBytesWithinTheBounds) {
  const CLI::Validator size = ByteSize(/*min=*/1, /*max=*/2048);
  std::string text = "2KiB";
  EXPECT_EQ(size(text), "");
  EXPECT_EQ(text, "2048");
  for (std::string wrong : {"0", "3KiB", "2KB", ""}) EXPECT_NE(size(wrong), "") << wrong;
}

}  // namespace
}  // namespace softlookup::cli
