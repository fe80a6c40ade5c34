#include "core/engine/store_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

std::shared_ptr<Store> EmptyStoreNamed(const std::string& name) {
  return std::make_shared<Store>(
      1, std::make_unique<StoreEditor>(StoreConfig{.name = name, .key_dim = 1, .value_dim = 1}),
      absl::UnixEpoch(), [](auto task) { task(); });
}

TEST(StoreTableTest, AReservedNameIsTakenAndNotFound) {
  StoreTable table;
  ASSERT_THAT(table.Reserve("a", 2), IsOk());
  EXPECT_THAT(table.Find("store", "a"), StatusIs(absl::StatusCode::kNotFound, ""));
  EXPECT_EQ(ReasonOf(table.Reserve("a", 2)), "STORE_EXISTS");
  table.Release("a");
  ASSERT_THAT(table.Reserve("a", 2), IsOk());
  const auto store = EmptyStoreNamed("a");
  table.Add("a", store);
  EXPECT_EQ(*table.Find("store", "a"), store);
  EXPECT_EQ(ReasonOf(table.Reserve("a", 2)), "STORE_EXISTS");
  ASSERT_THAT(table.Reserve("b", 2), IsOk());
  EXPECT_EQ(ReasonOf(table.Reserve("c", 2)), "TOO_MANY_STORES");
  table.Remove("a");
  EXPECT_THAT(table.Find("store", "a"), StatusIs(absl::StatusCode::kNotFound, ""));
  EXPECT_THAT(table.Reserve("c", 2), IsOk());
}

TEST(StoreTableTest, ARenameTakesTheOldNameAwayWithWhatHadTheNewOne) {
  StoreTable table;
  const auto a = EmptyStoreNamed("a"), b = EmptyStoreNamed("b"), renamed = EmptyStoreNamed("b");
  table.AddLoaded("a", a);
  table.AddLoaded("b", b);
  table.Rename("a", "b", renamed);
  EXPECT_EQ(*table.Find("store", "b"), renamed);
  EXPECT_THAT(table.Find("store", "a"), StatusIs(absl::StatusCode::kNotFound, "\"a\""));
  table.Rename("b", "c", a);
  EXPECT_EQ(*table.Find("store", "c"), a);
  EXPECT_EQ(table.List("", "", 10).stores.size(), 1u);
}

TEST(StoreTableTest, ListsStoresByPrefixWithoutDamagedOnes) {
  StoreTable table;
  for (const char* name : {"a", "b1", "b2", "b3", "c"}) {
    if (std::string(name) == "b2") {
      table.AddLoaded(name, absl::DataLossError("damaged"));
    } else {
      table.AddLoaded(name, EmptyStoreNamed(name));
    }
  }
  EXPECT_THAT(table.Find("store", "b2"), StatusIs(absl::StatusCode::kDataLoss, "damaged"));
  const auto names = [](const ListResult& result) {
    std::string joined;
    for (const StoreInfo& store : result.stores) joined += store.config.name + " ";
    return joined;
  };
  const ListResult first = table.List("b", "", 1);
  EXPECT_EQ(names(first), "b1 ");
  EXPECT_TRUE(first.more);
  const ListResult rest = table.List("b", "b1", 10);
  EXPECT_EQ(names(rest), "b3 ");
  EXPECT_FALSE(rest.more);

  // Only damaged stores follow, so no further page would have a store.
  table.AddLoaded("b4", absl::DataLossError("damaged"));
  table.AddLoaded("b5", absl::DataLossError("damaged"));
  EXPECT_FALSE(table.List("b", "b1", 1).more);
  EXPECT_TRUE(table.List("b", "", 1).more);
  const ListResult damaged = table.List("b", "b3", 1);
  EXPECT_EQ(names(damaged), "");
  EXPECT_FALSE(damaged.more);
}

}  // namespace
}  // namespace softlookup
