#include "server/flag_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace softlookup::server {
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

TEST(SplitHostPortTest, TakesHostAndPortApart) {
  const struct {
    const char* address;
    const char* host;
    int port;
  } kCases[] = {
      {"127.0.0.1:7471", "127.0.0.1", 7471},
      {"0.0.0.0:0", "0.0.0.0", 0},
      {"localhost:65535", "localhost", 65535},
      {"host.example:1", "host.example", 1},
      {"[::1]:7471", "::1", 7471},
      {"[::]:0", "::", 0},
      {"[fe80::1%eth0]:80", "fe80::1%eth0", 80},
      {"h:007", "h", 7},
  };
  for (const auto& expected : kCases) {
    const auto split = SplitHostPort(expected.address);
    ASSERT_TRUE(split) << expected.address;
    EXPECT_EQ(split->host, expected.host);
    EXPECT_EQ(split->port, expected.port);
  }
}

TEST(SplitHostPortTest, RefusesAnythingElse) {
  for (const char* address : {"",           ":",
                              "7471",       "localhost",
                              "localhost:", ":7471",
                              "::1:7471",   "::1",
                              "[::1]",      "[::1]:",
                              "[]:1",       "[:1",
                              "[::1:1",     "[::1]7471",
                              "h:-1",       "h:+1",
                              "h: 1",       "h:1 ",
                              "h:0x1",      "h:http",
                              "h:65536",    "h:99999999999999999999",
                              "a:b:1"}) {
    EXPECT_FALSE(SplitHostPort(address)) << address;
  }
}

}  // namespace
}  // namespace softlookup::server
