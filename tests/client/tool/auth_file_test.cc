#include "client/tool/auth_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace softlookup::tool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

Identity Reader(const std::string& name) {
  return {.name = name, .token_sha256 = "00", .grants = {{"read", "*"}}};
}

TEST(TokenTest, HasTheDigestOfItsCharacters) {
  EXPECT_EQ(*TokenDigest("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(TokenTest, IsThirtyTwoRandomBytesInBase64Url) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) {
    const std::string token = *NewToken();
    EXPECT_THAT(token, MatchesRegex("[A-Za-z0-9_-]{43}"));
    tokens.insert(token);
  }
  EXPECT_EQ(tokens.size(), 100u);
}

TEST(TokenTest, IsKnownByItsForm) {
  EXPECT_TRUE(IsToken(*NewToken()));
  for (const std::string& text :
       {std::string(), std::string("abc"), std::string(43, '+'), std::string(42, 'A'),
        std::string(43, 'A') + "=", std::string(44, 'A'), std::string(43, '-')}) {
    EXPECT_FALSE(IsToken(text)) << text;
  }
}

TEST(HasIdentityTest, LooksForTheWholeName) {
  const std::string file = *WithIdentity("", Reader("ab"));
  EXPECT_TRUE(*HasIdentity(file, "ab"));
  EXPECT_FALSE(*HasIdentity(file, "a"));
  EXPECT_FALSE(*HasIdentity("", "ab"));
  EXPECT_TRUE(absl::IsInvalidArgument(HasIdentity("{}", "ab").status()));
}

TEST(WithIdentityTest, KeepsEverythingElseInItsOrder) {
  const std::string before = R"({
  "comment": "mine",
  "identities": [
    {
      "zeta": 1,
      "name": "a",
      "limits": {
        "store_bytes": 18446744073709551615
      }
    }
  ],
  "after": [
    true
  ]
})";
  const std::string after = *WithIdentity(before, Reader("b"));
  const std::string added = R"(,
    {
      "name": "b",
      "token_sha256": "00",
      "grants": [
        {
          "role": "read",
          "stores": "*"
        }
      ]
    }
  ])";
  std::string expected = before + "\n";
  expected.replace(expected.find("\n  ],\n"), 4, added);
  EXPECT_EQ(after, expected);
}

TEST(WithIdentityTest, TakesANameAndACertificatesNameOnce) {
  Identity first = Reader("a");
  first.certificate_name = "a.acme";
  const std::string file = *WithIdentity("", first);
  EXPECT_TRUE(absl::IsAlreadyExists(WithIdentity(file, Reader("a")).status()));
  Identity second = Reader("b");
  second.certificate_name = "a.acme";
  EXPECT_TRUE(absl::IsAlreadyExists(WithIdentity(file, second).status()));
  EXPECT_TRUE(WithIdentity(file, Reader("b")).ok());
}

TEST(WithIdentityTest, LeavesOutTheTokenThatAnIdentityHasNot) {
  const std::string file =
      *WithIdentity("", {.name = "a", .certificate_name = "a.acme", .grants = {{"read", "*"}}});
  EXPECT_THAT(file,
              AllOf(HasSubstr("\"certificate_name\": \"a.acme\""), Not(HasSubstr("token_sha256"))));
}

TEST(WithIdentityTest, RefusesAFileThatIsNoAuthFile) {
  for (const char* text : {"{", "[]", "{}", R"({"identities": {}})", "\xff"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(WithIdentity(text, Reader("a")).status())) << text;
  }
}

TEST(WithoutIdentityTest, UndoesWithIdentityAndKeepsEverythingElse) {
  const std::string before = *WithIdentity(
      R"({"comment": "mine", "identities": [{"zeta": 1}, "odd"], "after": 2})", Reader("ab"));
  const std::string both = *WithIdentity(before, Reader("b"));
  EXPECT_EQ(*WithoutIdentity(both, "b"), before);
  EXPECT_THAT(*WithoutIdentity(both, "ab"), AllOf(HasSubstr("zeta"), HasSubstr("odd")));
}

TEST(WithoutIdentityTest, LooksForTheWholeName) {
  const std::string file = *WithIdentity("", Reader("ab"));
  EXPECT_TRUE(absl::IsNotFound(WithoutIdentity(file, "a").status()));
  EXPECT_TRUE(absl::IsNotFound(WithoutIdentity("", "ab").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(WithoutIdentity("{}", "ab").status()));
}

TEST(IdentitiesOfTest, SaysWhatIsMalformedAndWhere) {
  const auto error = [](const std::string& identity) {
    return std::string(
        IdentitiesOf(R"({"identities": [{"name": "a", "grants": []}, )" + identity + "]}")
            .status()
            .message());
  };
  EXPECT_EQ(error(R"({"name": 1})"), "identities[1] has no name");
  EXPECT_EQ(error("7"), "identities[1] has no name");
  EXPECT_EQ(error(R"({"name": "b"})"), "identities[1] has no list \"grants\"");
  EXPECT_EQ(error(R"({"name": "b", "grants": [{"role": "read"}]})"),
            "identities[1] has a grant without \"role\" and \"stores\"");
  EXPECT_EQ(error(R"({"name": "b", "grants": [], "limits": 1})"),
            "identities[1] has \"limits\" that are not an object");
  EXPECT_EQ(error(R"({"name": "b", "grants": [], "limits": {"stores": "3"}})"),
            "identities[1] has a limit that is not a number");
  EXPECT_EQ(error(R"({"name": "b", "grants": [], "limits": {"requests_per_second": 0.5}})"), "");
}

TEST(ValidateIdentityTest, KnowsNamesRolesAndPatterns) {
  const auto valid = [](const std::string& name, Grant grant) {
    Identity identity = Reader(name);
    identity.grants = {std::move(grant)};
    return ValidateIdentity(identity).ok();
  };
  EXPECT_TRUE(valid("A.b_c-9", {"read", "*"}));
  EXPECT_TRUE(valid(std::string(128, 'a'), {"write", "acme/users"}));
  EXPECT_TRUE(valid("a", {"manage", "acme/*"}));
  EXPECT_TRUE(valid("a", {"admin", "*"}));
  EXPECT_FALSE(valid("", {"read", "*"}));
  EXPECT_FALSE(valid(std::string(129, 'a'), {"read", "*"}));
  EXPECT_FALSE(valid("a b", {"read", "*"}));
  EXPECT_FALSE(valid("a", {"root", "*"}));
  EXPECT_FALSE(valid("a", {"admin", "acme/*"}));
  for (const char* stores : {"", "/*", "acme*", "*/acme", "a/*/b", "a..b", "/a", "a b", "**"}) {
    EXPECT_FALSE(valid("a", {"read", stores})) << stores;
  }
  EXPECT_FALSE(ValidateIdentity({.name = "a"}).ok());
}

}  // namespace
}  // namespace softlookup::tool
