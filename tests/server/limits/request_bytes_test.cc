#include "server/limits/request_bytes.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace softlookup::server {
namespace {

TEST(RequestBytesTest, AreTakenUpToTheLimitAndGivenBack) {
  const auto bytes = std::make_shared<RequestBytes>(100);
  ASSERT_TRUE(bytes->TryTake(60));
  {
    const RequestCharge charge(bytes, 60);
    EXPECT_FALSE(bytes->TryTake(41));
    EXPECT_EQ(bytes->used(), 60);
    ASSERT_TRUE(bytes->TryTake(40));
    bytes->Return(40);
  }
  EXPECT_EQ(bytes->used(), 0);
}

TEST(RequestBytesTest, OneRequestMayNotHoldUpAllOthers) {
  RequestBytes bytes(100);
  EXPECT_FALSE(bytes.TryTake(101));
  EXPECT_TRUE(bytes.TryTake(100));
}

TEST(RequestBytesTest, ZeroIsNoLimit) {
  RequestBytes bytes(0);
  EXPECT_TRUE(bytes.TryTake(1000));
  EXPECT_TRUE(bytes.TryTake(1000));
}

TEST(RequestChargeTest, IsGivenBackOnceHoweverItMoves) {
  const auto bytes = std::make_shared<RequestBytes>(100);
  ASSERT_TRUE(bytes->TryTake(10));
  RequestCharge charge(bytes, 10);
  RequestCharge moved(std::move(charge));
  RequestCharge assigned;
  assigned = std::move(moved);
  EXPECT_EQ(bytes->used(), 10);
  assigned = RequestCharge();
  EXPECT_EQ(bytes->used(), 0);
}

}  // namespace
}  // namespace softlookup::server
