#include "server/security/authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

std::shared_ptr<const AuthRules> Rules(const std::string& identities) {
  auto rules = AuthRules::Parse(R"({"identities": [)" + identities + "]}");
  EXPECT_THAT(rules.status(), IsOk());
  return *std::move(rules);
}

Credentials Certificate(const std::string& name) { return {.certificate_names = {name}}; }

constexpr char kA[] = R"({"name": "a", "certificate_name": "a.x",
                          "grants": [{"role": "read", "stores": "*"}],
                          "limits": {"requests_per_second": 1, "bytes_in_flight": 100}})";

TEST(AuthenticatorTest, WithoutRulesEverybodyMayEverything) {
  const Authenticator authenticator;
  const auto caller = authenticator.Identify({});
  ASSERT_THAT(caller.status(), IsOk());
  EXPECT_EQ(caller->name(), "");
  EXPECT_TRUE(caller->May(Role::kAdmin, "s"));
  EXPECT_FALSE(authenticator.HasChangedSince(*caller));
}

TEST(AuthenticatorTest, WithRulesWhoIsNobodyIsRefused) {
  Authenticator authenticator;
  authenticator.SetRules(Rules(kA));
  EXPECT_THAT(authenticator.Identify({}).status(),
              StatusIs(absl::StatusCode::kUnauthenticated, ""));
  EXPECT_THAT(authenticator.Identify(Certificate("b.x")).status(),
              StatusIs(absl::StatusCode::kUnauthenticated, ""));
  // A wrong token is not made good by a certificate.
  Credentials both = Certificate("a.x");
  both.token = Sha256Of("guess");
  EXPECT_THAT(authenticator.Identify(both).status(),
              StatusIs(absl::StatusCode::kUnauthenticated, "token"));
  EXPECT_THAT(authenticator.Identify(Certificate("a.x")).status(), IsOk());
}

TEST(AuthenticatorTest, RulesTakeEffectForCallersOfBefore) {
  Authenticator authenticator;
  authenticator.SetRules(Rules(kA));
  const auto before = authenticator.Identify(Certificate("a.x"));
  ASSERT_THAT(before.status(), IsOk());
  EXPECT_FALSE(authenticator.HasChangedSince(*before));
  authenticator.SetRules(Rules(""));
  EXPECT_TRUE(authenticator.HasChangedSince(*before));
  EXPECT_FALSE(authenticator.Identify(before->credentials).ok());
}

TEST(AuthenticatorTest, TheUsageOfAnIdentityOutlivesAChangeOfTheRules) {
  Authenticator authenticator;
  authenticator.SetRules(Rules(kA));
  const auto first = authenticator.Identify(Certificate("a.x"));
  authenticator.SetRules(Rules(kA));
  const auto second = authenticator.Identify(Certificate("a.x"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->usage, second->usage);
  EXPECT_EQ(second->usage->bytes()->limit(), 100);
}

}  // namespace
}  // namespace softlookup::server
