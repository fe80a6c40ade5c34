#include "core/replication/lease_keeper.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/core/replication/event_loop.h"

namespace softlookup {
namespace {

constexpr absl::Duration kTtl = absl::Seconds(6);

// Keeps the callbacks of all calls, for the test to answer.
class AskedEtcd final : public Etcd {
 public:
  void Run(EtcdTxn, Callback<EtcdTxnResult>) override { ADD_FAILURE(); }
  void List(std::string, std::string, Callback<std::vector<EtcdKeyValue>>) override {
    ADD_FAILURE();
  }
  void GrantLease(absl::Duration ttl, Callback<std::int64_t> done) override {
    EXPECT_EQ(ttl, kTtl);
    grants.push_back(std::move(done));
  }
  void KeepAlive(std::int64_t lease, Callback<bool> done) override {
    kept.push_back({lease, std::move(done)});
  }
  void RevokeLease(std::int64_t lease) override { revoked.push_back(lease); }

  std::vector<Callback<std::int64_t>> grants;
  std::vector<std::pair<std::int64_t, Callback<bool>>> kept;
  std::vector<std::int64_t> revoked;
};

class LeaseKeeperTest : public ::testing::Test {
 protected:
  void After(absl::Duration time) {
    loop_.RunUntil(loop_.Now() + time);
    keeper_.Tick();
  }

  testing::EventLoop loop_{1};
  AskedEtcd etcd_;
  LeaseKeeper keeper_{etcd_, loop_, kTtl};
};

TEST_F(LeaseKeeperTest, ALeaseLivesForItsTtlSinceTheRequestWasSent) {
  keeper_.Tick();
  ASSERT_EQ(etcd_.grants.size(), 1u);
  EXPECT_EQ(keeper_.lease(), std::nullopt);
  After(absl::Seconds(1));
  EXPECT_EQ(etcd_.grants.size(), 1u);  // One request in a third of the TTL.
  etcd_.grants[0](7);
  EXPECT_EQ(keeper_.lease(), 7);
  After(absl::Seconds(1));
  ASSERT_EQ(etcd_.kept.size(), 1u);
  EXPECT_EQ(etcd_.kept[0].first, 7);
  After(absl::Seconds(3.5));
  etcd_.kept[0].second(true);  // Asked at 2 s, so it lives until 8 s.
  After(absl::Seconds(2));
  EXPECT_EQ(keeper_.lease(), 7);
  After(absl::Seconds(0.6));
  EXPECT_EQ(keeper_.lease(), std::nullopt);
}

TEST_F(LeaseKeeperTest, ALeaseThatHasEndedIsFollowedByAnother) {
  keeper_.Tick();
  etcd_.grants[0](7);
  After(absl::Seconds(2));
  etcd_.kept[0].second(absl::UnavailableError("no answer"));
  EXPECT_EQ(keeper_.lease(), 7);
  After(absl::Seconds(2));
  etcd_.kept[1].second(false);
  EXPECT_EQ(keeper_.lease(), std::nullopt);
  keeper_.Tick();
  ASSERT_EQ(etcd_.grants.size(), 2u);
  etcd_.grants[1](8);
  EXPECT_EQ(keeper_.lease(), 8);
  etcd_.kept[0].second(true);  // A late answer about the lease before.
  EXPECT_EQ(keeper_.lease(), 8);
}

TEST_F(LeaseKeeperTest, ALeaseThatHasCountedAsEndedDoesNotComeBack) {
  keeper_.Tick();
  etcd_.grants[0](7);
  After(absl::Seconds(2));
  loop_.RunUntil(loop_.Now() + absl::Seconds(4));
  EXPECT_EQ(keeper_.lease(), std::nullopt);
  etcd_.kept[0].second(true);
  EXPECT_EQ(keeper_.lease(), std::nullopt);
  EXPECT_EQ(etcd_.revoked, std::vector<std::int64_t>{7});
  keeper_.Tick();
  ASSERT_EQ(etcd_.grants.size(), 2u);
  etcd_.grants[1](8);
  EXPECT_EQ(keeper_.lease(), 8);
}

TEST_F(LeaseKeeperTest, ARevokedLeaseIsGoneAtOnceAndFollowedByAnother) {
  keeper_.Tick();
  etcd_.grants[0](7);
  keeper_.Revoke();
  EXPECT_EQ(keeper_.lease(), std::nullopt);
  EXPECT_EQ(etcd_.revoked, std::vector<std::int64_t>{7});
  keeper_.Tick();
  EXPECT_EQ(etcd_.grants.size(), 2u);
}

TEST_F(LeaseKeeperTest, ALeaseThatComesLateIsKeptAliveAtOnce) {
  keeper_.Tick();
  After(absl::Seconds(3.7));
  ASSERT_EQ(etcd_.grants.size(), 2u);
  etcd_.grants[0](7);  // Asked at 0 s, so it lives until 6 s.
  EXPECT_EQ(etcd_.kept.size(), 0u);
  After(absl::Seconds(0.1));
  ASSERT_EQ(etcd_.kept.size(), 1u);
  After(absl::Seconds(0.1));
  EXPECT_EQ(etcd_.kept.size(), 1u);
  etcd_.kept[0].second(true);  // Asked at 3.8 s.
  After(absl::Seconds(5.8));
  EXPECT_EQ(keeper_.lease(), 7);
}

TEST_F(LeaseKeeperTest, ALeaseThatComesAfterItsTtlIsFollowedByAnotherAtOnce) {
  keeper_.Tick();
  After(absl::Seconds(5));
  ASSERT_EQ(etcd_.grants.size(), 2u);
  loop_.RunUntil(loop_.Now() + absl::Seconds(1.5));
  etcd_.grants[0](7);
  EXPECT_EQ(keeper_.lease(), std::nullopt);
  keeper_.Tick();
  EXPECT_EQ(etcd_.grants.size(), 3u);
}

TEST_F(LeaseKeeperTest, NoLeaseTakesThePlaceOfOneThatHasEndedBeforeATick) {
  keeper_.Tick();
  After(absl::Seconds(3));
  ASSERT_EQ(etcd_.grants.size(), 2u);
  etcd_.grants[0](7);
  EXPECT_EQ(keeper_.lease(), 7);
  loop_.RunUntil(loop_.Now() + absl::Seconds(3.5));
  etcd_.grants[1](8);  // Alive until 9 s, but a primary may still lead by the other.
  EXPECT_EQ(keeper_.lease(), std::nullopt);
  EXPECT_EQ(etcd_.revoked, std::vector<std::int64_t>{8});
}

TEST_F(LeaseKeeperTest, OfTwoLeasesTheLaterOneIsRevoked) {
  keeper_.Tick();
  After(absl::Seconds(2));
  ASSERT_EQ(etcd_.grants.size(), 2u);
  etcd_.grants[0](7);
  etcd_.grants[1](8);
  EXPECT_EQ(keeper_.lease(), 7);
  EXPECT_EQ(etcd_.revoked, std::vector<std::int64_t>{8});
}

}  // namespace
}  // namespace softlookup
