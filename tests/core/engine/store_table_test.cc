#include "core/engine/store_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  // A store that exists says so, however many there are.
  EXPECT_EQ(ReasonOf(table.Reserve("a", 2)), "STORE_EXISTS");
  EXPECT_EQ(ReasonOf(table.Reserve("b", 2)), "STORE_EXISTS");
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

DamagedStore DamagedStoreNamed(const std::string& name) {
  return {.number = 7,
          .info = {.config = {.name = name}, .damage = "torn"},
          .error = absl::DataLossError("damaged")};
}

TEST(StoreTableTest, ListsStoresByPrefix) {
  StoreTable table;
  for (const char* name : {"a", "b1", "b2", "b3", "c"}) {
    if (std::string(name) == "b2") {
      table.AddDamaged(name, DamagedStoreNamed(name));
    } else {
      table.AddLoaded(name, EmptyStoreNamed(name));
    }
  }
  const auto names = [](const ListResult& result) {
    std::string joined;
    for (const StoreInfo& store : result.stores) joined += store.config.name + " ";
    return joined;
  };
  const ListResult first = table.List("b", "", 1);
  EXPECT_EQ(names(first), "b1 ");
  EXPECT_TRUE(first.more);
  const ListResult rest = table.List("b", "b1", 10);
  EXPECT_EQ(names(rest), "b2 b3 ");
  EXPECT_EQ(rest.stores[0].damage, "torn");
  EXPECT_EQ(rest.stores[1].damage, "");
  EXPECT_FALSE(rest.more);

  // A page may have damaged stores alone.
  table.AddDamaged("b4", DamagedStoreNamed("b4"));
  EXPECT_TRUE(table.List("b", "b2", 1).more);
  const ListResult last = table.List("b", "b3", 1);
  EXPECT_EQ(names(last), "b4 ");
  EXPECT_FALSE(last.more);
}

TEST(StoreTableTest, ADamagedStoreHasItsNameUntilItIsRemoved) {
  StoreTable table;
  table.AddLoaded("whole", EmptyStoreNamed("whole"));
  table.AddDamaged("torn", DamagedStoreNamed("torn"));
  EXPECT_THAT(table.Find("store", "torn"), StatusIs(absl::StatusCode::kDataLoss, "damaged"));
  EXPECT_EQ(table.Stores(), std::vector{*table.Find("store", "whole")});
  EXPECT_EQ(table.DamagedNames(), std::vector<std::string>{"torn"});
  ASSERT_THAT(table.Info("name", "torn"), IsOk());
  EXPECT_EQ(table.Info("name", "torn")->damage, "torn");
  EXPECT_EQ(table.Info("name", "whole")->config.key_dim, 1);
  EXPECT_EQ(ReasonOf(table.Info("name", "other").status()), "STORE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(table.Info("name", "no name").status()), "INVALID_NAME");
  ASSERT_NE(table.FindDamaged("torn"), nullptr);
  EXPECT_EQ(table.FindDamaged("torn")->number, 7u);
  EXPECT_EQ(table.FindDamaged("whole"), nullptr);
  EXPECT_EQ(table.FindDamaged("other"), nullptr);
  EXPECT_EQ(ReasonOf(table.Reserve("torn", 10)), "STORE_EXISTS");
  table.Remove("torn");
  EXPECT_EQ(table.FindDamaged("torn"), nullptr);
  EXPECT_EQ(table.DamagedNames(), std::vector<std::string>{});
  EXPECT_EQ(ReasonOf(table.Find("store", "torn").status()), "STORE_NOT_FOUND");
  EXPECT_THAT(table.Reserve("torn", 10), IsOk());
}

}  // namespace
}  // namespace softlookup
