#include "core/store/store_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/store/row_codec.h"
#include "tests/core/store/same_store.h"
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
  const std::vector<std::optional<std::uint64_t>> loaded_ids(ids.begin(), ids.end());
  ASSERT_THAT(loader.AddRows(0, kLoadedRows, loaded_ids, labels), IsOk());
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

// The records of a store of 3,172 rows, in blocks of 1,024. Blocks 0 and 1 are compacted to 10 and
// 8 rows, every other one of which has an id. Of block 0, a row was deleted since.
class CompactedLoaderTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRows = 3 * 1024 + 100, kSecond = 1024, kThird = 2 * 1024;

  CompactedLoaderTest() {
    const std::vector<float> components = NormalFloats(2 * kRows, 1);
    for (std::uint64_t row = 0; row < kRows; ++row) {
      std::optional<std::uint64_t> id;
      if (row % 2 == 0 || row >= kThird) id = 7000 + row;
      const MatrixView one{.data = &components[2 * row], .rows = 1, .cols = 2};
      const std::vector<std::vector<std::string>> labels(1, {std::to_string(row % 7)});
      RowBatch batch{.keys = one, .values = one, .row_labels = labels};
      if (id) batch.ids = {&*id, 1};
      EXPECT_THAT(written_.Append(batch), IsOk());
    }
    EXPECT_THAT(written_.Delete({.begin = 10, .end = 2040}), IsOk());
    EXPECT_THAT(written_.Compact(0, 4).compacted_blocks, ::testing::ElementsAre(0, 1));
    for (const std::int64_t block : {0, 1}) {
      const StoredBlocks& blocks = written_.newest()->stored_blocks();
      components_.push_back(EncodeKeptComponents(blocks, block));
      kept_[static_cast<std::uint64_t>(block)] = *blocks.KeptMaskOf(block);
      const PositionedBlock rows = blocks.LiveRowsOf(block);
      for (std::int64_t row = 0; row < rows.view.row_count; ++row) {
        const Snapshot::TagsOfRow tags = written_.newest()->TagsOf(rows.PositionOf(row));
        ids_[block].push_back(tags.id);
        labels_[block].push_back(tags.labels);
      }
    }
    EXPECT_THAT(written_.Delete({.begin = 4, .end = 5}), IsOk());
  }

  // Begins to load, as far as MakeRoom().
  absl::Status Begin() {
    const Snapshot& snapshot = *written_.newest();
    const StoredBlocks& blocks = snapshot.stored_blocks();
    loader_.emplace(config_, snapshot.revision(), kRows);
    for (std::int64_t index = 0; index < 4; ++index) {
      std::vector<float> bounds;
      if (index > 0) bounds = SaveBounds(blocks.BoundsOf(index - 1));
      if (absl::Status added =
              loader_->AddBlockStart(index, snapshot.MemoriesBefore(index).Save(), bounds);
          !added.ok()) {
        return added;
      }
      if (const RowMask* live = blocks.LiveMaskOf(index)) loader_->AddLiveRows(index, *live);
    }
    for (const auto& [index, live] : other_live_) loader_->AddLiveRows(index, live);
    for (const auto& [index, kept] : kept_) loader_->AddKeptRows(index, kept);
    return loader_->MakeRoom();
  }
  absl::Status PutKept(std::uint64_t block) {
    return loader_->PutKeptComponents(block * 1024, components_[block]);
  }
  absl::Status PutOthers() {
    const StoredBlocks& blocks = written_.newest()->stored_blocks();
    return loader_->PutComponents(kThird, kRows - kThird, EncodeComponents(blocks, kThird, kRows));
  }
  absl::Status AddBlock(std::uint64_t block) {
    return loader_->AddCompactedBlock(block * 1024, ids_[block], labels_[block]);
  }
  absl::Status AddOthers() {
    std::vector<std::optional<std::uint64_t>> ids;
    std::vector<std::vector<std::string>> labels;
    for (std::uint64_t row = kThird; row < kRows; ++row) {
      ids.push_back(7000 + row);
      labels.push_back({std::to_string(row % 7)});
    }
    return loader_->AddRows(kThird, kRows - kThird, ids, labels);
  }
  // Loads the whole store, up to the first error.
  absl::StatusOr<std::unique_ptr<StoreEditor>> Load() {
    absl::Status status = Begin();
    if (status.ok()) status = PutKept(0);
    if (status.ok()) status = PutKept(1);
    if (status.ok()) status = PutOthers();
    if (status.ok()) status = AddBlock(0);
    if (status.ok()) status = AddBlock(1);
    if (status.ok()) status = AddOthers();
    if (!status.ok()) return status;
    return loader_->Finish();
  }

  const StoreConfig config_{
      .name = "s",
      .key_dim = 2,
      .value_dim = 2,
      .memories = {{.name = "d", .kind = MemoryKind::kDecayedSum, .decay = 0.9}}};
  StoreEditor written_{config_};
  // What the log has of blocks 0 and 1.
  std::vector<std::string> components_;
  std::map<std::uint64_t, RowMask> kept_;
  std::vector<std::optional<std::uint64_t>> ids_[2];
  std::vector<std::vector<std::string>> labels_[2];
  std::map<std::uint64_t, RowMask> other_live_;  // Damaged masks of live rows.
  std::optional<StoreLoader> loader_;
};

TEST_F(CompactedLoaderTest, AStoreFromItsRecordsIsTheStoreThatWasWritten) {
  const auto loaded = Load();
  ASSERT_THAT(loaded, IsOk());
  testing::ExpectSameStore(*(*loaded)->newest(), *written_.newest());
  EXPECT_LE((*loaded)->newest()->byte_size(), written_.newest()->byte_size());
  EXPECT_EQ((*loaded)->newest()->stored_blocks().KeptMaskOf(0)->CountFirst(1024), 10);
  // It goes on alike.
  for (StoreEditor* editor : {&written_, loaded->get()}) {
    const float row[2] = {1, 2};
    const MatrixView view{.data = row, .rows = 1, .cols = 2};
    const std::uint64_t taken = 7006, free = 7004;
    EXPECT_EQ(ReasonOf(editor->Append({.keys = view, .values = view, .ids = {&taken, 1}}).status()),
              "ROW_EXISTS");
    EXPECT_THAT(editor->Append({.keys = view, .values = view, .ids = {&free, 1}}), IsOk());
    EXPECT_THAT(editor->Delete({.any_labels = {"3"}}), IsOk());
    EXPECT_THAT(editor->Compact(0, 4).compacted_blocks, ::testing::ElementsAre(0, 1));
  }
  testing::ExpectSameStore(*(*loaded)->newest(), *written_.newest());
}

TEST_F(CompactedLoaderTest, ABlockThatKeptNoRowIsLoaded) {
  ASSERT_THAT(written_.Delete({.begin = kSecond, .end = kThird}), IsOk());
  ASSERT_FALSE(written_.Compact(1, 2).compacted_blocks.empty());
  components_[1] = "";
  kept_[1] = RowMask();
  kept_[0] = *written_.newest()->stored_blocks().KeptMaskOf(0);
  ids_[1] = {};
  labels_[1] = {};
  const auto loaded = Load();
  ASSERT_THAT(loaded, IsOk());
  testing::ExpectSameStore(*(*loaded)->newest(), *written_.newest());
}

TEST_F(CompactedLoaderTest, AKeptMaskWithoutItsRowsIsDataLoss) {
  ASSERT_THAT(Begin(), IsOk());
  ASSERT_THAT(PutKept(1), IsOk());
  ASSERT_THAT(PutOthers(), IsOk());
  EXPECT_EQ(ReasonOf(AddBlock(0)), "DATA_LOSS");
  EXPECT_EQ(ReasonOf(AddBlock(1)), "DATA_LOSS") << "out of order";
  EXPECT_EQ(ReasonOf(AddOthers()), "DATA_LOSS");
  EXPECT_EQ(ReasonOf(loader_->Finish().status()), "DATA_LOSS");
}

TEST_F(CompactedLoaderTest, KeptRowsOfAnotherSizeAreDataLoss) {
  ASSERT_THAT(Begin(), IsOk());
  const std::string whole = components_[0];
  for (const std::string& other :
       {std::string(), whole.substr(1), whole.substr(16), whole + '\0', whole + whole}) {
    components_[0] = other;
    EXPECT_EQ(ReasonOf(PutKept(0)), "DATA_LOSS") << other.size();
  }
  components_[0] = whole;
  EXPECT_THAT(PutKept(0), IsOk());
}

TEST_F(CompactedLoaderTest, TagsOfAnotherNumberOfRowsAreDataLoss) {
  for (const bool more : {false, true}) {
    ASSERT_THAT(Begin(), IsOk());
    ASSERT_THAT(PutKept(0), IsOk());
    std::vector<std::optional<std::uint64_t>> ids = ids_[0];
    std::vector<std::vector<std::string>> labels = labels_[0];
    ids.resize(more ? 11 : 9);
    labels.resize(more ? 11 : 9);
    EXPECT_EQ(ReasonOf(loader_->AddCompactedBlock(0, ids, {})), "DATA_LOSS");
    EXPECT_EQ(ReasonOf(loader_->AddCompactedBlock(0, {}, labels)), "DATA_LOSS");
    EXPECT_THAT(loader_->AddCompactedBlock(0, {}, {}), IsOk());
  }
}

TEST_F(CompactedLoaderTest, OtherRecordsOfRowsInACompactedBlockAreDataLoss) {
  kept_.erase(0);
  ASSERT_THAT(Begin(), IsOk());
  const auto put = [&](std::uint64_t position, std::uint64_t count) {
    return loader_->PutComponents(position, count, std::string(count * 16, '\0'));
  };
  EXPECT_THAT(put(1000, 24), IsOk());
  EXPECT_EQ(ReasonOf(put(1000, 25)), "DATA_LOSS");
  EXPECT_EQ(ReasonOf(put(1000, 1100)), "DATA_LOSS") << "the block is in the middle";
  EXPECT_EQ(ReasonOf(put(1024, 1024)), "DATA_LOSS");
  EXPECT_EQ(ReasonOf(put(1025, 1)), "DATA_LOSS");
  EXPECT_EQ(ReasonOf(put(2047, 2)), "DATA_LOSS");
  EXPECT_THAT(put(2048, 2), IsOk());
}

// The memories after the last row need all rows of the last block.
TEST_F(CompactedLoaderTest, ACompactedLastBlockIsDataLoss) {
  kept_[3] = RowMask();
  EXPECT_EQ(ReasonOf(Load().status()), "DATA_LOSS");
  // Also of a whole block.
  StoreLoader loader({.name = "s", .key_dim = 1, .value_dim = 1}, /*revision=*/5, 1024);
  const StoreEditor empty({.name = "s", .key_dim = 1, .value_dim = 1});
  ASSERT_THAT(loader.AddBlockStart(0, empty.newest()->MemoriesBefore(0).Save(), {}), IsOk());
  loader.AddLiveRows(0, RowMask());
  loader.AddKeptRows(0, RowMask());
  absl::Status status = loader.MakeRoom();
  if (status.ok()) status = loader.PutKeptComponents(0, "");
  if (status.ok()) status = loader.AddCompactedBlock(0, {}, {});
  if (status.ok()) status = loader.Finish().status();
  EXPECT_EQ(ReasonOf(status), "DATA_LOSS");
}

TEST_F(CompactedLoaderTest, AKeptMaskBehindTheLastRowAddsNoRows) {
  kept_[4] = RowMask();
  kept_[~std::uint64_t{0} / 1024] = RowMask::All();
  ASSERT_THAT(Begin(), IsOk());
  EXPECT_EQ(ReasonOf(loader_->PutKeptComponents(4 * 1024, "")), "DATA_LOSS");
}

// A row that is live but was not kept would be missing without a word.
TEST_F(CompactedLoaderTest, ALiveRowThatWasNotKeptIsDataLoss) {
  RowMask live = kept_[0];
  live.Set(500);
  other_live_[0] = live;
  EXPECT_EQ(ReasonOf(Load().status()), "DATA_LOSS");
  other_live_[0] = RowMask::All();
  EXPECT_EQ(ReasonOf(Load().status()), "DATA_LOSS");
}

// Lookups would read rows that are deleted.
TEST_F(CompactedLoaderTest, ABlockThatKeptMoreThanAQuarterOfItsRowsIsDataLoss) {
  RowMask kept;
  for (std::int64_t row = 0; row < 257; ++row) kept.Set(row);
  kept_[0] = kept;
  components_[0] = std::string(257 * 16, '\0');
  ids_[0] = {};
  labels_[0] = {};
  EXPECT_EQ(ReasonOf(Load().status()), "DATA_LOSS");
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
