#include "server/router/ranged_stores.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace softlookup::server {
namespace {

std::shared_ptr<const RangesAt> At(std::uint64_t revision, std::uint64_t incarnation = 1,
                                   std::size_t ranges = 1) {
  RangesAt told{.revision = revision, .incarnation = incarnation};
  for (std::size_t i = 0; i < ranges; ++i) told.ranges.push_back({.begin = i});
  return std::make_shared<RangesAt>(std::move(told));
}

void BeginTimes(RangedStores& stores, int count, const std::shared_ptr<const RangesAt>& told) {
  for (int i = 0; i < count; ++i) stores.OnBegun("s", told);
}

TEST(RangedStoresTest, AStoreIsSteadyAfterSomeLookupsInARowOfOneRevision) {
  RangedStores stores;
  EXPECT_FALSE(stores.Has("s"));
  stores.Add("s");
  EXPECT_TRUE(stores.Has("s"));
  BeginTimes(stores, RangedStores::kSteadyCount - 1, At(5));
  EXPECT_EQ(stores.Steady("s"), nullptr);
  BeginTimes(stores, RangedStores::kSteadyCount - 1, At(6));
  EXPECT_EQ(stores.Steady("s"), nullptr);
  // Another store of the name.
  BeginTimes(stores, RangedStores::kSteadyCount - 1, At(6, 2));
  EXPECT_EQ(stores.Steady("s"), nullptr);
  stores.OnBegun("s", At(6, 2));
  ASSERT_NE(stores.Steady("s"), nullptr);
  EXPECT_EQ(stores.Steady("s")->revision, 6u);
  EXPECT_EQ(stores.Steady("s")->incarnation, 2u);

  stores.Add("s");  // Another lookup has heard of the ranges, too.
  EXPECT_NE(stores.Steady("s"), nullptr);
  stores.OnChanged("s", *At(5, 2));  // By a lookup that had begun before.
  EXPECT_NE(stores.Steady("s"), nullptr);
  stores.OnChanged("s", *At(6, 2));
  EXPECT_EQ(stores.Steady("s"), nullptr);
  BeginTimes(stores, RangedStores::kSteadyCount, At(6, 2));
  EXPECT_NE(stores.Steady("s"), nullptr);
  stores.OnBegun("s", At(7, 2));
  EXPECT_EQ(stores.Steady("s"), nullptr);
}

TEST(RangedStoresTest, AForgottenStoreIsNotSteady) {
  RangedStores stores;
  stores.Add("s");
  BeginTimes(stores, RangedStores::kSteadyCount, At(5));
  stores.Forget("s");
  EXPECT_FALSE(stores.Has("s"));
  EXPECT_EQ(stores.Steady("s"), nullptr);
  // A lookup that had begun before.
  BeginTimes(stores, RangedStores::kSteadyCount, At(5));
  stores.OnChanged("s", *At(5));
  stores.Forget("s");
  EXPECT_FALSE(stores.Has("s"));
  EXPECT_EQ(stores.Steady("s"), nullptr);
}

TEST(RangedStoresTest, KeepsNoMoreStoresAndRangesThanItMay) {
  RangedStores stores(/*stores_max=*/3, /*ranges_max=*/10);
  const auto count = [&] {
    int kept = 0;
    for (int i = 0; i < 20; ++i) kept += stores.Has(absl::StrCat("s", i)) ? 1 : 0;
    return kept;
  };
  for (int i = 0; i < 20; ++i) {
    stores.Add(absl::StrCat("s", i));
    EXPECT_TRUE(stores.Has(absl::StrCat("s", i)));
    EXPECT_LE(count(), 3);
  }
  // Two stores of five ranges have room.
  stores.Add("s");
  for (const char* store : {"s", "t", "u"}) {
    stores.Add(store);
    for (int i = 0; i < RangedStores::kSteadyCount; ++i) stores.OnBegun(store, At(1, 1, 5));
    EXPECT_NE(stores.Steady(store), nullptr) << store;
  }
  EXPECT_EQ(stores.Steady("s"), nullptr);
  // The ranges of a store that is forgotten, or has others now, take no room.
  RangedStores one(/*stores_max=*/3, /*ranges_max=*/5);
  one.Add("other");
  for (std::uint64_t revision = 1; revision < 5; ++revision) {
    one.Add("s");
    one.OnBegun("s", At(revision, 1, 5));
    EXPECT_TRUE(one.Has("other"));
    if (revision % 2 == 0) one.Forget("s");
  }
}

}  // namespace
}  // namespace softlookup::server
