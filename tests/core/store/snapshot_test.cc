#include "core/store/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/store/row_selection.h"
#include "core/store/store_editor.h"
#include "tests/testing/golden.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::StatusIs;

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
    const auto before = snapshot->MemoryAsOf(golden.begin, 1);
    ASSERT_THAT(memory, IsOk());
    ASSERT_THAT(before, IsOk());
    const MemoryValue value =
        golden.begin == 0 ? (*memory)->Read() : (*memory)->ReadSince(**before);
    EXPECT_LE(softlookup::testing::RelativeError(value.key, golden.expected_key), 1e-12);
    EXPECT_LE(softlookup::testing::RelativeError(value.value, golden.expected_value), 1e-12);
    EXPECT_NEAR(value.weight, golden.expected_weight, 1e-12 * golden.expected_weight);
  }
  EXPECT_EQ(cases, 30);
}

// What a snapshot costs that is kept although there are later ones.
TEST(SnapshotTest, BytesThatNoLaterSnapshotSharesAreCounted) {
  constexpr std::int64_t kDim = 64, kPanelBytes = 16 * 2 * kDim * 4;
  StoreEditor store({.name = "s", .key_dim = kDim, .value_dim = kDim});
  const std::vector<float> floats = NormalFloats(3000 * kDim, 1);
  const auto append = [&](std::int64_t count) {
    const MatrixView rows{.data = floats.data(), .rows = count, .cols = kDim};
    const auto appended = store.Append({.keys = rows, .values = rows});
    EXPECT_THAT(appended, IsOk());
    store.Commit();
    return appended->snapshot;
  };
  const auto rows = append(2500);
  const std::int64_t block_rows = rows->stored_blocks().block_rows();
  const std::int64_t block_bytes = block_rows / 16 * kPanelBytes;
  ASSERT_GT(2500, 2 * block_rows) << "there are sealed blocks";
  EXPECT_LT(rows->BytesNotIn(*rows), 4'096);
  const auto one_more = append(1);
  EXPECT_GE(rows->BytesNotIn(*one_more), kPanelBytes) << "the panel that was filling";
  EXPECT_LT(rows->BytesNotIn(*one_more), kPanelBytes + 4'096);
  // The tail is now in a sealed block, with the same full panels.
  const auto sealed = append(block_rows);
  EXPECT_LT(one_more->BytesNotIn(*sealed), block_bytes / 4);
  const auto renamed = store.Update([](StoreConfig& config) { config.name = "t"; });
  EXPECT_LT(sealed->BytesNotIn(*renamed), 4'096);
  const auto deleted =
      store.Delete({.begin = 0, .end = static_cast<std::uint64_t>(2 * block_rows)})->snapshot;
  store.Commit();
  const auto compacted = store.Compact(0, 2).snapshot;
  EXPECT_GE(deleted->BytesNotIn(*compacted), 2 * block_bytes);
  EXPECT_LT(deleted->BytesNotIn(*compacted), 3 * block_bytes);
}

TEST(SnapshotTest, SelectionsOfAllRowsShareOneListOfBlocks) {
  constexpr std::int64_t kRows = 3000;
  StoreEditor store({.name = "s", .key_dim = 1, .value_dim = 1});
  const std::vector<float> numbers = NormalFloats(kRows, 1);
  const MatrixView rows{.data = numbers.data(), .rows = kRows, .cols = 1};
  const auto snapshot = store.Append({.keys = rows, .values = rows})->snapshot;
  const RowSelection all = *RowSelection::Make(*snapshot, {}, "");
  const RowSelection all_too = *RowSelection::Make(*snapshot, {.begin = 0, .end = kRows}, "");
  EXPECT_EQ(all.blocks().data(), all_too.blocks().data());
  EXPECT_EQ(all.blocks().size(), 3);
  ASSERT_NE(all.summary(), nullptr);
  EXPECT_EQ(all.summary()->row_count, kRows);
  for (const RowFilter& filter :
       {RowFilter{.begin = 1}, RowFilter{.end = kRows - 1}, RowFilter{.exclude_ids = {7}}}) {
    const RowSelection some = *RowSelection::Make(*snapshot, filter, "");
    EXPECT_NE(some.blocks().data(), all.blocks().data());
    EXPECT_EQ(some.summary(), nullptr);
  }
  const auto next = store.Append({.keys = rows, .values = rows})->snapshot;
  EXPECT_EQ(RowSelection::Make(*next, {}, "")->summary()->row_count, 2 * kRows);
  EXPECT_EQ(all.summary()->row_count, kRows);
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
        const MemoryValue memory = (*snapshot->MemoryAsOf(position, index))->Read();
        ASSERT_EQ(memory.weight, expected.weight);
        ASSERT_EQ(memory.key, expected.key);
        ASSERT_EQ(memory.value, expected.value);
      }
    }
    if (position < kRows) scanned.Add(&keys[position * 3], 1, &values[position * 2]);
  }
}

// A store of 2,600 rows in blocks of 1,024. Of block 1, few rows are live.
class CompactedSnapshotTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 2600;

  CompactedSnapshotTest() {
    const std::vector<float> keys = NormalFloats(kRows * 3, 1), values = NormalFloats(kRows * 2, 2);
    std::vector<std::uint64_t> ids(kRows);
    for (std::int64_t row = 0; row < kRows; ++row) ids[row] = static_cast<std::uint64_t>(row);
    const std::vector<std::vector<std::string>> labels(kRows, {"label"});
    EXPECT_THAT(store_.Append({.keys = {.data = keys.data(), .rows = kRows, .cols = 3},
                               .values = {.data = values.data(), .rows = kRows, .cols = 2},
                               .ids = ids,
                               .row_labels = labels}),
                IsOk());
    EXPECT_THAT(store_.Delete({.begin = 1030, .end = 2000}), IsOk());
    before_ = store_.newest();
    after_ = store_.Compact(0, 3).snapshot;
  }

  StoreEditor store_{{.name = "s",
                      .key_dim = 3,
                      .value_dim = 2,
                      .memories = {{.name = "d", .kind = MemoryKind::kDecayedSum, .decay = 0.99}}}};
  std::shared_ptr<const Snapshot> before_, after_;
};

TEST_F(CompactedSnapshotTest, MemoriesAtTheEdgesOfACompactedBlockAndInOthersAreAsBefore) {
  ASSERT_TRUE(after_->stored_blocks().IsCompacted(1));
  for (const std::uint64_t position : {0, 1, 500, 1023, 1024, 2048, 2049, 2300, 2600}) {
    SCOPED_TRACE(position);
    for (const std::size_t index : {0, 1}) {
      const auto memory = after_->MemoryAsOf(position, index);
      ASSERT_THAT(memory, IsOk());
      const MemoryValue actual = (*memory)->Read();
      const MemoryValue expected = (*before_->MemoryAsOf(position, index))->Read();
      EXPECT_EQ(actual.weight, expected.weight);
      EXPECT_EQ(actual.key, expected.key);
      EXPECT_EQ(actual.value, expected.value);
    }
  }
}

TEST_F(CompactedSnapshotTest, AMemoryInsideACompactedBlockIsGoneAndTheNearestAreNamed) {
  for (const std::uint64_t position : {1025, 1030, 1500, 2047}) {
    SCOPED_TRACE(position);
    for (const std::size_t index : {0, 1}) {
      const absl::Status gone = after_->MemoryAsOf(position, index).status();
      EXPECT_THAT(gone, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 "append index " + std::to_string(position)));
      EXPECT_THAT(gone, StatusIs(absl::StatusCode::kFailedPrecondition, "1024 and 2048"));
      EXPECT_EQ(ReasonOf(gone), "ROWS_COMPACTED");
      // A snapshot from before the compaction still has it.
      EXPECT_THAT(before_->MemoryAsOf(position, index), IsOk());
    }
  }
}

TEST_F(CompactedSnapshotTest, TheTagsOfDroppedRowsAreGone) {
  for (const std::uint64_t position : {0, 1029, 2000, 2047, 2599}) {
    EXPECT_EQ(after_->IdAt(position), position);
    EXPECT_THAT(after_->TagsOf(position).labels, ::testing::ElementsAre("label")) << position;
  }
  for (const std::uint64_t position : {1030, 1999}) {
    EXPECT_EQ(after_->IdAt(position), std::nullopt) << position;
    EXPECT_EQ(after_->TagsOf(position).id, std::nullopt) << position;
    EXPECT_THAT(after_->TagsOf(position).labels, ::testing::IsEmpty()) << position;
    EXPECT_EQ(before_->IdAt(position), position);
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
  EXPECT_DEATH((void)snapshot->MemoryAsOf(11, 0), "append index 11 of 10 rows");
}

}  // namespace
}  // namespace softlookup
