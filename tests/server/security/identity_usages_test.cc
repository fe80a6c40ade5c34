#include "server/security/identity_usages.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;

constexpr absl::Time kNow = absl::UnixEpoch();

// Rules whose only identity has this name.
std::shared_ptr<const AuthRules> RulesOf(const std::string& name) {
  auto rules = AuthRules::Parse(R"({"identities": [{"name": ")" + name +
                                R"(", "certificate_name": "x", "grants": []}]})");
  EXPECT_THAT(rules.status(), IsOk());
  return *std::move(rules);
}

TEST(IdentityUsagesTest, TheUsageIsThatOfTheName) {
  IdentityUsages usages;
  const auto usage = usages.Of({.name = "a"}, kNow);
  EXPECT_EQ(usages.Of({.name = "a"}, kNow + absl::Hours(1)), usage);
  EXPECT_NE(usages.Of({.name = "b"}, kNow), usage);
}

TEST(IdentityUsagesTest, TheLimitIsThatOfTheNewestRules) {
  IdentityUsages usages;
  const auto usage = usages.Of({.name = "a", .limits = {.bytes_in_flight = 100}}, kNow);
  EXPECT_EQ(usage->bytes()->limit(), 100);
  usages.Of({.name = "a", .limits = {.bytes_in_flight = 200}}, kNow);
  EXPECT_EQ(usage->bytes()->limit(), 200);
}

TEST(IdentityUsagesTest, ANameThatTheRulesLackIsForgotten) {
  IdentityUsages usages;
  const auto a = usages.Of({.name = "a"}, kNow), b = usages.Of({.name = "b"}, kNow);
  usages.KeepOnly(*RulesOf("a"));
  EXPECT_EQ(usages.Of({.name = "a"}, kNow), a);
  EXPECT_NE(usages.Of({.name = "b"}, kNow), b);
}

}  // namespace
}  // namespace softlookup::server
