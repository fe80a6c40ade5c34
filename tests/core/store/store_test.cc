#include "core/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "core/base/error.h"
#include "tests/testing/golden.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::StatusIs;

// Row j's components are all j.
std::shared_ptr<const Snapshot> AppendNumbered(Store& store, std::int64_t first,
                                               std::int64_t count) {
  const StoreConfig config = store.info().config;
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
    for (std::int64_t r = 0; r < block.view.row_count; ++r, ++position) {
      const float* panel = block.view.panel(r / kernels::kPanelRows);
      const float* key = panel + block.view.shape.key_offset(r % kernels::kPanelRows, 0);
      for (std::int64_t i = 0; i < block.view.shape.key_dim; ++i) {
        ASSERT_EQ(key[i * kernels::kPanelRows], static_cast<float>(position));
      }
      for (std::int64_t i = 0; i < block.view.shape.value_dim; ++i) {
        ASSERT_EQ(block.view.value(r)[i], -static_cast<float>(position));
      }
    }
  }
  ASSERT_EQ(position, snapshot.row_count());
}

TEST(StoreTest, EveryBatchSizeEndsInTheSameRows) {
  for (const std::int64_t batch : {1, 3, 16, 17, 1000, 5000}) {
    Store store({.name = "s", .key_dim = 3, .value_dim = 2}, absl::UnixEpoch());
    std::shared_ptr<const Snapshot> snapshot = store.snapshot();
    for (std::int64_t first = 0; first < 5000; first += batch) {
      snapshot = AppendNumbered(store, first, std::min(batch, 5000 - first));
    }
    EXPECT_EQ(snapshot->row_count(), 5000u);
    ExpectNumbered(*snapshot);
  }
}

TEST(StoreTest, ASnapshotStaysWhatItWas) {
  Store store({.name = "s", .key_dim = 2, .value_dim = 5}, absl::UnixEpoch());
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

TEST(StoreTest, ReadersBesideAWriterSeePrefixes) {
  Store store({.name = "s", .key_dim = 4, .value_dim = 3}, absl::UnixEpoch());
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::uint64_t seen = 0;
    while (!done) {
      const std::shared_ptr<const Snapshot> snapshot = store.snapshot();
      ASSERT_GE(snapshot->row_count(), seen);
      seen = snapshot->row_count();
      ExpectNumbered(*snapshot);
    }
  });
  for (std::int64_t first = 0; first < 3000; first += 7) AppendNumbered(store, first, 7);
  done = true;
  reader.join();
}

TEST(StoreTest, BlocksFitASecondLevelCacheAndScratch) {
  EXPECT_EQ(BlockRows({.key_dim = 1, .value_dim = 1}), kernels::kBlockRowsMax);
  EXPECT_EQ(BlockRows({.key_dim = 128, .value_dim = 128}), 512);
  EXPECT_EQ(BlockRows({.key_dim = 65536, .value_dim = 65536}), kernels::kPanelRows);
}

MemoryKind KindOf(const std::string& name) {
  static const std::map<std::string, MemoryKind> kKinds = {
      {"AVERAGE", MemoryKind::kAverage},
      {"DECAYED_SUM", MemoryKind::kDecayedSum},
      {"DECAYED_AVERAGE", MemoryKind::kDecayedAverage},
      {"GATED", MemoryKind::kGated},
      {"GATED_AVERAGE", MemoryKind::kGatedAverage}};
  return kKinds.at(name);
}

TEST(StoreTest, GoldenMemoriesHoldForEveryKindAndWindow) {
  int cases = 0;
  for (const auto& golden : softlookup::testing::ReadGoldenMemories()) {
    SCOPED_TRACE(golden.kind + " of " + std::to_string(golden.row_count));
    ++cases;
    Store store({.name = "s",
                 .key_dim = golden.key_dim,
                 .value_dim = golden.value_dim,
                 .memories = {{.name = "m",
                               .kind = KindOf(golden.kind),
                               .decay = golden.decay,
                               .gate = golden.gate}}},
                absl::UnixEpoch());
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

TEST(StoreTest, AMemoryAsOfAnyPositionHasTheBitsOfARescan) {
  constexpr std::int64_t kRows = 2600;
  const StoreConfig config{
      .name = "s",
      .key_dim = 3,
      .value_dim = 2,
      .memories = {{.name = "d", .kind = MemoryKind::kDecayedAverage, .decay = 0.99},
                   {.name = "g", .kind = MemoryKind::kGated, .gate = {0.5f, 1, -1, 0.25f}}}};
  Store store(config, absl::UnixEpoch());
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

TEST(StoreTest, ABlockWithFewLiveRowsIsReadAsThoseWhateverTheOrderInWhichTheOthersWent) {
  const StoreConfig config{.name = "s", .key_dim = 3, .value_dim = 2};
  constexpr std::int64_t kRows = 3 * kernels::kBlockRowsMax + 100;
  const auto stays = [](std::int64_t position) {
    return position % 7 == 3 && position / kernels::kBlockRowsMax != 1;
  };
  // One store loses them when all are there, the other the last first, and some before their block
  // is full.
  Store late(config, absl::UnixEpoch());
  const std::shared_ptr<const Snapshot> whole = AppendNumbered(late, 0, kRows);
  Store early(config, absl::UnixEpoch());
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

  const std::shared_ptr<const Snapshot> a = late.snapshot(), b = early.snapshot();
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
    const MemoryValue then = whole->MemoryAsOf(position, 0)->Read();
    EXPECT_EQ(a->MemoryAsOf(position, 0)->Read().value, then.value);
    EXPECT_EQ(b->MemoryAsOf(position, 0)->Read().value, then.value);
  }
  ExpectNumbered(*whole);
}

TEST(StoreTest, AnEmptyStoreIsSmall) {
  const Store store({.name = "s", .key_dim = 1024, .value_dim = 1024}, absl::UnixEpoch());
  EXPECT_LT(store.info().byte_size, 4096u);
}

TEST(StoreTest, RowsCostLittleMoreThanTheirBytes) {
  Store store({.name = "s", .key_dim = 128, .value_dim = 128}, absl::UnixEpoch());
  const auto snapshot = AppendNumbered(store, 0, 20'000);
  EXPECT_LT(static_cast<double>(snapshot->byte_size()), 1.05 * 20'000 * 256 * 4);
  EXPECT_GT(static_cast<double>(snapshot->byte_size()), 20'000 * 256 * 4);
}

TEST(StoreTest, WhoeverWaitsForARevisionHearsOfItOnce) {
  Store store({.name = "s", .key_dim = 1, .value_dim = 1}, absl::UnixEpoch());
  std::vector<absl::Status> heard;
  const auto hear = [&heard](absl::Status status) { heard.push_back(status); };
  const auto cancel = std::make_shared<CancelToken>();
  store.WhenRevision(1, cancel, hear);
  EXPECT_THAT(heard, ::testing::SizeIs(1)) << "reached already";
  store.WhenRevision(3, cancel, hear);
  AppendNumbered(store, 0, 1);
  EXPECT_THAT(heard, ::testing::SizeIs(1));
  AppendNumbered(store, 1, 1);
  ASSERT_THAT(heard, ::testing::SizeIs(2));
  EXPECT_THAT(heard[1], IsOk());
  cancel->Cancel();
  EXPECT_THAT(heard, ::testing::SizeIs(2));
}

TEST(StoreTest, WaitingEndsWithCancellationAndWithTheStore) {
  Store store({.name = "s", .key_dim = 1, .value_dim = 1}, absl::UnixEpoch());
  std::vector<absl::Status> heard;
  const auto hear = [&heard](absl::Status status) { heard.push_back(status); };
  const auto cancelled = std::make_shared<CancelToken>(), patient = std::make_shared<CancelToken>();
  store.WhenRevision(9, cancelled, hear);
  store.WhenRevision(9, patient, hear);
  cancelled->Cancel();
  ASSERT_THAT(heard, ::testing::SizeIs(1));
  EXPECT_THAT(heard[0], StatusIs(absl::StatusCode::kCancelled, ""));
  store.Close(absl::NotFoundError("gone"));
  ASSERT_THAT(heard, ::testing::SizeIs(2));
  EXPECT_THAT(heard[1], StatusIs(absl::StatusCode::kNotFound, "gone"));
  store.WhenRevision(9, patient, hear);
  EXPECT_THAT(heard, ::testing::SizeIs(3));
}

}  // namespace
}  // namespace softlookup
