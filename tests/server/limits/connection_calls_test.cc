#include "server/limits/connection_calls.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

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

class CutConnectionTest : public ::testing::Test {
 protected:
  // How often `count` calls that are taken back, one after the other, have the connection cut.
  int Flood(const std::string& peer, std::uint64_t count, absl::Time now) {
    const int before = cuts_[peer];
    for (std::uint64_t i = 0; i < count; ++i) {
      const ConnectionCalls::Call call(calls_, peer);
      calls_.TakeBack(peer, now);
    }
    return cuts_[peer] - before;
  }

  std::map<std::string, int> cuts_;
  ConnectionCalls calls_{1024, [this](const std::string& peer) { ++cuts_[peer]; }};
};

constexpr std::uint64_t kMax = ConnectionCalls::kTakenBackMax;
constexpr absl::Time kNow = absl::UnixEpoch();

TEST_F(CutConnectionTest, TooManyTakenBackWithinASecondHaveTheConnectionCutOnce) {
  EXPECT_EQ(Flood("a", kMax, kNow), 0);
  EXPECT_EQ(Flood("b", kMax, kNow), 0) << "each connection has its own";
  EXPECT_EQ(Flood("a", 1, kNow + absl::Milliseconds(999)), 1);
  EXPECT_EQ(Flood("a", kMax, kNow + absl::Milliseconds(999)), 0);
}

TEST_F(CutConnectionTest, FarTooManyInProgressHaveItCut) {
  std::deque<ConnectionCalls::Call> held;
  while (held.size() < 1280) held.emplace_back(calls_, "a");
  EXPECT_EQ(cuts_["a"], 0);
  for (int i = 0; i < 100; ++i) held.emplace_back(calls_, "a");
  EXPECT_EQ(cuts_["a"], 1);
}

TEST_F(CutConnectionTest, EachSecondCountsForItself) {
  for (int second = 0; second < 10; ++second) {
    EXPECT_EQ(Flood("a", kMax, kNow + absl::Seconds(second)), 0);
  }
}

TEST_F(CutConnectionTest, WhoTakesBackLessThanHalfOfManyCallsIsLeftAlone) {
  const ConnectionCalls::Call one_that_stays(calls_, "a");
  int cuts = Flood("a", 1, kNow);
  for (int i = 0; i < 100'000; ++i) {
    const ConnectionCalls::Call answered(calls_, "a"), answered_too(calls_, "a");
    cuts += Flood("a", 1, kNow);
  }
  EXPECT_EQ(cuts, 0);
}

TEST_F(CutConnectionTest, ConnectionsThatAreGoneAreForgotten) {
  absl::Time now = kNow;
  for (int i = 0; i < 100'000; ++i) {
    Flood(absl::StrCat("peer", i), 1, now);
    now += absl::Milliseconds(1);
  }
  EXPECT_LE(calls_.known_connections(), 2048u);
}

}  // namespace
}  // namespace softlookup::server
