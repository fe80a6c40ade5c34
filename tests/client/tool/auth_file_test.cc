#include "client/tool/auth_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/tool/run_tool.h"
#include "tests/testing/temporary_directory.h"

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

TEST(WithIdentityTest, RefusesAFileThatIsNoAuthFile) {
  for (const char* text : {"{", "[]", "{}", R"({"identities": {}})", "\xff"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(WithIdentity(text, Reader("a")).status())) << text;
  }
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

// `softlookup auth add`.
class AuthAddTest : public ::testing::Test {
 protected:
  Outcome Add(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"auth", "add", path_});
    return RunTool("127.0.0.1:1", std::move(arguments));
  }

  std::string FileText() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/auth.json";
};

TEST_F(AuthAddTest, PrintsATokenOfWhichTheFileHasTheDigestOnly) {
  const Outcome outcome = Add({"ingest", "--role", "write", "--stores", "acme/*", "--role", "read",
                               "--stores", "*", "--certificate-name", "ingest.acme",
                               "--requests-per-second", "1000", "--max-stores", "3"});
  ASSERT_EQ(outcome.error, "");
  ASSERT_THAT(outcome.out, MatchesRegex("[A-Za-z0-9_-]{43}\n"));
  const std::string token = outcome.out.substr(0, 43);
  EXPECT_THAT(outcome.notes, AllOf(HasSubstr("added ingest to " + path_), Not(HasSubstr(token))));
  EXPECT_THAT(FileText(), Not(HasSubstr(token)));
  EXPECT_EQ(nlohmann::json::parse(FileText()), nlohmann::json::parse(R"({"identities": [{
    "name": "ingest", "token_sha256": ")" + *TokenDigest(token) +
                                                                     R"(",
    "certificate_name": "ingest.acme",
    "grants": [{"role": "write", "stores": "acme/*"}, {"role": "read", "stores": "*"}],
    "limits": {"requests_per_second": 1000, "stores": 3}}]})"));
  struct stat attributes = {};
  ASSERT_EQ(stat(path_.c_str(), &attributes), 0);
  EXPECT_EQ(attributes.st_mode & 07777, 0600u);
}

TEST_F(AuthAddTest, NameThatIsThereIsRefusedAndTheFileStays) {
  ASSERT_EQ(Add({"a", "--role", "read", "--stores", "*"}).error, "");
  const std::string before = FileText();
  const Outcome outcome = Add({"a", "--role", "admin", "--stores", "*"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kAlreadyExists);
  EXPECT_THAT(outcome.error, HasSubstr(path_ + " has an identity a already"));
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(FileText(), before);
}

TEST_F(AuthAddTest, SecondIdentityHasATokenOfItsOwn) {
  const auto first =
      RunToolJson("127.0.0.1:1", {"auth", "add", path_, "a", "--role", "read", "--stores", "*"});
  const auto second =
      RunToolJson("127.0.0.1:1", {"auth", "add", path_, "b", "--role", "read", "--stores", "*"});
  EXPECT_EQ(second["name"], "b");
  EXPECT_NE(first["token"], second["token"]);
  EXPECT_EQ(nlohmann::json::parse(FileText())["identities"].size(), 2u);
}

TEST_F(AuthAddTest, WhatTheServerWouldRefuseIsAUsageError) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"a"},
           {"a", "--role", "read"},
           {"a", "--role", "root", "--stores", "*"},
           {"a", "--role", "admin", "--stores", "acme/*"},
           {"a", "--role", "read", "--stores", "acme*"},
           {"a/b", "--role", "read", "--stores", "*"},
           {"a", "--role", "read", "--role", "write", "--stores", "*"}}) {
    EXPECT_EQ(Add(arguments).exit_code, ExitCode::kUsage) << ::testing::PrintToString(arguments);
  }
  EXPECT_EQ(FileText(), "");
}

TEST_F(AuthAddTest, FileThatIsNoAuthFileIsAnInputErrorAndStays) {
  std::ofstream(path_) << "{}";
  const Outcome outcome = Add({"a", "--role", "read", "--stores", "*"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_THAT(outcome.error, HasSubstr(path_ + ": is not an auth file"));
  EXPECT_EQ(FileText(), "{}");
}

}  // namespace
}  // namespace softlookup::tool
