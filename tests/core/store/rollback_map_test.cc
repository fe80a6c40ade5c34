#include "core/store/rollback_map.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace softlookup {
namespace {

using NumberMap = RollbackMap<std::string, int>;

std::optional<int> ValueIn(const NumberMap& map, absl::string_view key) {
  const int* value = map.Find(key);
  return value == nullptr ? std::nullopt : std::optional<int>(*value);
}

TEST(RollbackMapTest, ARollbackUndoesTheNewestChangesOnly) {
  NumberMap map;
  map.Set("a", 1);
  map.Set("b", 2);
  map.Commit();
  EXPECT_EQ(map.change_count(), 0u);
  map.Set("a", 3);
  map.Set("c", 4);
  const std::size_t kept = map.change_count();
  map.Set("a", std::nullopt);
  map.Set("a", 5);
  map.Set("b", std::nullopt);
  map.Set("d", std::nullopt);
  map.Set("e", 6);
  EXPECT_EQ(ValueIn(map, "a"), 5);
  EXPECT_EQ(ValueIn(map, "b"), std::nullopt);
  EXPECT_EQ(map.size(), 3u);
  map.RollbackTo(kept);
  EXPECT_EQ(ValueIn(map, "a"), 3);
  EXPECT_EQ(ValueIn(map, "b"), 2);
  EXPECT_EQ(ValueIn(map, "c"), 4);
  EXPECT_EQ(map.size(), 3u);
  map.RollbackTo(0);
  EXPECT_EQ(ValueIn(map, "a"), 1);
  EXPECT_EQ(ValueIn(map, "b"), 2);
  EXPECT_EQ(map.size(), 2u);
}

TEST(RollbackMapTest, WhatIsSetAsCommittedStays) {
  NumberMap map;
  map.SetCommitted("a", 1);
  EXPECT_EQ(map.change_count(), 0u);
  map.Set("a", 2);
  map.RollbackTo(0);
  EXPECT_EQ(ValueIn(map, "a"), 1);
}

TEST(RollbackMapTest, ATableThatARollbackEmptiesGivesItsRoomBack) {
  NumberMap map;
  EXPECT_EQ(map.bytes(), 0);
  map.Set("a", 1);
  map.Commit();
  const std::int64_t small = map.bytes();
  for (int i = 0; i < 1000; ++i) map.Set(std::to_string(i), i);
  EXPECT_GT(map.bytes(), 100 * small);
  map.RollbackTo(0);
  EXPECT_GT(map.bytes(), 100 * small);
  map.FreeUnusedRoom();
  EXPECT_EQ(map.bytes(), small);
  EXPECT_EQ(ValueIn(map, "a"), 1);
}

}  // namespace
}  // namespace softlookup
