#include "core/engine/put_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "tests/core/engine/logged_store.h"
#include "tests/core/store/same_store.h"
#include "tests/testing/random.h"
#include "tests/testing/sanitized.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::ExpectSameStore;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::LoggedStore;
using ::softlookup::testing::NormalFloats;
using ::testing::ElementsAre;
using ::testing::Key;

// Which rows of an append have tags.
enum class Tags { kNone, kIds, kLabels, kIdsAndLabels };

// Appends `count` rows. Ids are 10,000 above the positions. Rows have no label, "1" or "1" and "2".
void AppendTagged(LoggedStore& store, std::int64_t count, Tags tags) {
  const StoreConfig& config = store.newest().config();
  const std::uint64_t first = store.newest().row_count();
  const std::vector<float> keys = NormalFloats(count * config.key_dim, first + 1);
  const std::vector<float> values = NormalFloats(count * config.value_dim, first + 2);
  std::vector<std::uint64_t> ids;
  std::vector<std::vector<std::string>> labels;
  for (std::int64_t row = 0; row < count; ++row) {
    ids.push_back(10'000 + first + static_cast<std::uint64_t>(row));
    labels.emplace_back();
    for (std::int64_t label = 1; label <= row % 3; ++label) {
      labels.back().push_back(std::to_string(label));
    }
  }
  RowBatch batch{.keys = {.data = keys.data(), .rows = count, .cols = config.key_dim},
                 .values = {.data = values.data(), .rows = count, .cols = config.value_dim}};
  if (tags == Tags::kIds || tags == Tags::kIdsAndLabels) batch.ids = ids;
  if (tags == Tags::kLabels || tags == Tags::kIdsAndLabels) batch.row_labels = labels;
  store.Append(batch);
}

void ExpectLoadsAsItIs(LoggedStore& store) {
  const LoadedStore loaded = store.Load();
  ASSERT_THAT(loaded.store, IsOk());
  ExpectSameStore(*(*loaded.store)->snapshot(), store.newest());
  EXPECT_EQ((*loaded.store)->editor().ReadMemory(0).key, store.editor().ReadMemory(0).key);
}

// Of blocks of 1,024 rows.
StoreConfig SmallConfig() { return {.name = "s", .key_dim = 1, .value_dim = 1}; }

TEST(PutCompactionTest, ARecordOfManyBlocksIsCutAtTheirEdges) {
  LoggedStore store(SmallConfig());
  AppendTagged(store, 6 * 1024 + 10, Tags::kIds);
  store.Delete({.begin = 1024 + 10, .end = 2048});
  store.Delete({.begin = 4 * 1024, .end = 5 * 1024});
  EXPECT_THAT(store.Compact(1, 2), ElementsAre(1));
  EXPECT_THAT(store.Records(RecordKind::kRows), ElementsAre(Key(0u), Key(1024u), Key(2048u)));
  ASSERT_NO_FATAL_FAILURE(ExpectLoadsAsItIs(store));
  // A window of more blocks than lose rows.
  EXPECT_THAT(store.Compact(3, 6), ElementsAre(4));
  ASSERT_NO_FATAL_FAILURE(ExpectLoadsAsItIs(store));
  const auto rows = store.Records(RecordKind::kRows);
  EXPECT_EQ(ParseRows(rows.at(1024), store.row_bytes())->row_count, 10u);
  EXPECT_EQ(ParseRows(rows.at(4 * 1024), store.row_bytes())->row_count, 0u);
  EXPECT_THAT(store.Compact(0, 6), ElementsAre());
}

TEST(PutCompactionTest, SmallRecordsOfABlockBecomeOne) {
  LoggedStore store(SmallConfig());
  while (store.newest().row_count() < 2100) AppendTagged(store, 37, Tags::kLabels);
  store.Delete({.begin = 20, .end = 1000});
  EXPECT_THAT(store.Compact(0, 1), ElementsAre(0));
  ASSERT_NO_FATAL_FAILURE(ExpectLoadsAsItIs(store));
  const auto rows = store.Records(RecordKind::kRows);
  ASSERT_GE(rows.size(), 3u);
  EXPECT_EQ(rows.begin()->first, 0u);
  EXPECT_EQ(std::next(rows.begin())->first, 1024u) << "the rest of the record across the edge";
}

// Only the rows of some appends have ids, and the records that are put anew mix them.
TEST(PutCompactionTest, RowsWithAndWithoutIdsStayWhatTheyAre) {
  LoggedStore store(SmallConfig());
  for (const std::int64_t count : {500, 300, 224, 700, 100, 1000, 300}) {
    AppendTagged(store, count, count % 3 == 0 ? Tags::kNone : Tags::kIdsAndLabels);
    AppendTagged(store, 100, Tags::kLabels);
  }
  // Block 1 loses rows; blocks 0 and 2 are in the same window and lose none.
  store.Delete({.begin = 1024, .end = 1800});
  EXPECT_THAT(store.Compact(0, 3), ElementsAre(1));
  ASSERT_NO_FATAL_FAILURE(ExpectLoadsAsItIs(store));
  store.Delete({.begin = 900, .end = 1024});
  store.Delete({.end = 800});
  EXPECT_THAT(store.Compact(0, 3), ElementsAre(0));
  ASSERT_NO_FATAL_FAILURE(ExpectLoadsAsItIs(store));
}

TEST(PutCompactionTest, ABlockThatWasCompactedBeforeKeepsItsRecordUnlessItLosesRowsAgain) {
  LoggedStore store(SmallConfig());
  AppendTagged(store, 4 * 1024, Tags::kIdsAndLabels);
  store.Delete({.begin = 100, .end = 2 * 1024});
  EXPECT_THAT(store.Compact(0, 4), ElementsAre(0, 1));
  store.Delete({.begin = 50, .end = 60});
  // The record of a deletion in a compacted block says what the block's rows are.
  const auto live = ParseLiveRows(store.Records(RecordKind::kLiveRows).at(0));
  ASSERT_THAT(live, IsOk());
  ASSERT_TRUE(live->kept.has_value());
  EXPECT_NE(*live->kept, live->live);
  ASSERT_NO_FATAL_FAILURE(ExpectLoadsAsItIs(store));
  store.Delete({.begin = 2 * 1024, .end = 3 * 1024});
  EXPECT_THAT(store.Compact(0, 4), ElementsAre(0, 2));
  ASSERT_NO_FATAL_FAILURE(ExpectLoadsAsItIs(store));
  EXPECT_EQ(ParseRows(store.Records(RecordKind::kRows).at(0), store.row_bytes())->row_count, 90u);
}

TEST(PutCompactionTest, AnyWritesLoadAsTheyAre) {
  const std::uint64_t first = testing::FirstSeed();
  for (std::uint64_t seed = first; seed < first + testing::RandomCases(6); ++seed) {
    SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(seed));
    testing::Draw draw(seed);
    constexpr StorageType kTypes[] = {StorageType::kFloat32, StorageType::kBfloat16,
                                      StorageType::kInt8};
    StoreConfig config{.name = "s",
                       .key_dim = draw.Int(1, 40),
                       .value_dim = draw.Int(1, 5),
                       .storage_type = kTypes[draw.Int(0, 2)]};
    // Some with blocks of fewer rows.
    if (draw.Coin()) config.value_dim = 3000;
    if (draw.Coin())
      config.memories = {{.name = "d", .kind = MemoryKind::kDecayedSum, .decay = 0.5}};
    LoggedStore store(config);
    const std::int64_t block_rows = store.block_rows();
    for (int step = 0; step < 40; ++step) {
      const auto count = static_cast<std::int64_t>(store.newest().row_count());
      const std::int64_t what = draw.Int(0, 9);
      if (what < 4) {
        AppendTagged(store, draw.Int(1, draw.Coin() ? 3 * block_rows : 20),
                     static_cast<Tags>(draw.Int(0, 3)));
      } else if (what < 8) {
        RowFilter filter;
        const std::int64_t begin = draw.Int(0, count);
        filter.begin = static_cast<std::uint64_t>(begin);
        filter.end = static_cast<std::uint64_t>(draw.Int(begin, count));
        if (draw.Chance(0.3)) filter.any_labels = {"1"};
        store.Delete(filter);
      } else {
        const std::int64_t begin = draw.Int(0, count / block_rows);
        store.Compact(begin, begin + draw.Int(1, 4));
      }
      if (step % 8 == 7) {
        ASSERT_NO_FATAL_FAILURE(ExpectLoadsAsItIs(store)) << "after step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace softlookup
