#include "core/engine/store_totals.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/store/store_editor.h"

namespace softlookup {
namespace {

TEST(StoreTotalsTest, SumsFollowStoresAndWrites) {
  const StoreConfig config{.name = "s", .key_dim = 2, .value_dim = 1};
  StoreEditor editor(config);
  const std::vector<float> keys(2 * 5, 1), values(5, 1);
  const auto appended = editor.Append({.keys = {.data = keys.data(), .rows = 5, .cols = 2},
                                       .values = {.data = values.data(), .rows = 5, .cols = 1}});
  ASSERT_TRUE(appended.ok());
  ASSERT_TRUE(editor.Delete({.begin = 3}).ok());

  StoreTotals totals;
  totals.AddDamagedStore();
  totals.AddStore(*editor.newest());
  EXPECT_EQ(totals.damaged_stores(), 1);
  EXPECT_EQ(totals.stores(), 1);
  EXPECT_EQ(totals.rows(), 5);
  EXPECT_EQ(totals.live_rows(), 3);
  EXPECT_EQ(totals.appended_rows(), 0) << "what is loaded was appended before";

  totals.AddWrite(config, {.rows = 4, .live_rows = 3});
  EXPECT_EQ(totals.rows(), 9);
  EXPECT_EQ(totals.live_rows(), 6);
  EXPECT_EQ(totals.appended_rows(), 4);
  EXPECT_EQ(totals.appended_bytes(), 4 * 4 * 3);

  totals.AddDroppedRows(3);
  totals.AddDroppedRows(4);
  totals.AddCompaction();
  EXPECT_EQ(totals.dropped_rows(), 7);
  EXPECT_EQ(totals.compactions(), 1);

  totals.RemoveDamagedStore();
  EXPECT_EQ(totals.damaged_stores(), 0);
  totals.RemoveStore(*editor.newest());
  EXPECT_EQ(totals.stores(), 0);
  EXPECT_EQ(totals.rows(), 4);
  EXPECT_EQ(totals.live_rows(), 3);
  EXPECT_EQ(totals.appended_rows(), 4);
}

}  // namespace
}  // namespace softlookup
