#include "server/limits/connection_calls.h"

#include <gtest/gtest.h>

#include <memory>

namespace softlookup::server {
namespace {

TEST(ConnectionCallsTest, EachConnectionHasItsLimit) {
  ConnectionCalls calls(2);
  auto first = std::make_unique<ConnectionCalls::Call>(calls, "a");
  const ConnectionCalls::Call second(calls, "a");
  EXPECT_FALSE(first->is_over_limit());
  EXPECT_FALSE(second.is_over_limit());
  {
    const ConnectionCalls::Call third(calls, "a");
    EXPECT_TRUE(third.is_over_limit());
  }
  const ConnectionCalls::Call other(calls, "b");
  EXPECT_FALSE(other.is_over_limit());
  first.reset();
  const ConnectionCalls::Call again(calls, "a");
  EXPECT_FALSE(again.is_over_limit());
}

}  // namespace
}  // namespace softlookup::server
