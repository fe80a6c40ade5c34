#include "server/router/cluster_map.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace softlookup::server {
namespace {

ClusterMap MapOf(const std::vector<std::string>& groups) {
  ClusterMap map;
  for (const std::string& name : groups) map.groups.push_back({.name = name});
  return map;
}

TEST(ClusterMapTest, FindsAGroupByName) {
  const ClusterMap map = MapOf({"g1", "g2"});
  EXPECT_EQ(map.Find("g2"), &map.groups[1]);
  EXPECT_EQ(map.Find("g"), nullptr);
  EXPECT_EQ(MapOf({}).Find("g"), nullptr);
}

// Routers of other versions must come to the same groups.
TEST(ClusterMapTest, TheGroupOfANewTenantNeverChanges) {
  const ClusterMap two = MapOf({"g1", "g2"}), three = MapOf({"g1", "g2", "g3"});
  const struct {
    const char *tenant, *of_two, *of_three;
  } kGolden[] = {{"acme", "g1", "g1"}, {"users", "g2", "g2"}, {"a", "g1", "g3"},
                 {"zoo", "g1", "g1"},  {"7", "g2", "g2"},     {"x.y-z_", "g2", "g3"}};
  for (const auto& golden : kGolden) {
    EXPECT_EQ(two.GroupOfNewTenant(golden.tenant).name, golden.of_two) << golden.tenant;
    EXPECT_EQ(three.GroupOfNewTenant(golden.tenant).name, golden.of_three) << golden.tenant;
  }
}

TEST(ClusterMapTest, ANewGroupTakesItsShareOfTenantsAndMovesNoOther) {
  const ClusterMap two = MapOf({"g1", "g2"}), three = MapOf({"g1", "g2", "g3"});
  int moved = 0;
  for (int i = 0; i < 3'000; ++i) {
    const std::string tenant = absl::StrCat("tenant", i);
    const std::string& now = three.GroupOfNewTenant(tenant).name;
    if (now == "g3") {
      ++moved;
    } else {
      EXPECT_EQ(now, two.GroupOfNewTenant(tenant).name);
    }
  }
  EXPECT_GT(moved, 850);
  EXPECT_LT(moved, 1'150);
}

}  // namespace
}  // namespace softlookup::server
