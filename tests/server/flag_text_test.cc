#include <gtest/gtest.h>

#include "server/base/host_port.h"

namespace softlookup::server {
namespace {

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
