#include "core/replication/tenant_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "tests/core/replication/event_loop.h"
#include "tests/core/replication/simulated_etcd.h"
#include "tests/core/replication/simulated_process.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using testing::IsOk;
using ::testing::Pair;
using testing::StatusIs;

constexpr absl::Duration kTick = absl::Milliseconds(100);
// The lists and transactions of a claim take less if no answer is lost.
constexpr absl::Duration kAnswerTime = absl::Seconds(1);
const TenantKeys kKeys("c");

// The primary of a group.
class Group {
 public:
  Group(const std::string& name, testing::SimulatedEtcd& etcd, testing::EventLoop& loop,
        std::size_t tenants_max = TenantClaims::kTenantsMax)
      : name_(name),
        process_(loop),
        client_(etcd, process_),
        loop_(loop),
        claims_(kKeys, name, client_, loop, tenants_max) {
    TickLater();
  }

  const std::string& name() const { return name_; }
  TenantClaims& claims() { return claims_; }

 private:
  void TickLater() {
    loop_.After(kTick, [this, alive = std::weak_ptr(alive_)] {
      if (alive.expired()) return;
      claims_.Tick();
      TickLater();
    });
  }

  const std::string name_;
  testing::SimulatedProcess process_;
  testing::SimulatedEtcdClient client_;
  testing::EventLoop& loop_;
  TenantClaims claims_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class TenantClaimsTest : public ::testing::Test {
 protected:
  void After(absl::Duration time) { loop_.RunUntil(loop_.Now() + time); }
  // Returns what a claim has got after `time`. UNKNOWN: nothing yet.
  absl::Status Claim(Group& group, const std::string& tenant, absl::Duration time = kAnswerTime) {
    auto answer = std::make_shared<absl::Status>(absl::UnknownError("no answer yet"));
    group.claims().Claim(tenant, [answer](absl::Status status) { *answer = std::move(status); });
    After(time);
    return *answer;
  }
  std::optional<std::string> Held(const std::string& tenant) const {
    return etcd_.Value(kKeys.tenant(tenant));
  }

  testing::EventLoop loop_{1};
  testing::SimulatedEtcd etcd_{loop_, [] {}};
};

TEST_F(TenantClaimsTest, ATenantBelongsToTheGroupThatClaimsItFirst) {
  Group one("g1", etcd_, loop_), two("g2", etcd_, loop_);
  EXPECT_THAT(Claim(one, "acme"), IsOk());
  EXPECT_EQ(Held("acme"), "group=g1");
  const absl::Status elsewhere = Claim(two, "acme");
  EXPECT_THAT(elsewhere, StatusIs(absl::StatusCode::kFailedPrecondition, "belongs to group g1"));
  EXPECT_EQ(ReasonOf(elsewhere), "TENANT_ELSEWHERE");
  EXPECT_THAT(MetadataOf(elsewhere), ElementsAre(Pair("group", "g1"), Pair("tenant", "acme")));
  EXPECT_EQ(Held("acme"), "group=g1");
  EXPECT_THAT(Claim(two, "acme2"), IsOk());
  EXPECT_THAT(Claim(one, "acme"), IsOk());
}

TEST_F(TenantClaimsTest, WhatIsKnownOfATenantNeedsNoEtcd) {
  etcd_.Put(kKeys.tenant("before"), "group=g1");
  etcd_.Put(kKeys.tenant("elsewhere"), "group=g2");
  Group one("g1", etcd_, loop_);
  EXPECT_THAT(Claim(one, "new"), IsOk());
  etcd_.is_away = true;
  EXPECT_THAT(Claim(one, "new", absl::ZeroDuration()), IsOk());
  EXPECT_THAT(Claim(one, "before", absl::ZeroDuration()), IsOk());
  EXPECT_EQ(ReasonOf(Claim(one, "elsewhere", absl::ZeroDuration())), "TENANT_ELSEWHERE");
}

TEST_F(TenantClaimsTest, AClaimThatEtcdDoesNotAnswerIsRefusedAfterSomeSeconds) {
  Group one("g1", etcd_, loop_);
  for (const bool is_listed : {false, true}) {
    if (is_listed) {
      EXPECT_THAT(Claim(one, "first"), IsOk());
    }
    etcd_.is_away = true;
    const absl::Status early = Claim(one, "acme", TenantClaims::kTimeMax - kTick);
    EXPECT_TRUE(absl::IsUnknown(early));
    EXPECT_TRUE(absl::IsUnknown(Claim(one, "acme", 2 * kTick)));  // The first one has ended now.
    const absl::Status refused = Claim(one, "other", TenantClaims::kTimeMax + kTick);
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable, "The write was not made"));
    EXPECT_TRUE(RetryAfterOf(refused).has_value());
    EXPECT_FALSE(HasUnknownOutcome(refused));
    etcd_.is_away = false;
    EXPECT_THAT(Claim(one, absl::StrCat("later", is_listed), absl::Seconds(4)), IsOk());
  }
}

TEST_F(TenantClaimsTest, AClaimWhoseAnswerIsLostIsSentAgain) {
  Group one("g1", etcd_, loop_);
  EXPECT_THAT(Claim(one, "first"), IsOk());
  etcd_.faults.lost_answer = 1;
  EXPECT_TRUE(absl::IsUnknown(Claim(one, "acme")));
  EXPECT_EQ(Held("acme"), "group=g1");
  etcd_.faults.lost_answer = 0;
  EXPECT_THAT(Claim(one, "acme", absl::Seconds(3)), IsOk());
}

TEST_F(TenantClaimsTest, WhoWaitsIsToldWhenTheClaimsEnd) {
  Group one("g1", etcd_, loop_);
  etcd_.is_away = true;
  std::optional<absl::Status> ended;
  one.claims().Claim("acme", [&](absl::Status status) { ended = std::move(status); });
  one.claims().End("the server stops");
  ASSERT_TRUE(ended.has_value());
  EXPECT_THAT(*ended,
              StatusIs(absl::StatusCode::kUnavailable, "The write was not made: the server stops"));
}

TEST_F(TenantClaimsTest, OneTenantMoreThanTheClusterMayHaveIsRefused) {
  constexpr std::size_t kMax = 3;
  Group one("g1", etcd_, loop_, kMax), two("g2", etcd_, loop_, kMax);
  EXPECT_THAT(Claim(one, "a"), IsOk());
  EXPECT_THAT(Claim(two, "b"), IsOk());
  // The group that claims next lists the tenants of the other one, too.
  After(TenantClaims::kListAgeMax);
  // Of several at a time, as many as there is room for.
  int made = 0, refused = 0;
  for (const char* tenant : {"c", "d", "e"}) {
    one.claims().Claim(tenant, [&](const absl::Status& status) {
      made += status.ok() ? 1 : 0;
      refused += ReasonOf(status) == "TOO_MANY_TENANTS" ? 1 : 0;
    });
  }
  After(kAnswerTime);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(ReasonOf(Claim(two, "f")), "TOO_MANY_TENANTS");
  EXPECT_EQ(Held("f"), std::nullopt);
  // A process that knows nothing yet still finds those that are there.
  Group again("g1", etcd_, loop_, kMax);
  EXPECT_THAT(Claim(again, "a"), IsOk());
  EXPECT_EQ(ReasonOf(Claim(again, "b")), "TENANT_ELSEWHERE");
}

TEST_F(TenantClaimsTest, TenantsThatAreTooManyToListAreFoundOneByOne) {
  for (std::size_t i = 0; i <= Etcd::kListedKeysMax; ++i) {
    etcd_.Put(kKeys.tenant(absl::StrCat(i)), i % 2 == 0 ? "group=g2" : "group=g1");
  }
  Group one("g1", etcd_, loop_);
  EXPECT_THAT(Claim(one, "17"), IsOk());
  EXPECT_EQ(ReasonOf(Claim(one, "18")), "TENANT_ELSEWHERE");
  EXPECT_EQ(ReasonOf(Claim(one, "new")), "TOO_MANY_TENANTS");
  EXPECT_EQ(Held("new"), std::nullopt);
}

TEST_F(TenantClaimsTest, AMalformedValueRefusesItsTenantAlone) {
  etcd_.Put(kKeys.tenant("bad"), "grup=g1");
  Group one("g1", etcd_, loop_);
  EXPECT_THAT(Claim(one, "bad"), StatusIs(absl::StatusCode::kUnavailable, "malformed at group"));
  EXPECT_THAT(Claim(one, "good"), IsOk());
  EXPECT_EQ(Held("bad"), "grup=g1");
}

class LossyTenantClaimsTest : public ::testing::TestWithParam<std::uint64_t> {};  // The seed.

// Two groups claim the same tenants at once, and again after each error, while calls get lost.
TEST_P(LossyTenantClaimsTest, EachTenantHasOneGroupWhateverGetsLost) {
  testing::EventLoop loop(GetParam());
  testing::SimulatedEtcd etcd(loop, [] {});
  etcd.faults = {.lost_request = 0.2, .lost_answer = 0.2, .late = 0.2, .old_read = 0.3};
  Group one("g1", etcd, loop), two("g2", etcd, loop);
  constexpr int kTenants = 20;
  int answered = 0;
  std::array<std::string, kTenants> owners;
  const std::function<void(Group&, int)> claim = [&](Group& group, int tenant) {
    group.claims().Claim(absl::StrCat(tenant), [&, tenant](const absl::Status& status) {
      if (absl::IsUnavailable(status)) return claim(group, tenant);
      ++answered;
      const auto held = ParseTenant(etcd.Value(kKeys.tenant(absl::StrCat(tenant))).value_or(""));
      ASSERT_THAT(held.status(), IsOk());
      EXPECT_EQ(status.ok(), held->group == group.name());
      EXPECT_EQ(ReasonOf(status), status.ok() ? "" : "TENANT_ELSEWHERE");
      if (owners[tenant].empty()) owners[tenant] = held->group;
      EXPECT_EQ(owners[tenant], held->group);
    });
  };
  for (int tenant = 0; tenant < kTenants; ++tenant) {
    loop.After(loop.Between(absl::ZeroDuration(), absl::Seconds(2)), [&, tenant] {
      const bool one_is_first = loop.Happens(0.5);
      claim(one_is_first ? one : two, tenant);
      claim(one_is_first ? two : one, tenant);
    });
  }
  while (answered < 2 * kTenants) loop.RunUntil(loop.Now() + absl::Seconds(10));
  loop.RunUntil(loop.Now() + absl::Minutes(1));  // What is late is made.
  for (int tenant = 0; tenant < kTenants; ++tenant) {
    EXPECT_EQ(etcd.Value(kKeys.tenant(absl::StrCat(tenant))), "group=" + owners[tenant]);
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, LossyTenantClaimsTest, ::testing::Range<std::uint64_t>(1, 101));

}  // namespace
}  // namespace softlookup
