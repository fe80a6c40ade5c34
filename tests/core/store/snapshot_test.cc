#include "core/store/snapshot.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/store/store_editor.h"
#include "tests/testing/golden.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using ::softlookup::testing::NormalFloats;

MemoryKind KindOf(const std::string& name) {
  static const std::map<std::string, MemoryKind> kKinds = {
      {"AVERAGE", MemoryKind::kAverage},
      {"DECAYED_SUM", MemoryKind::kDecayedSum},
      {"DECAYED_AVERAGE", MemoryKind::kDecayedAverage},
      {"GATED", MemoryKind::kGated},
      {"GATED_AVERAGE", MemoryKind::kGatedAverage}};
  return kKinds.at(name);
}

TEST(SnapshotTest, GoldenMemoriesHoldForEveryKindAndWindow) {
  int cases = 0;
  for (const auto& golden : softlookup::testing::ReadGoldenMemories()) {
    SCOPED_TRACE(golden.kind + " of " + std::to_string(golden.row_count));
    ++cases;
    StoreEditor store({.name = "s",
                       .key_dim = golden.key_dim,
                       .value_dim = golden.value_dim,
                       .memories = {{.name = "m",
                                     .kind = KindOf(golden.kind),
                                     .decay = golden.decay,
                                     .gate = golden.gate}}});
    const auto snapshot = store
                              .Append({.keys = {.data = golden.keys.data(),
                                                .rows = golden.row_count,
                                                .cols = golden.key_dim},
                                       .values = {.data = golden.values.data(),
                                                  .rows = golden.row_count,
                                                  .cols = golden.value_dim}})
                              ->snapshot;
    const auto memory = snapshot->MemoryAsOf(golden.row_count, 1);
    const MemoryValue value = golden.begin == 0
                                  ? memory->Read()
                                  : memory->ReadSince(*snapshot->MemoryAsOf(golden.begin, 1));
    EXPECT_LE(softlookup::testing::RelativeError(value.key, golden.expected_key), 1e-12);
    EXPECT_LE(softlookup::testing::RelativeError(value.value, golden.expected_value), 1e-12);
    EXPECT_NEAR(value.weight, golden.expected_weight, 1e-12 * golden.expected_weight);
  }
  EXPECT_EQ(cases, 30);
}

TEST(SnapshotTest, AMemoryAsOfAnyPositionHasTheBitsOfARescan) {
  constexpr std::int64_t kRows = 2600;
  const StoreConfig config{
      .name = "s",
      .key_dim = 3,
      .value_dim = 2,
      .memories = {{.name = "d", .kind = MemoryKind::kDecayedAverage, .decay = 0.99},
                   {.name = "g", .kind = MemoryKind::kGated, .gate = {0.5f, 1, -1, 0.25f}}}};
  StoreEditor store(config);
  const std::vector<float> keys = NormalFloats(kRows * 3, 1), values = NormalFloats(kRows * 2, 2);
  const auto snapshot = store
                            .Append({.keys = {.data = keys.data(), .rows = kRows, .cols = 3},
                                     .values = {.data = values.data(), .rows = kRows, .cols = 2}})
                            ->snapshot;
  MemorySet scanned = MemorySetOf(config);
  for (std::int64_t position = 0; position <= kRows; ++position) {
    if (position % 97 == 0 || position % 1024 < 2 || position == kRows) {
      for (std::size_t index = 0; index < 3; ++index) {
        const MemoryValue expected = scanned[index].Read();
        const MemoryValue memory = snapshot->MemoryAsOf(position, index)->Read();
        ASSERT_EQ(memory.weight, expected.weight);
        ASSERT_EQ(memory.key, expected.key);
        ASSERT_EQ(memory.value, expected.value);
      }
    }
    if (position < kRows) scanned.Add(&keys[position * 3], 1, &values[position * 2]);
  }
}

TEST(SnapshotDeathTest, ASnapshotHasNoRowsBehindItsLast) {
  StoreEditor store({.name = "s", .key_dim = 3, .value_dim = 2});
  const std::vector<float> keys = NormalFloats(10 * 3, 1), values = NormalFloats(10 * 2, 2);
  const auto snapshot = store
                            .Append({.keys = {.data = keys.data(), .rows = 10, .cols = 3},
                                     .values = {.data = values.data(), .rows = 10, .cols = 2}})
                            ->snapshot;
  EXPECT_DEATH(snapshot->BlocksOf(0, 11), "position 11 of 10 rows");
  EXPECT_DEATH(snapshot->MemoryAsOf(11, 0), "append index 11 of 10 rows");
}

}  // namespace
}  // namespace softlookup
