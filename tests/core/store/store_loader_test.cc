#include "core/store/store_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/store/row_codec.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::NormalFloats;

constexpr std::int64_t kLoadedRows = 1500;

TEST(StoreLoaderTest, AnEmptyStoreHasItsRevisionAndWriters) {
  StoreLoader loader({.name = "s", .key_dim = 2, .value_dim = 1}, /*revision=*/5, /*row_count=*/0);
  loader.AddWriter("w", {.last_sequence = 3});
  ASSERT_THAT(loader.MakeRoom(), IsOk());
  const auto editor = loader.Finish();
  ASSERT_THAT(editor, IsOk());
  EXPECT_EQ((*editor)->newest()->revision(), 5u);
  EXPECT_EQ((*editor)->newest()->row_count(), 0u);
  EXPECT_EQ((*editor)->FindWriter("w")->last_sequence, 3u);
  (*editor)->Rollback();
  EXPECT_NE((*editor)->FindWriter("w"), nullptr);
}

// Rows of one sealed block and of a tail, with ids and labels, some of them deleted.
TEST(StoreLoaderTest, AStoreFromItsRecordsIsTheStoreThatWasWritten) {
  const StoreConfig config{.name = "s", .key_dim = 2, .value_dim = 2};
  StoreEditor written(config);
  const std::vector<float> components = NormalFloats(kLoadedRows * 2, 1);
  const MatrixView rows{.data = components.data(), .rows = kLoadedRows, .cols = 2};
  std::vector<std::uint64_t> ids(kLoadedRows);
  std::iota(ids.begin(), ids.end(), 7000);
  const std::vector<std::vector<std::string>> labels(kLoadedRows, {"label"});
  ASSERT_THAT(written.Append({.keys = rows, .values = rows, .ids = ids, .row_labels = labels}),
              IsOk());
  ASSERT_THAT(written.Delete({.begin = 1000, .end = 1200}), IsOk());
  const Snapshot& expected = *written.newest();
  const StoredBlocks& blocks = expected.stored_blocks();

  StoreLoader loader(config, expected.revision(), kLoadedRows);
  for (const std::int64_t index : {0, 1}) {
    std::vector<float> bounds;
    if (index > 0) bounds = SaveBounds(blocks.BoundsOf(index - 1));
    ASSERT_THAT(loader.AddBlockStart(index, expected.MemoriesBefore(index).Save(), bounds), IsOk());
    loader.AddLiveRows(index, *blocks.LiveMaskOf(index));
  }
  ASSERT_THAT(loader.MakeRoom(), IsOk());
  ASSERT_THAT(loader.PutComponents(0, kLoadedRows, EncodeComponents(blocks, 0, kLoadedRows)),
              IsOk());
  ASSERT_THAT(loader.AddRows(0, kLoadedRows, ids, labels), IsOk());
  const auto loaded = loader.Finish();
  ASSERT_THAT(loaded, IsOk());

  const std::uint64_t id = 8300;
  for (StoreEditor* editor : {&written, loaded->get()}) {
    EXPECT_EQ(ReasonOf(editor
                           ->Append({.keys = {.data = components.data(), .rows = 1, .cols = 2},
                                     .values = {.data = components.data(), .rows = 1, .cols = 2},
                                     .ids = {&id, 1}})
                           .status()),
              "ROW_EXISTS");
  }
  const Snapshot& actual = *(*loaded)->newest();
  EXPECT_EQ(actual.revision(), expected.revision());
  EXPECT_EQ(actual.live_row_count(), expected.live_row_count());
  EXPECT_LE(actual.byte_size(), expected.byte_size()) << "a loaded tail has no room in reserve";
  EXPECT_EQ((*loaded)->ReadMemory(0).value, written.ReadMemory(0).value);
  const Snapshot::Blocks expected_blocks = expected.BlocksOf(0, kLoadedRows);
  const Snapshot::Blocks actual_blocks = actual.BlocksOf(0, kLoadedRows);
  ASSERT_EQ(actual_blocks.size(), expected_blocks.size());
  for (std::size_t i = 0; i < actual_blocks.size(); ++i) {
    ASSERT_EQ(actual_blocks[i].view.row_count, expected_blocks[i].view.row_count);
    for (std::int64_t r = 0; r < actual_blocks[i].view.row_count; ++r) {
      const Row a = actual.RowOf(actual_blocks[i], r), e = expected.RowOf(expected_blocks[i], r);
      ASSERT_EQ(a.key, e.key);
      ASSERT_EQ(a.value, e.value);
      ASSERT_EQ(a.id, e.id);
      ASSERT_EQ(a.labels, e.labels);
      ASSERT_EQ(actual_blocks[i].MayCount(r), expected_blocks[i].MayCount(r));
    }
  }
}

TEST(StoreLoaderTest, RowsOutsideOfTheStoreAreDataLoss) {
  const StoreConfig config{.name = "s", .key_dim = 1, .value_dim = 1};
  const std::vector<float> floats(3, 1);
  const MatrixView rows{.data = floats.data(), .rows = 3, .cols = 1};
  StoreEditor written(config);
  ASSERT_THAT(written.Append({.keys = rows, .values = rows}), IsOk());
  StoreLoader loader(config, /*revision=*/5, /*row_count=*/3);
  ASSERT_THAT(loader.AddBlockStart(0, written.newest()->MemoriesBefore(0).Save(), {}), IsOk());
  ASSERT_THAT(loader.MakeRoom(), IsOk());
  const std::string two_rows(16, '\0');
  EXPECT_THAT(loader.PutComponents(0, 2, two_rows), IsOk());
  EXPECT_EQ(ReasonOf(loader.PutComponents(0, 0, "")), "DATA_LOSS") << "none";
  EXPECT_EQ(ReasonOf(loader.PutComponents(3, 2, two_rows)), "DATA_LOSS") << "after the last row";
  EXPECT_EQ(ReasonOf(loader.PutComponents(2, 2, two_rows)), "DATA_LOSS") << "across the last row";
  EXPECT_EQ(ReasonOf(loader.PutComponents(~std::uint64_t{0}, 2, two_rows)), "DATA_LOSS");
  EXPECT_EQ(ReasonOf(loader.AddRows(0, 4, {}, {})), "DATA_LOSS");
  EXPECT_EQ(ReasonOf(loader.AddRows(0, 0, {}, {})), "DATA_LOSS");
}

TEST(StoreLoaderTest, MissingRowsAreDataLoss) {
  StoreLoader loader({.name = "s", .key_dim = 2, .value_dim = 1}, /*revision=*/5, kLoadedRows);
  EXPECT_EQ(ReasonOf(loader.MakeRoom()), "DATA_LOSS");
  EXPECT_EQ(ReasonOf(loader.Finish().status()), "DATA_LOSS");
}

}  // namespace
}  // namespace softlookup
