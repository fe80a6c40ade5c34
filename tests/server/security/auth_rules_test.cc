#include "server/security/auth_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

std::string HexOf(const std::string& token) {
  const Sha256 digest = Sha256Of(token);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::string OneIdentity() {
  return absl::StrCat(
      R"({"identities": [{"name": "ingest", "token_sha256": ")", HexOf("secret"),
      R"(", "certificate_name": "ingest.acme", "grants": [{"role": "write", "stores": "acme/*"}],)",
      R"( "limits": {"requests_per_second": 2.5, "stores": 7}}]})");
}

TEST(Sha256Test, IsThatOfTheStandard) {
  EXPECT_EQ(HexOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(AuthRulesTest, FindsAnIdentityByItsTokenAndByItsCertificate) {
  const auto rules = AuthRules::Parse(OneIdentity());
  ASSERT_THAT(rules.status(), IsOk());
  const auto by_token = (*rules)->FindByToken(Sha256Of("secret"));
  ASSERT_NE(by_token, nullptr);
  EXPECT_EQ(by_token->name, "ingest");
  EXPECT_TRUE(by_token->May(Role::kWrite, "acme/users"));
  EXPECT_EQ(by_token->limits.requests_per_second, 2.5);
  EXPECT_EQ(by_token->limits.stores, 7);
  EXPECT_EQ((*rules)->FindByCertificate({"other", "ingest.acme"}), by_token);
}

TEST(AuthRulesTest, FindsNobodyByWhatTheFileDoesNotSay) {
  const auto rules = AuthRules::Parse(OneIdentity());
  ASSERT_THAT(rules.status(), IsOk());
  EXPECT_EQ((*rules)->FindByToken(Sha256Of("Secret")), nullptr);
  EXPECT_EQ((*rules)->FindByToken(Sha256Of("")), nullptr);
  EXPECT_EQ((*rules)->FindByCertificate({}), nullptr);
  EXPECT_EQ((*rules)->FindByCertificate({"INGEST.acme"}), nullptr);
}

TEST(AuthRulesTest, ACertificateOfTwoIdentitiesIsNobodys) {
  const auto rules = AuthRules::Parse(
      R"({"identities": [{"name": "a", "certificate_name": "a.x", "grants": []},
                         {"name": "b", "certificate_name": "b.x", "grants": []}]})");
  ASSERT_THAT(rules.status(), IsOk());
  EXPECT_NE((*rules)->FindByCertificate({"a.x", "c.x"}), nullptr);
  EXPECT_EQ((*rules)->FindByCertificate({"a.x", "b.x"}), nullptr);
}

TEST(AuthRulesTest, TellsWhoHasNoToken) {
  const auto rules = AuthRules::Parse(absl::StrCat(
      R"({"identities": [{"name": "b", "certificate_name": "b.x", "grants": []},
                         {"name": "t", "token_sha256": ")",
      HexOf("secret"), R"(", "certificate_name": "t.x", "grants": []},
                         {"name": "a", "certificate_name": "a.x", "grants": []}]})"));
  ASSERT_THAT(rules.status(), IsOk());
  EXPECT_EQ((*rules)->certificate_only(), std::vector<std::string>({"b", "a"}));
}

TEST(AuthRulesTest, ANobodyListIsAllowed) {
  const auto rules = AuthRules::Parse(R"({"identities": []})");
  ASSERT_THAT(rules.status(), IsOk());
  EXPECT_EQ((*rules)->identity_count(), 0u);
}

// What one replaces in the good file, and what the error says of it.
struct Mistake {
  const char* from;
  const char* to;
  const char* error;
};

TEST(AuthRulesTest, EveryMistakeNamesWhereItIs) {
  const std::vector<Mistake> mistakes = {
      {"\"identities\"", "\"identitys\"", "unknown member \"identitys\""},
      {"\"name\": \"ingest\"", "\"name\": \"\"", "identities[0].name"},
      {"\"name\": \"ingest\"", "\"name\": \"in gest\"", "identities[0].name"},
      {"\"name\": \"ingest\"", "\"name\": 7", "identities[0].name"},
      {"\"write\"", "\"writer\"", "identities[0].grants[0].role"},
      {"acme/*", "acme*", "identities[0].grants[0].stores"},
      {"\"write\"", "\"admin\"", "identities[0].grants[0].stores"},
      {"\"grants\"", "\"grant\"", "unknown member \"grant\""},
      {"\"token_sha256\": \"", "\"token_sha256\": \"0", "identities[0].token_sha256"},
      {"\"stores\": 7", "\"stores\": 7.5", "identities[0].limits.stores: must be a whole"},
      {"\"stores\": 7", "\"stores\": -1", "identities[0].limits.stores"},
      {"2.5", "0", "identities[0].limits.requests_per_second"},
      {"2.5", "1e999", "not JSON"},
      {"\"limits\": {", "\"limits\": {\"rows\": 1, ", "unknown member \"rows\""},
      {"\"name\": \"ingest\"", "\"name\": \"ingest\", \"name\": \"x\"", "stands twice"},
      {"]}", "]", "not JSON"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string file = absl::StrReplaceAll(OneIdentity(), {{mistake.from, mistake.to}});
    EXPECT_THAT(AuthRules::Parse(file).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, mistake.error))
        << mistake.to;
  }
}

TEST(AuthRulesTest, NoErrorQuotesAToken) {
  const std::string file =
      absl::StrReplaceAll(OneIdentity(), {{"\"token_sha256\": \"", "\"token_sha256\": \"0"}});
  const absl::Status status = AuthRules::Parse(file).status();
  EXPECT_THAT(std::string(status.message()), ::testing::Not(::testing::HasSubstr(HexOf("secret"))));
}

TEST(AuthRulesTest, WhatIsOneIdentitysMayNotBeAnothers) {
  const std::string a = R"({"name": "a", "token_sha256": ")" + HexOf("t") +
                        R"(", "certificate_name": "c", "grants": []})";
  const auto both = [&](const std::string& b) {
    return AuthRules::Parse(absl::StrCat(R"({"identities": [)", a, ", ", b, "]}")).status();
  };
  EXPECT_THAT(both(R"({"name": "a", "certificate_name": "d", "grants": []})"),
              StatusIs(absl::StatusCode::kInvalidArgument, "identities[1].name"));
  EXPECT_THAT(both(R"({"name": "b", "certificate_name": "c", "grants": []})"),
              StatusIs(absl::StatusCode::kInvalidArgument, "identities[1].certificate_name"));
  EXPECT_THAT(both(R"({"name": "b", "token_sha256": ")" + HexOf("t") + R"(", "grants": []})"),
              StatusIs(absl::StatusCode::kInvalidArgument, "identities[1].token_sha256"));
  EXPECT_THAT(both(R"({"name": "b", "grants": []})"),
              StatusIs(absl::StatusCode::kInvalidArgument, "neither"));
}

TEST(AuthRulesTest, DeepNestingIsAnError) {
  const std::string deep(100'000, '[');
  EXPECT_THAT(AuthRules::Parse(deep).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "not JSON"));
}

}  // namespace
}  // namespace softlookup::server
