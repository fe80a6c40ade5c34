#include "server/limits/connection_calls.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

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
  CutConnectionTest() {
    calls_.set_cut([this](const std::string& peer, absl::string_view) { ++cuts_[peer]; });
  }

  // Returns how often the connection is cut while `count` calls are cancelled one by one.
  int Cancel(const std::string& peer, std::uint64_t count, bool is_late = false) {
    const int before = cuts_[peer];
    for (std::uint64_t i = 0; i < count; ++i) {
      const ConnectionCalls::Call call(calls_, peer);
      calls_.OnCancel(peer, is_late);
    }
    return cuts_[peer] - before;
  }

  absl::Time now_ = absl::UnixEpoch();
  std::map<std::string, int> cuts_;
  ConnectionCalls calls_{1024, [this] { return now_; }};
};

TEST_F(CutConnectionTest, TooManyCancelledCallsHaveItsConnectionCutOnce) {
  constexpr std::uint64_t kMax = ResetDetector::kCancelledMax;
  EXPECT_EQ(Cancel("a", kMax), 0);
  EXPECT_EQ(Cancel("b", kMax), 0) << "each connection has its own";
  EXPECT_EQ(Cancel("a", 1), 1);
  EXPECT_EQ(Cancel("a", kMax), 0);
}

TEST_F(CutConnectionTest, CancelledCallsAreCountedPerSecond) {
  for (int second = 0; second < 4; ++second) {
    EXPECT_EQ(Cancel("a", ResetDetector::kCancelledMax), 0) << second;
    now_ += absl::Seconds(1);
  }
  EXPECT_EQ(Cancel("a", ResetDetector::kCancelledMax + 1), 1);
}

TEST_F(CutConnectionTest, TheReasonOfACutCompletesItsLine) {
  std::string why;
  calls_.set_cut([&](const std::string&, absl::string_view reason) { why = std::string(reason); });
  for (std::uint64_t i = 0; i <= ResetDetector::kCancelledMax; ++i) {
    const ConnectionCalls::Call call(calls_, "a");
    calls_.OnCancel("a", /*is_late=*/false);
  }
  EXPECT_EQ(why, "opens calls and cancels them");
}

TEST_F(CutConnectionTest, LateCallsAreCountedAsLate) {
  EXPECT_EQ(Cancel("a", ResetDetector::kCancelledOrLateMax, /*is_late=*/true), 0);
  EXPECT_EQ(Cancel("a", 1, /*is_late=*/true), 1);
}

TEST_F(CutConnectionTest, AnsweredCallsCountForTheirConnection) {
  for (int i = 0; i < 1000; ++i) const ConnectionCalls::Call answered(calls_, "a");
  EXPECT_EQ(Cancel("a", 1000), 0);
}

TEST_F(CutConnectionTest, FarTooManyInProgressHaveItCut) {
  std::deque<ConnectionCalls::Call> held;
  while (held.size() < 1280) held.emplace_back(calls_, "a");
  EXPECT_EQ(cuts_["a"], 0);
  for (int i = 0; i < 100; ++i) held.emplace_back(calls_, "a");
  EXPECT_EQ(cuts_["a"], 1);
}

TEST_F(CutConnectionTest, AFewMoreThanASmallLimitAreBorne) {
  int cuts = 0;
  ConnectionCalls calls(1);
  calls.set_cut([&](const std::string&, absl::string_view) { ++cuts; });
  std::deque<ConnectionCalls::Call> held;
  while (held.size() < 65) held.emplace_back(calls, "a");
  EXPECT_EQ(cuts, 0);
  held.emplace_back(calls, "a");
  EXPECT_EQ(cuts, 1);
}

TEST_F(CutConnectionTest, ConnectionsThatAreGoneAreForgotten) {
  for (int i = 0; i < 100'000; ++i) {
    Cancel(absl::StrCat("peer", i), 1);
    now_ += absl::Milliseconds(2);
  }
  EXPECT_LE(calls_.known_connections(), 2048u);
}

}  // namespace
}  // namespace softlookup::server
