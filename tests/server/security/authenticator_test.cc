#include "server/security/authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"
#include "core/base/steady_time.h"
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

TEST(AuthenticatorTest, AnIdentityHasOneAccountWhateverTheRules) {
  Authenticator authenticator;
  authenticator.SetRules(Rules(kA));
  const auto first = authenticator.Identify(Certificate("a.x"));
  authenticator.SetRules(Rules(kA));
  const auto second = authenticator.Identify(Certificate("a.x"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->account, second->account);
  EXPECT_EQ(second->account->bytes()->limit(), 100);
}

TEST(AccountTest, RatesAreTheIdentitysWhateverItNames) {
  Authenticator authenticator;
  authenticator.SetRules(Rules(kA));
  const auto caller = authenticator.Identify(Certificate("a.x"));
  ASSERT_THAT(caller.status(), IsOk());
  const absl::Time now = SteadyNow();
  EXPECT_THAT(caller->account->Take(*caller->identity, 1, 0, now), IsOk());
  const absl::Status refused = caller->account->Take(*caller->identity, 1, 0, now);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, "\"a\""));
  EXPECT_EQ(ReasonOf(refused), "IDENTITY_LIMIT");
  EXPECT_TRUE(RetryAfterOf(refused).has_value());
  EXPECT_THAT(caller->account->Take(*caller->identity, 1, 0, now + absl::Seconds(2)), IsOk());
}

}  // namespace
}  // namespace softlookup::server
