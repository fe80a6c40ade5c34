#include "server/security/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace softlookup::server {
namespace {

Identity With(Role role, absl::string_view stores) {
  return {.name = "i", .grants = {{role, *StorePattern::Parse(stores)}}};
}

TEST(StorePatternTest, IsANameAPrefixOrAll) {
  EXPECT_TRUE(StorePattern::Parse("*")->is_all());
  EXPECT_TRUE(StorePattern::Parse("acme/users")->is_name());
  EXPECT_EQ(StorePattern::Parse("acme/*")->prefix(), "acme/");
  for (const char* wrong : {"", "/*", "a*", "*/a", "a/*/b", "a/**", "**"}) {
    EXPECT_FALSE(StorePattern::Parse(wrong).has_value()) << wrong;
  }
}

TEST(StorePatternTest, MatchesWhatItSaysAndNothingBeside) {
  EXPECT_TRUE(StorePattern::Parse("*")->Matches("any/thing"));
  EXPECT_TRUE(StorePattern::Parse("acme/*")->Matches("acme/users"));
  EXPECT_FALSE(StorePattern::Parse("acme/*")->Matches("acme"));
  EXPECT_FALSE(StorePattern::Parse("acme/*")->Matches("acme2/users"));
  EXPECT_TRUE(StorePattern::Parse("acme")->Matches("acme"));
  EXPECT_FALSE(StorePattern::Parse("acme")->Matches("acme/users"));
  EXPECT_FALSE(StorePattern::Parse("acme")->Matches(""));
}

TEST(IdentityTest, ARoleIncludesThoseBeforeIt) {
  const Identity writer = With(Role::kWrite, "a/*");
  EXPECT_TRUE(writer.May(Role::kRead, "a/x"));
  EXPECT_TRUE(writer.May(Role::kWrite, "a/x"));
  EXPECT_FALSE(writer.May(Role::kManage, "a/x"));
  EXPECT_FALSE(writer.May(Role::kAdmin, "a/x"));
}

TEST(IdentityTest, ARoleOnOneStoreIsNoneOnAnother) {
  const Identity writer = With(Role::kWrite, "a/*");
  EXPECT_FALSE(writer.May(Role::kRead, "b/x"));
  EXPECT_TRUE(writer.MaySomewhere(Role::kWrite));
  EXPECT_FALSE(writer.MaySomewhere(Role::kManage));
  EXPECT_FALSE(writer.MayEverywhere(Role::kRead));
  EXPECT_TRUE(With(Role::kAdmin, "*").MayEverywhere(Role::kAdmin));
}

TEST(IdentityTest, WithoutGrantsItMayNothing) {
  const Identity nobody{.name = "n"};
  EXPECT_FALSE(nobody.May(Role::kRead, "a"));
  EXPECT_FALSE(nobody.MaySomewhere(Role::kRead));
}

TEST(RoleTest, HasTheNamesOfTheAuthFile) {
  for (const char* name : {"read", "write", "manage", "admin"}) {
    ASSERT_TRUE(RoleOfName(name).has_value()) << name;
    EXPECT_EQ(NameOf(*RoleOfName(name)), name);
  }
  EXPECT_FALSE(RoleOfName("").has_value());
  EXPECT_FALSE(RoleOfName("Admin").has_value());
}

}  // namespace
}  // namespace softlookup::server
