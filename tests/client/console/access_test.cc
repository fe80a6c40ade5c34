#include "client/console/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace softlookup::console {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AccessTest, KnowsItsOwnNamesAlone) {
  const Access access({"127.0.0.1:8471", "localhost:8471"});
  EXPECT_TRUE(access.IsOwnHost("127.0.0.1:8471"));
  EXPECT_TRUE(access.IsOwnHost("localhost:8471"));
  for (const char* host : {"", "127.0.0.1", "127.0.0.1:8472", "evil.example:8471", "LOCALHOST:8471",
                           "127.0.0.1:8471.evil.example"}) {
    EXPECT_FALSE(access.IsOwnHost(host)) << host;
  }
  EXPECT_TRUE(access.IsOwnOrigin("http://127.0.0.1:8471"));
  for (const char* origin : {"", "null", "https://127.0.0.1:8471", "http://127.0.0.1:8472",
                             "http://evil.example:8471", "http://127.0.0.1:8471/"}) {
    EXPECT_FALSE(access.IsOwnOrigin(origin)) << origin;
  }
}

TEST(AccessTest, ATokenLetsInOnce) {
  Access access({"h:1"});
  const std::string token = access.token();
  EXPECT_EQ(token.size(), 64u);
  EXPECT_FALSE(access.Enter("").has_value());
  EXPECT_FALSE(access.Enter(token.substr(1)).has_value());
  EXPECT_EQ(access.token(), token);
  const auto session = access.Enter(token);
  ASSERT_TRUE(session.has_value());
  EXPECT_NE(access.token(), token);
  EXPECT_FALSE(access.Enter(token).has_value());
  EXPECT_TRUE(access.Enter(access.token()).has_value());
}

TEST(AccessTest, ASessionNeedsItsCookieAndItsKey) {
  Access access({"h:1"});
  const Access::Session one = *access.Enter(access.token());
  const Access::Session other = *access.Enter(access.token());
  EXPECT_TRUE(access.Admits(one.cookie, one.key));
  EXPECT_TRUE(access.Admits(other.cookie, other.key));
  EXPECT_FALSE(access.Admits(one.cookie, other.key));
  EXPECT_FALSE(access.Admits(one.cookie, ""));
  EXPECT_FALSE(access.Admits("", one.key));
  EXPECT_FALSE(access.Admits(one.key, one.cookie));
  EXPECT_FALSE(access.Admits("", ""));
}

TEST(AccessTest, TheOldestSessionEndsWhenThereAreTooMany) {
  Access access({"h:1"});
  std::vector<Access::Session> sessions;
  for (std::size_t i = 0; i <= Access::kSessionsMax; ++i) {
    sessions.push_back(*access.Enter(access.token()));
  }
  EXPECT_FALSE(access.Admits(sessions[0].cookie, sessions[0].key));
  EXPECT_TRUE(access.Admits(sessions[1].cookie, sessions[1].key));
  EXPECT_TRUE(access.Admits(sessions.back().cookie, sessions.back().key));
}

TEST(CookiesInTest, FindsTheCookiesOfTheName) {
  EXPECT_THAT(CookiesIn("a=1; b=2;c=3", "a"), ElementsAre("1"));
  EXPECT_THAT(CookiesIn("a=1; b=2;c=3", "b"), ElementsAre("2"));
  EXPECT_THAT(CookiesIn("a=1; b=2;c=3", "c"), ElementsAre("3"));
  EXPECT_THAT(CookiesIn("a=1; b=2; a=3", "a"), ElementsAre("1", "3"));
  EXPECT_THAT(CookiesIn("xa=1; a=", "a"), ElementsAre(""));
  EXPECT_THAT(CookiesIn("ab=1", "a"), IsEmpty());
  EXPECT_THAT(CookiesIn("", "a"), IsEmpty());
  EXPECT_THAT(CookiesIn(";;=; ", "a"), IsEmpty());
}

}  // namespace
}  // namespace softlookup::console
