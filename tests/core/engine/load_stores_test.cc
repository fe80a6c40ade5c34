// A log with compacted blocks whose records are damaged: an error, never a crash or other rows.
#include "core/engine/load_stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/core/engine/logged_store.h"
#include "tests/core/store/same_store.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::LoggedStore;
using ::softlookup::testing::NormalFloats;

// Four blocks of 1,024 rows and a tail. Blocks 0 and 2 are compacted, and of block 0 a row was
// deleted since. Every other append has ids, every third labels.
class LoadCompactedTest : public ::testing::Test {
 protected:
  LoadCompactedTest() : store_({.name = "s", .key_dim = 1, .value_dim = 1}) {
    for (std::int64_t append = 0; append < 18; ++append) {
      constexpr std::int64_t kCount = 256;
      const std::vector<float> rows = NormalFloats(kCount, static_cast<std::uint64_t>(append));
      const MatrixView view{.data = rows.data(), .rows = kCount, .cols = 1};
      std::vector<std::uint64_t> ids(kCount);
      for (std::int64_t i = 0; i < kCount; ++i) {
        ids[i] = static_cast<std::uint64_t>(append * kCount + i);
      }
      const std::vector<std::vector<std::string>> labels(kCount, {std::to_string(append)});
      RowBatch batch{.keys = view, .values = view};
      if (append % 2 == 0) batch.ids = ids;
      if (append % 3 == 0) batch.row_labels = labels;
      store_.Append(batch);
    }
    store_.Delete({.begin = 5, .end = 1000});
    store_.Delete({.begin = 2048, .end = 3000});
    EXPECT_THAT(store_.Compact(0, 4), ::testing::ElementsAre(0, 2));
    store_.Delete({.begin = 3, .end = 4});
    EXPECT_THAT(store_.Load().store, IsOk());
  }

  std::string Record(RecordKind kind, std::uint64_t number) {
    return store_.Records(kind).at(number);
  }
  LiveRowsRecord LiveRows(std::uint64_t block) {
    const auto record = ParseLiveRows(Record(RecordKind::kLiveRows, block));
    EXPECT_THAT(record, IsOk());
    return record.value_or(LiveRowsRecord());
  }
  // What the store is loaded as if one record is `value`. Null: if it is missing. The log is then
  // as it was.
  std::string ReasonWith(RecordKind kind, std::uint64_t number, const std::string* value) {
    const auto records = store_.Records(kind);
    const auto old = records.find(number);
    store_.SetRecord(kind, number, value);
    const absl::Status status = store_.Load().store.status();
    store_.SetRecord(kind, number, old == records.end() ? nullptr : &old->second);
    return ReasonOf(status);
  }
  std::string ReasonWith(RecordKind kind, std::uint64_t number, const std::string& value) {
    return ReasonWith(kind, number, &value);
  }

  LoggedStore store_;
};

TEST_F(LoadCompactedTest, AMissingRecordIsDataLoss) {
  for (const std::uint64_t position : {0, 2048}) {
    EXPECT_EQ(ReasonWith(RecordKind::kRows, position, nullptr), "DATA_LOSS") << position;
  }
  for (const std::uint64_t block : {0, 2}) {
    EXPECT_EQ(ReasonWith(RecordKind::kLiveRows, block, nullptr), "DATA_LOSS") << block;
  }
  for (const std::uint64_t block : {0, 1, 2, 3}) {
    EXPECT_EQ(ReasonWith(RecordKind::kBlockStart, block, nullptr), "DATA_LOSS") << block;
  }
}

TEST_F(LoadCompactedTest, AMaskThatDoesNotFitIsDataLoss) {
  // Without the rows that were kept, the record of rows is one of too few.
  LiveRowsRecord record = LiveRows(0);
  record.kept.reset();
  EXPECT_EQ(ReasonWith(RecordKind::kLiveRows, 0, EncodeLiveRows(record)), "DATA_LOSS");
  // Another number of rows.
  record = LiveRows(0);
  (*record.kept)[5] ^= 1;
  EXPECT_EQ(ReasonWith(RecordKind::kLiveRows, 0, EncodeLiveRows(record)), "DATA_LOSS");
  // A row that was not kept is live.
  record = LiveRows(0);
  record.live[5] |= 1;
  EXPECT_EQ(ReasonWith(RecordKind::kLiveRows, 0, EncodeLiveRows(record)), "DATA_LOSS");
  // Blocks that are whole in the log, and the tail.
  for (const std::uint64_t block : {1, 3, 4}) {
    EXPECT_EQ(ReasonWith(RecordKind::kLiveRows, block, EncodeLiveRows(LiveRows(2))), "DATA_LOSS")
        << block;
  }
  EXPECT_THAT(store_.Load().store, IsOk());
}

TEST_F(LoadCompactedTest, RowsThatDoNotFitAreDataLoss) {
  const std::string rows = Record(RecordKind::kRows, 0);
  EXPECT_EQ(ReasonWith(RecordKind::kRows, 0, Record(RecordKind::kRows, 2048)), "DATA_LOSS");
  EXPECT_EQ(ReasonWith(RecordKind::kRows, 0, EncodeRows({})), "DATA_LOSS");
  // Rows within a compacted block, or across its edge.
  EXPECT_EQ(ReasonWith(RecordKind::kRows, 512, rows), "DATA_LOSS");
  EXPECT_EQ(ReasonWith(RecordKind::kRows, 2047, Record(RecordKind::kRows, 4096)), "DATA_LOSS");
  EXPECT_EQ(ReasonWith(RecordKind::kRows, 1023, rows), "DATA_LOSS");
}

// The record of a whole block says which of its rows have ids, and is damaged if it claims fewer.
TEST_F(LoadCompactedTest, FewerIdsThanRowsAreNoCrash) {
  const std::string whole = Record(RecordKind::kRows, 4096);
  auto record = ParseRows(whole, store_.row_bytes());
  ASSERT_THAT(record, IsOk());
  const std::string components(record->components);
  const RowsRecord fewer{
      .row_count = record->row_count, .components = components, .ids = {1}, .has_id = [&] {
        std::vector<bool> has_id(record->row_count);
        has_id[0] = true;
        return has_id;
      }()};
  const std::string value = EncodeRows(fewer);
  store_.SetRecord(RecordKind::kRows, 4096, &value);
  const LoadedStore loaded = store_.Load();
  if (!loaded.store.ok()) {
    EXPECT_EQ(ReasonOf(loaded.store.status()), "DATA_LOSS");
    return;
  }
  const auto snapshot = (*loaded.store)->snapshot();
  EXPECT_EQ(snapshot->IdAt(4096), 1u);
  for (std::uint64_t row = 1; row < record->row_count; ++row) {
    EXPECT_EQ(snapshot->IdAt(4096 + row), std::nullopt) << row;
  }
}

// Checksums of the log keep such records from being read, so this is about what they let through.
TEST_F(LoadCompactedTest, AnyDamageIsAnErrorOrAStore) {
  std::mt19937_64 random(testing::FirstSeed());
  for (const RecordKind kind :
       {RecordKind::kRows, RecordKind::kLiveRows, RecordKind::kBlockStart}) {
    for (const auto& [number, value] : store_.Records(kind)) {
      for (int i = 0; i < 20; ++i) {
        std::string damaged = value;
        // The first bytes decide what the others mean.
        const std::size_t size = i < 10 ? std::min<std::size_t>(8, value.size()) : value.size();
        const std::size_t at = random() % size;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
        if (i % 5 == 4) damaged.resize(random() % value.size());
        store_.SetRecord(kind, number, &damaged);
        const LoadedStore loaded = store_.Load();
        if (loaded.store.ok()) {
          const auto snapshot = (*loaded.store)->snapshot();
          ASSERT_EQ(snapshot->row_count(), store_.newest().row_count());
          std::uint64_t live = 0;
          for (const PositionedBlock& block : snapshot->BlocksOf(0, snapshot->row_count())) {
            for (std::int64_t row = 0; row < block.view.row_count; ++row) {
              live += block.MayCount(row) ? 1 : 0;
              (void)snapshot->RowOf(block, row);
            }
          }
          ASSERT_EQ(live, snapshot->live_row_count());
        } else {
          ASSERT_EQ(ReasonOf(loaded.store.status()), "DATA_LOSS");
        }
      }
      store_.SetRecord(kind, number, &value);
    }
  }
  const LoadedStore whole = store_.Load();
  ASSERT_THAT(whole.store, IsOk());
  testing::ExpectSameStore(*(*whole.store)->snapshot(), store_.newest());
}

}  // namespace
}  // namespace softlookup
