#include "core/store/store_editor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "tests/core/store/same_store.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::StatusIs;

// Row j's components are all j.
std::shared_ptr<const Snapshot> AppendNumbered(StoreEditor& store, std::int64_t first,
                                               std::int64_t count) {
  const StoreConfig config = store.newest()->config();
  std::vector<float> keys, values;
  for (std::int64_t j = first; j < first + count; ++j) {
    keys.insert(keys.end(), config.key_dim, static_cast<float>(j));
    values.insert(values.end(), config.value_dim, static_cast<float>(-j));
  }
  return store
      .Append({.keys = {.data = keys.data(), .rows = count, .cols = config.key_dim},
               .values = {.data = values.data(), .rows = count, .cols = config.value_dim}})
      ->snapshot;
}

void ExpectNumbered(const Snapshot& snapshot) {
  std::uint64_t position = 0;
  for (const PositionedBlock& block : snapshot.BlocksOf(0, snapshot.row_count())) {
    ASSERT_EQ(block.first_position, position);
    kernels::PanelRowReader reader(block.view.shape);
    for (std::int64_t r = 0; r < block.view.row_count; ++r, ++position) {
      const kernels::PanelRow row = reader.Read(block.view, r);
      for (std::int64_t i = 0; i < block.view.shape.key_dim; ++i) {
        ASSERT_EQ(row.key[i * row.key_stride], static_cast<float>(position));
      }
      for (std::int64_t i = 0; i < block.view.shape.value_dim; ++i) {
        ASSERT_EQ(row.value[i], -static_cast<float>(position));
      }
    }
  }
  ASSERT_EQ(position, snapshot.row_count());
}

TEST(StoreEditorTest, EveryBatchSizeEndsInTheSameRows) {
  for (const std::int64_t batch : {1, 3, 16, 17, 1000, 5000}) {
    StoreEditor store({.name = "s", .key_dim = 3, .value_dim = 2});
    std::shared_ptr<const Snapshot> snapshot = store.newest();
    for (std::int64_t first = 0; first < 5000; first += batch) {
      snapshot = AppendNumbered(store, first, std::min(batch, 5000 - first));
    }
    EXPECT_EQ(snapshot->row_count(), 5000u);
    ExpectNumbered(*snapshot);
  }
}

TEST(StoreEditorTest, ASnapshotStaysWhatItWas) {
  StoreEditor store({.name = "s", .key_dim = 2, .value_dim = 5});
  std::vector<std::shared_ptr<const Snapshot>> snapshots;
  std::int64_t first = 0;
  for (std::int64_t count = 1; first < 4000; ++count) {
    snapshots.push_back(AppendNumbered(store, first, count));
    first += count;
  }
  std::uint64_t revision = 1;
  for (const auto& snapshot : snapshots) {
    EXPECT_EQ(snapshot->revision(), ++revision);
    ExpectNumbered(*snapshot);
  }
}

// The rows that lookups read, bit for bit, and where they were.
std::vector<float> LiveRows(const Snapshot& snapshot) {
  std::vector<float> rows;
  for (const PositionedBlock& block : snapshot.BlocksOf(0, snapshot.row_count())) {
    for (std::int64_t r = 0; r < block.view.row_count; ++r) {
      if (!block.MayCount(r)) continue;
      const Row row = snapshot.RowOf(block, r);
      rows.push_back(static_cast<float>(row.position));
      rows.insert(rows.end(), row.key.begin(), row.key.end());
      rows.insert(rows.end(), row.value.begin(), row.value.end());
    }
  }
  return rows;
}

TEST(StoreEditorTest, ABlockWithFewLiveRowsIsReadAsThoseWhateverTheOrderInWhichTheOthersWent) {
  const StoreConfig config{.name = "s", .key_dim = 3, .value_dim = 2};
  constexpr std::int64_t kRows = 3 * kernels::kBlockRowsMax + 100;
  const auto stays = [](std::int64_t position) {
    return position % 7 == 3 && position / kernels::kBlockRowsMax != 1;
  };
  // One store loses them when all are there, the other the last first, and some before their block
  // is full.
  StoreEditor late(config);
  const std::shared_ptr<const Snapshot> whole = AppendNumbered(late, 0, kRows);
  StoreEditor early(config);
  AppendNumbered(early, 0, 1000);
  const auto delete_one = [&](std::int64_t position) {
    const std::uint64_t begin = static_cast<std::uint64_t>(position);
    const auto deleted = early.Delete({.begin = begin, .end = begin + 1});
    EXPECT_EQ(deleted->deleted_count, 1u);
  };
  for (std::int64_t p = 999; p >= 0; --p) {
    if (!stays(p)) delete_one(p);
  }
  AppendNumbered(early, 1000, kRows - 1000);
  std::vector<float> expected;
  for (std::int64_t p = 0; p < kRows; ++p) {
    const float x = static_cast<float>(p);
    if (stays(p)) {
      expected.insert(expected.end(), {x, x, x, x, -x, -x});
    } else {
      ASSERT_THAT(late.Delete({.begin = p, .end = p + 1}), IsOk());
      if (p >= 1000) delete_one(p);
    }
  }

  const std::shared_ptr<const Snapshot> a = late.newest(), b = early.newest();
  EXPECT_EQ(LiveRows(*a), expected);
  EXPECT_EQ(LiveRows(*b), expected);
  std::int64_t read = 0;
  const Snapshot::Blocks blocks_a = a->BlocksOf(0, kRows), blocks_b = b->BlocksOf(0, kRows);
  ASSERT_EQ(blocks_a.size(), blocks_b.size());
  for (std::size_t i = 0; i < blocks_a.size(); ++i) {
    EXPECT_EQ(blocks_a[i].view.row_count, blocks_b[i].view.row_count);
    read += blocks_a[i].view.row_count;
  }
  EXPECT_EQ(read, static_cast<std::int64_t>(a->live_row_count()) + 100 - 100 / 7);
  // Memories do not forget, and a snapshot stays what it was.
  for (const std::uint64_t position : {1, 500, 1024, 1500, 3171}) {
    const MemoryValue then = (*whole->MemoryAsOf(position, 0))->Read();
    EXPECT_EQ((*a->MemoryAsOf(position, 0))->Read().value, then.value);
    EXPECT_EQ((*b->MemoryAsOf(position, 0))->Read().value, then.value);
  }
  ExpectNumbered(*whole);
}

// A write that is rolled back leaves nothing: the next write finds what was there before it.
enum class RollbackKind { kToCommit, kToSavepoint };

class RollbackTest : public ::testing::TestWithParam<RollbackKind> {};

TEST_P(RollbackTest, LeavesNothing) {
  const StoreConfig config{
      .name = "s",
      .key_dim = 3,
      .value_dim = 2,
      .memories = {{.name = "d", .kind = MemoryKind::kDecayedSum, .decay = 0.99}}};
  constexpr std::int64_t kBatches = 60;
  StoreEditor plain(config), undoing(config);
  std::mt19937_64 generator(7);
  const auto number = [&](std::uint64_t count) { return generator() % count; };
  for (std::int64_t batch = 0; batch < kBatches; ++batch) {
    const std::int64_t rows = 1 + static_cast<std::int64_t>(number(batch % 10 == 9 ? 2000 : 40));
    const std::vector<float> keys = NormalFloats(rows * 3, batch), values(rows * 2, 1.0f * batch);
    std::vector<std::uint64_t> ids(rows);
    for (std::int64_t i = 0; i < rows; ++i) ids[i] = number(300) * 2048 + i;
    const std::vector<std::vector<std::string>> labels(rows, {"label" + std::to_string(batch % 5)});
    const RowBatch good{.keys = {.data = keys.data(), .rows = rows, .cols = 3},
                        .values = {.data = values.data(), .rows = rows, .cols = 2},
                        .ids = ids,
                        .row_labels = labels,
                        .on_conflict = OnConflict::kReplace};
    const auto write = [&](StoreEditor& editor) {
      ASSERT_THAT(editor.Append(good), IsOk());
      if (batch % 3 == 0) {
        ASSERT_THAT(editor.Delete({.any_labels = {"label4"}}), IsOk());
      }
    };
    write(plain);
    plain.Commit();
    std::optional<StoreEditor::Savepoint> savepoint;
    if (GetParam() == RollbackKind::kToSavepoint) {
      write(undoing);
      savepoint = undoing.MakeSavepoint();
    }
    const std::uint64_t byte_size = undoing.newest()->byte_size();
    // Rolled back: other rows, deletions, a new configuration, in any number and order.
    for (std::uint64_t i = number(4); i > 0; --i) {
      const std::int64_t other_rows = 1 + static_cast<std::int64_t>(number(1500));
      const std::vector<float> other(other_rows * 3, -1.5f);
      std::vector<std::uint64_t> other_ids(other_rows);
      const std::vector<std::vector<std::string>> other_labels(
          other_rows, {"other" + std::to_string(batch), "label4"});
      for (std::int64_t k = 0; k < other_rows; ++k) other_ids[k] = number(300) * 2048 + k;
      ASSERT_THAT(undoing.Append({.keys = {.data = other.data(), .rows = other_rows, .cols = 3},
                                  .values = {.data = other.data(), .rows = other_rows, .cols = 2},
                                  .ids = other_ids,
                                  .row_labels = other_labels,
                                  .on_conflict = OnConflict::kReplace,
                                  .writer = "a writer whose name is long",
                                  .sequence = i}),
                  IsOk());
      const std::uint64_t begin = number(undoing.newest()->row_count());
      ASSERT_THAT(undoing.Delete({.begin = begin}), IsOk());
      undoing.Update([](StoreConfig& changed) { changed.temperature = 2; });
    }
    if (savepoint) {
      undoing.RollbackTo(*savepoint);
    } else {
      undoing.Rollback();
    }
    ASSERT_EQ(undoing.newest()->byte_size(), byte_size);
    ASSERT_EQ(undoing.FindWriter("a writer whose name is long"), nullptr);
    if (!savepoint) write(undoing);
    undoing.Commit();
    const Snapshot &expected = *plain.newest(), &actual = *undoing.newest();
    ASSERT_EQ(actual.revision(), expected.revision());
    ASSERT_EQ(actual.row_count(), expected.row_count());
    ASSERT_EQ(actual.live_row_count(), expected.live_row_count());
    ASSERT_EQ(actual.labels()->size(), expected.labels()->size());
    ASSERT_EQ(actual.config().temperature, 1);
    ASSERT_EQ(LiveRows(actual), LiveRows(expected));
    for (std::size_t memory = 0; memory < 2; ++memory) {
      const std::uint64_t position = number(actual.row_count() + 1);
      ASSERT_EQ((*actual.MemoryAsOf(position, memory))->Read().value,
                (*expected.MemoryAsOf(position, memory))->Read().value);
      ASSERT_EQ(undoing.ReadMemory(memory).value, plain.ReadMemory(memory).value);
      ASSERT_EQ(undoing.ReadMemory(memory).value,
                (*actual.MemoryAsOf(actual.row_count(), memory))->Read().value);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Either, RollbackTest,
                         ::testing::Values(RollbackKind::kToCommit, RollbackKind::kToSavepoint));

// While one is staged, the next write in the group may be refused, and one after it not.
TEST(StoreEditorTest, WritesGoOnFromASavepointThatWasRolledBackTo) {
  StoreEditor store({.name = "s", .key_dim = 3, .value_dim = 2});
  AppendNumbered(store, 0, 1000);
  store.Commit();
  const auto shown = AppendNumbered(store, 1000, 10);
  const StoreEditor::Savepoint savepoint = store.MakeSavepoint();
  AppendNumbered(store, 5'000'000, 3000);
  store.RollbackTo(savepoint);
  EXPECT_EQ(store.newest(), shown);
  const auto after = AppendNumbered(store, 1010, 2000);
  ExpectNumbered(*shown);
  ExpectNumbered(*after);
  EXPECT_EQ(store.ReadMemory(0).key, (*after->MemoryAsOf(3010, 0))->Read().key);
  store.Rollback();
  EXPECT_EQ(store.newest()->row_count(), 1000u);
  ExpectNumbered(*AppendNumbered(store, 1000, 500));
}

constexpr std::int64_t kTaggedRows = 2500;

// Row j has the id j and the label "j mod 5". Of blocks 0 and 1, every eighth row is live.
void FillTagged(StoreEditor& store) {
  const std::vector<float> keys = NormalFloats(kTaggedRows * 3, 1);
  const std::vector<float> values = NormalFloats(kTaggedRows * 2, 2);
  std::vector<std::uint64_t> ids(kTaggedRows), others;
  std::vector<std::vector<std::string>> labels;
  for (std::int64_t j = 0; j < kTaggedRows; ++j) {
    ids[j] = static_cast<std::uint64_t>(j);
    labels.push_back({std::to_string(j % 5)});
    if (j % 8 != 0 && j < 2048) others.push_back(ids[j]);
  }
  ASSERT_THAT(store.Append({.keys = {.data = keys.data(), .rows = kTaggedRows, .cols = 3},
                            .values = {.data = values.data(), .rows = kTaggedRows, .cols = 2},
                            .ids = ids,
                            .row_labels = labels}),
              IsOk());
  ASSERT_THAT(store.Delete({.ids = others}), IsOk());
}

absl::StatusOr<AppendOutcome> AppendWithId(StoreEditor& store, std::uint64_t id, OnConflict what) {
  const float row[3] = {9, 9, 9};
  return store.Append({.keys = {.data = row, .rows = 1, .cols = 3},
                       .values = {.data = row, .rows = 1, .cols = 2},
                       .ids = {&id, 1},
                       .on_conflict = what});
}

TEST(StoreEditorTest, ACompactionIsOneRevisionWithTheSameRowsInFewerBytes) {
  StoreEditor store({.name = "s", .key_dim = 3, .value_dim = 2});
  FillTagged(store);
  const std::shared_ptr<const Snapshot> before = store.newest();
  const std::vector<float> rows = LiveRows(*before);
  const CompactOutcome outcome = store.Compact(0, 3);
  EXPECT_THAT(outcome.compacted_blocks, ::testing::ElementsAre(0, 1));
  EXPECT_EQ(outcome.snapshot, store.newest());
  EXPECT_EQ(outcome.snapshot->revision(), before->revision() + 1);
  EXPECT_EQ(outcome.snapshot->row_count(), before->row_count());
  EXPECT_EQ(outcome.snapshot->live_row_count(), before->live_row_count());
  EXPECT_EQ(LiveRows(*outcome.snapshot), rows);
  EXPECT_EQ(LiveRows(*before), rows);
  EXPECT_EQ((*before->MemoryAsOf(1500, 0))->Read().weight, 1500);
  EXPECT_FALSE(outcome.snapshot->MemoryAsOf(1500, 0).ok());
  // The panels of two blocks of 1,024 rows, and the ids and labels of most rows.
  EXPECT_LE(outcome.snapshot->byte_size(), before->byte_size() - 2 * 1024 * (20 + 8));
  EXPECT_EQ(store.Compact(0, 3).snapshot, outcome.snapshot) << "nothing is left to drop";
}

TEST_P(RollbackTest, ACompactionLeavesNothing) {
  const StoreConfig config{
      .name = "s",
      .key_dim = 3,
      .value_dim = 2,
      .memories = {{.name = "d", .kind = MemoryKind::kDecayedSum, .decay = 0.99}}};
  StoreEditor plain(config), undoing(config);
  for (StoreEditor* store : {&plain, &undoing}) {
    FillTagged(*store);
    store->Commit();
  }
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    std::optional<StoreEditor::Savepoint> savepoint;
    if (GetParam() == RollbackKind::kToSavepoint) savepoint = undoing.MakeSavepoint();
    const std::uint64_t byte_size = undoing.newest()->byte_size();
    ASSERT_FALSE(undoing.Compact(0, 3).compacted_blocks.empty());
    ASSERT_THAT(AppendWithId(undoing, 1000, OnConflict::kReplace), IsOk());
    ASSERT_THAT(undoing.Delete({.begin = 100, .end = 2100}), IsOk());
    AppendNumbered(undoing, 0, 2000);
    ASSERT_FALSE(undoing.Compact(0, 5).compacted_blocks.empty());
    if (savepoint) {
      undoing.RollbackTo(*savepoint);
    } else {
      undoing.Rollback();
    }
    ASSERT_EQ(undoing.newest()->byte_size(), byte_size);
    ASSERT_NO_FATAL_FAILURE(testing::ExpectSameStore(*undoing.newest(), *plain.newest()));
    ASSERT_EQ(ReasonOf(AppendWithId(undoing, 1000, OnConflict::kFail).status()), "ROW_EXISTS");
    // What is written next finds what was there: the first time all blocks whole, then compacted
    // ones that lose further rows.
    for (StoreEditor* store : {&plain, &undoing}) {
      const std::uint64_t end = 200u * (static_cast<std::uint64_t>(round) + 1);
      ASSERT_THAT(store->Delete({.begin = 0, .end = end}), IsOk());
      ASSERT_FALSE(store->Compact(0, 3).compacted_blocks.empty());
      ASSERT_THAT(store->Delete({.begin = 0, .end = end + 100}), IsOk());
      store->Commit();
    }
    ASSERT_NO_FATAL_FAILURE(testing::ExpectSameStore(*undoing.newest(), *plain.newest()));
  }
}

TEST(StoreEditorTest, TheIdsOfACompactedBlocksRowsAreTakenAndThoseOfDroppedRowsFree) {
  StoreEditor store({.name = "s", .key_dim = 3, .value_dim = 2});
  FillTagged(store);
  store.Compact(0, 3);
  const std::shared_ptr<const Snapshot> before = store.newest();
  EXPECT_THAT(AppendWithId(store, 1032, OnConflict::kFail),
              StatusIs(absl::StatusCode::kAlreadyExists, "at position 1032"));
  EXPECT_EQ(AppendWithId(store, 1032, OnConflict::kSkip)->appended_count, 0u);
  EXPECT_THAT(AppendWithId(store, 1033, OnConflict::kFail), IsOk());
  const auto replaced = AppendWithId(store, 1032, OnConflict::kReplace);
  ASSERT_THAT(replaced, IsOk());
  EXPECT_THAT(replaced->masked_blocks, ::testing::ElementsAre(1));
  const Snapshot& after = *store.newest();
  EXPECT_EQ(after.live_row_count(), before->live_row_count() + 1);
  EXPECT_EQ(after.stored_blocks().LiveRowsOf(1).view.row_count, 127);
  EXPECT_EQ(after.IdAt(kTaggedRows + 1), 1032u);
  EXPECT_EQ(AppendWithId(store, 1032, OnConflict::kReplace)->masked_blocks,
            std::vector<std::int64_t>{2});
  // The replaced row is dropped, too.
  EXPECT_THAT(store.Compact(0, 3).compacted_blocks, ::testing::ElementsAre(1));
  EXPECT_EQ(store.newest()->IdAt(1032), std::nullopt);
  EXPECT_EQ(store.newest()->IdAt(1040), 1040u);
}

TEST(StoreEditorTest, FiltersChooseTheSameRowsOfACompactedBlock) {
  StoreEditor plain({.name = "s", .key_dim = 3, .value_dim = 2});
  StoreEditor compacted({.name = "s", .key_dim = 3, .value_dim = 2});
  for (StoreEditor* store : {&plain, &compacted}) FillTagged(*store);
  ASSERT_FALSE(compacted.Compact(0, 3).compacted_blocks.empty());
  for (const RowFilter& filter :
       {RowFilter{.begin = 3, .end = 100}, RowFilter{.any_labels = {"3", "none"}},
        RowFilter{.begin = 500, .end = 1500, .no_labels = {"0", "1", "2"}},
        RowFilter{.ids = {8, 9, 1600, 2499}}, RowFilter{.begin = 1000, .last = 1300},
        RowFilter{.end = 1600, .exclude_ids = {0, 16, 1592}}, RowFilter{.end = 2048}}) {
    const auto expected = plain.Delete(filter), actual = compacted.Delete(filter);
    ASSERT_THAT(expected, IsOk());
    ASSERT_THAT(actual, IsOk());
    EXPECT_EQ(actual->deleted_count, expected->deleted_count);
    EXPECT_EQ(actual->masked_blocks, expected->masked_blocks);
    EXPECT_EQ(LiveRows(*compacted.newest()), LiveRows(*plain.newest()));
    compacted.Compact(0, 2);
  }
}

TEST(StoreEditorTest, AnEmptyStoreIsSmall) {
  const StoreEditor store({.name = "s", .key_dim = 1024, .value_dim = 1024});
  EXPECT_LT(store.newest()->byte_size(), 4096u);
}

TEST(StoreEditorTest, ByteSizeCountsWhatTheConfigurationAndWritersTake) {
  const auto projection = std::make_shared<Projection>();
  projection->query.resize(1000);
  projection->key.resize(1000);
  projection->value.resize(1000);
  StoreEditor store({.name = "s", .key_dim = 1, .value_dim = 1});
  std::uint64_t before = store.newest()->byte_size();
  const auto expect_growth = [&](std::uint64_t least, std::uint64_t most) {
    EXPECT_GE(store.newest()->byte_size(), before + least);
    EXPECT_LE(store.newest()->byte_size(), before + most);
    before = store.newest()->byte_size();
  };
  store.Update([&](StoreConfig& config) { config.projection = projection; });
  expect_growth(12'000, 12'200);
  store.Update([](StoreConfig& config) { config.labels["a"] = std::string(1000, 'x'); });
  expect_growth(1000, 1200);
  store.Update([](StoreConfig& config) {
    config.projection = nullptr;
    config.labels.clear();
  });
  EXPECT_LT(store.newest()->byte_size(), before - 13'000);
  before = store.newest()->byte_size();
  const std::vector<float> one = {1};
  const MatrixView row{.data = one.data(), .rows = 1, .cols = 1};
  for (int i = 0; i < 1000; ++i) {
    ASSERT_THAT(store.Append({.keys = row,
                              .values = row,
                              .writer = std::string(100, 'w') + std::to_string(i),
                              .sequence = 1}),
                IsOk());
    store.Commit();
  }
  expect_growth(1000 * 150, 1000 * 260);
}

TEST(StoreEditorTest, AWholeBlocksRoomCountsAsFarAsItIsTaken) {
  StoreEditor store({.name = "s", .key_dim = 64, .value_dim = 64});
  AppendNumbered(store, 0, 1024);
  const std::uint64_t block = store.newest()->byte_size();
  AppendNumbered(store, 1024, 17);
  const std::uint64_t growth = store.newest()->byte_size() - block;
  if (PanelBuffer::CommitsAsWritten({.key_dim = 64, .value_dim = 64}, 64)) {
    EXPECT_LT(growth, 3u * 16 * 128 * 4);
  } else {
    EXPECT_GE(growth, 1024u * 128 * 4);
  }
}

TEST(StoreEditorTest, RowsCostLittleMoreThanTheirBytesAndThoseOfTheirSketches) {
  StoreEditor store({.name = "s", .key_dim = 128, .value_dim = 128});
  const auto snapshot = AppendNumbered(store, 0, 20'000);
  EXPECT_LT(static_cast<double>(snapshot->byte_size()), 1.05 * 20'000 * (256 * 4 + 128 + 12));
  EXPECT_GT(static_cast<double>(snapshot->byte_size()), 20'000 * 256 * 4);
}

TEST(StoreEditorTest, ABlockHasTheMemoriesBeforeItsFirstRow) {
  StoreEditor store({.name = "s", .key_dim = 1, .value_dim = 1});
  AppendNumbered(store, 0, 1024);
  store.Commit();
  AppendNumbered(store, 7000, 3000);
  store.Rollback();
  const std::shared_ptr<const Snapshot> snapshot = AppendNumbered(store, 1024, 1476);
  const StoredBlocks& blocks = snapshot->stored_blocks();
  EXPECT_EQ(blocks.MemoriesBefore(0), nullptr);
  EXPECT_EQ((*blocks.MemoriesBefore(1))[0].Read().key[0], 1023 / 2.0);
  EXPECT_EQ((*blocks.MemoriesBefore(2))[0].Read().key[0], 2047 / 2.0);
  EXPECT_EQ(store.ReadMemory(0).key[0], 2499 / 2.0);
}

TEST(StoreEditorTest, TheMemoriesCountInTheByteSize) {
  const auto added_bytes = [](std::vector<MemorySpec> memories) {
    StoreEditor store(
        {.name = "s", .key_dim = 64, .value_dim = 64, .memories = std::move(memories)});
    const std::uint64_t before = store.newest()->byte_size();
    return AppendNumbered(store, 0, 1025)->byte_size() - before;
  };
  // The state before block 1 and the state after the last row, each of key and value in float64.
  EXPECT_GE(added_bytes({{.name = "d", .kind = MemoryKind::kDecayedSum, .decay = 0.5}}),
            added_bytes({}) + 2 * 128 * 8);
}

TEST(StoreEditorDeathTest, ASavepointEndsWithTheNextCommit) {
  StoreEditor store({.name = "s", .key_dim = 3, .value_dim = 2});
  const float row[3] = {1, 2, 3};
  const std::uint64_t id = 7;
  ASSERT_THAT(store.Append({.keys = {.data = row, .rows = 1, .cols = 3},
                            .values = {.data = row, .rows = 1, .cols = 2},
                            .ids = {&id, 1}}),
              IsOk());
  const StoreEditor::Savepoint savepoint = store.MakeSavepoint();
  store.Commit();
  EXPECT_DEATH(store.RollbackTo(savepoint), "older than the last commit");
}

}  // namespace
}  // namespace softlookup
