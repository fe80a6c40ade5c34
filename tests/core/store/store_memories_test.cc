#include "core/store/store_memories.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace softlookup {
namespace {

const StoreConfig& DecayingConfig() {
  static const auto& config =
      *new StoreConfig{.name = "s",
                       .key_dim = 2,
                       .value_dim = 1,
                       .memories = {{.name = "d", .kind = MemoryKind::kDecayedSum, .decay = 0.5}}};
  return config;
}

void ExpectSame(const MemoryValue& actual, const MemoryValue& expected) {
  EXPECT_EQ(actual.key, expected.key);
  EXPECT_EQ(actual.value, expected.value);
  EXPECT_EQ(actual.weight, expected.weight);
}

TEST(StoreMemoriesTest, NullIsTheStateBeforeTheFirstRow) {
  const MemorySet before = MemorySetOf(DecayingConfig());
  const MemoriesView view(nullptr, DecayingConfig());
  for (std::size_t index = 0; index < 2; ++index) {
    ExpectSame(view.Read(index), before[index].Read());
    ExpectSame(view.Clone(index)->Read(), before[index].Read());
  }
  EXPECT_EQ(view.Save(), before.Save());
}

TEST(StoreMemoriesTest, AnyOtherStateIsThatOfTheSet) {
  MemorySet memories = MemorySetOf(DecayingConfig());
  const float key[2] = {1, 2}, value = 3;
  memories.Add(key, 1, &value);
  const MemoriesView view(&memories, DecayingConfig());
  for (std::size_t index = 0; index < 2; ++index) {
    ExpectSame(view.Read(index), memories[index].Read());
    ExpectSame(view.Clone(index)->Read(), memories[index].Read());
  }
  EXPECT_EQ(view.Save(), memories.Save());
  EXPECT_NE(view.Save(), MemoriesView(nullptr, DecayingConfig()).Save());
}

}  // namespace
}  // namespace softlookup
