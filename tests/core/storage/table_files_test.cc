#include "core/storage/table_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/storage/background_errors.h"
#include "core/storage/open_database.h"
#include "core/storage/synced_sequence.h"
#include "tests/testing/damage_table.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::DamageBytes;
using ::softlookup::testing::IsOk;

constexpr std::uint64_t kStoreCount = 3, kRecordsOfAStore = 100, kBytesOfARecord = 10'000;

// Three stores of a megabyte each, in many small tables of level 1.
class TableFilesTest : public ::testing::Test {
 protected:
  TableFilesTest() {
    rocksdb::Options options =
        LogOptions(rocksdb::Env::Default(), std::make_shared<BackgroundErrors>());
    options.target_file_size_base = kTableBlockBytes;
    auto db = OpenDatabase(options, directory_.path(),
                           SyncedSequence(directory_.path() + "/" + kSyncedName));
    EXPECT_THAT(db, IsOk());
    db_ = *std::move(db);
    for (std::uint64_t store = 1; store <= kStoreCount; ++store) {
      const std::string value(kBytesOfARecord, static_cast<char>('a' + store));
      for (std::uint64_t i = 0; i < kRecordsOfAStore; ++i) {
        EXPECT_TRUE(db_->Put(rocksdb::WriteOptions(), KeyOf(store, i), value).ok());
      }
    }
    rocksdb::CompactRangeOptions force;
    force.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    EXPECT_TRUE(db_->CompactRange(force, nullptr, nullptr).ok());
    RemoveUnusedFiles(*db_);
  }

  static std::string KeyOf(std::uint64_t store, std::uint64_t i) {
    return EncodeKey({.store = store, .kind = RecordKind::kRows, .number = i});
  }
  std::vector<rocksdb::LiveFileMetaData> Tables() const {
    std::vector<rocksdb::LiveFileMetaData> tables;
    db_->GetLiveFilesMetaData(&tables);
    return tables;
  }
  void MoveToLevel(int level) {
    rocksdb::CompactRangeOptions down;
    down.change_level = true;
    down.target_level = level;
    ASSERT_TRUE(db_->CompactRange(down, nullptr, nullptr).ok());
  }
  bool HasRecord(std::uint64_t store, std::uint64_t i) const {
    std::string value;
    return db_->Get(rocksdb::ReadOptions(), KeyOf(store, i), &value).ok();
  }

  const softlookup::testing::TemporaryDirectory directory_;
  std::unique_ptr<rocksdb::DB> db_;
  std::atomic<bool> cancelled_{false};
  bool may_have_dropped_ = false;
};

TEST_F(TableFilesTest, TablesOfARangeAreDroppedAndNoOthers) {
  const std::size_t all = Tables().size();
  ASSERT_GT(all, 3 * kStoreCount);
  const KeyRange range = KeysOfStore(2);
  EXPECT_GT(BytesIn(*db_, range), kRecordsOfAStore * kBytesOfARecord / 2);
  ASSERT_TRUE(
      db_->DeleteRange(rocksdb::WriteOptions(), db_->DefaultColumnFamily(), range.begin, range.end)
          .ok());
  ASSERT_TRUE(DropTables(*db_, std::vector<KeyRange>{range}, may_have_dropped_).ok());
  EXPECT_TRUE(may_have_dropped_);
  EXPECT_LT(Tables().size(), all - all / 4);
  ASSERT_TRUE(DropTables(*db_, std::vector<KeyRange>{range}, may_have_dropped_).ok());
  EXPECT_FALSE(may_have_dropped_) << "nothing was left";
  EXPECT_LT(BytesIn(*db_, range), kRecordsOfAStore * kBytesOfARecord / 4);
  for (std::uint64_t i = 0; i < kRecordsOfAStore; ++i) {
    EXPECT_TRUE(HasRecord(1, i)) << i;
    EXPECT_FALSE(HasRecord(2, i)) << i;
    EXPECT_TRUE(HasRecord(3, i)) << i;
  }
  ASSERT_TRUE(CompactTables(*db_, range, cancelled_).ok());
  EXPECT_LT(BytesIn(*db_, range), 2 * kTableBlockBytes);
  for (std::uint64_t i = 0; i < kRecordsOfAStore; ++i) {
    EXPECT_TRUE(HasRecord(1, i)) << i;
    EXPECT_FALSE(HasRecord(2, i)) << i;
    EXPECT_TRUE(HasRecord(3, i)) << i;
  }
}

TEST_F(TableFilesTest, SeveralRangesAreDroppedAtOnce) {
  const KeyRange all{.begin = KeysOfStore(1).begin, .end = KeysOfStore(kStoreCount).end};
  ASSERT_TRUE(
      db_->DeleteRange(rocksdb::WriteOptions(), db_->DefaultColumnFamily(), all.begin, all.end)
          .ok());
  ASSERT_TRUE(
      DropTables(*db_, std::vector<KeyRange>{KeysOfStore(1), KeysOfStore(3)}, may_have_dropped_)
          .ok());
  EXPECT_GT(BytesIn(*db_, KeysOfStore(2)), kRecordsOfAStore * kBytesOfARecord / 2);
  EXPECT_LT(BytesIn(*db_, KeysOfStore(1)), kRecordsOfAStore * kBytesOfARecord / 4);
  EXPECT_LT(BytesIn(*db_, KeysOfStore(3)), kRecordsOfAStore * kBytesOfARecord / 4);
}

// What DropTables() warns of.
TEST_F(TableFilesTest, RecordsAreSeenThatAppearAgainWhenTheirDeletionIsDropped) {
  MoveToLevel(3);
  const KeyRange range = KeysOfStore(2);
  const auto delete_range = [&] {
    ASSERT_TRUE(db_->DeleteRange(rocksdb::WriteOptions(), db_->DefaultColumnFamily(), range.begin,
                                 range.end)
                    .ok());
  };
  delete_range();
  ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  std::vector<std::string> deletion;
  for (const rocksdb::LiveFileMetaData& table : Tables()) {
    if (table.level == 0) deletion.push_back(table.relative_filename);
  }
  ASSERT_EQ(deletion.size(), 1u);
  ASSERT_TRUE(db_->CompactFiles(rocksdb::CompactionOptions(), deletion, /*output_level=*/1).ok());
  EXPECT_FALSE(HasRecords(*db_, {range}));
  ASSERT_TRUE(DropTables(*db_, {range}, may_have_dropped_).ok());
  EXPECT_TRUE(HasRecords(*db_, {range})) << "of tables that other stores share";
  delete_range();
  EXPECT_FALSE(HasRecords(*db_, {range}));
  for (std::uint64_t i = 0; i < kRecordsOfAStore; ++i) {
    EXPECT_TRUE(HasRecord(1, i)) << i;
    EXPECT_TRUE(HasRecord(3, i)) << i;
  }
}

TEST_F(TableFilesTest, DeletedRecordsAreFoundAndReadWithoutOthers) {
  EXPECT_EQ(StoreOfKey(LastKeyInTables(*db_)), kStoreCount);
  const std::vector<KeyRange> all = {KeysOfStore(1), KeysOfStore(2), KeysOfStore(3),
                                     KeysOfStore(4)};
  const KeyRange& two = all[1];
  ASSERT_TRUE(
      db_->DeleteRange(rocksdb::WriteOptions(), db_->DefaultColumnFamily(), two.begin, two.end)
          .ok());
  EXPECT_FALSE(HasRecords(*db_, {two}));
  EXPECT_TRUE(HasRecords(*db_, all));
  // The deletion is in a table, too.
  ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  EXPECT_EQ(RangesInTables(*db_, all).size(), 3u);
  const std::vector<KeyRange> found = RangesInTables(*db_, {two, KeysOfStore(4)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].begin, two.begin);
  EXPECT_TRUE(ReadTables(*db_, all, cancelled_).ok());

  std::string damaged;
  for (const rocksdb::LiveFileMetaData& table : Tables()) {
    if (table.smallestkey >= KeyOf(2, 0) && table.largestkey < two.end && table.level > 0) {
      damaged = directory_.path() + "/" + table.relative_filename;
    }
  }
  ASSERT_FALSE(damaged.empty());
  DamageBytes(damaged, std::string(kBytesOfARecord, 'a' + 2));
  EXPECT_TRUE(ReadTables(*db_, {KeysOfStore(1), KeysOfStore(3)}, cancelled_).ok());
  EXPECT_TRUE(ReadTables(*db_, all, cancelled_).IsCorruption());
  EXPECT_FALSE(HasRecords(*db_, {two}));
  EXPECT_EQ(RangesInTables(*db_, {two}).size(), 1u);
  ASSERT_TRUE(DropTables(*db_, {two}, may_have_dropped_).ok());
  EXPECT_TRUE(ReadTables(*db_, all, cancelled_).ok()) << "the damaged table is dropped";
  cancelled_ = true;
  EXPECT_TRUE(ReadTables(*db_, all, cancelled_).IsIncomplete());
}

TEST_F(TableFilesTest, CompactionNeedsRoomForWhatItWritesAtOnce) {
  EXPECT_GT(BytesOfTables(*db_), kStoreCount * kRecordsOfAStore * kBytesOfARecord);
  const std::uint64_t bytes = BytesOfTables(*db_) + BytesOfWriteBuffers(*db_);
  EXPECT_EQ(BytesToCompact(*db_, {KeysOfStore(2)}), bytes) << "all are of level 1";
  // Below, only what is in reach of the range counts.
  MoveToLevel(3);
  const std::uint64_t buffers = BytesOfWriteBuffers(*db_);
  EXPECT_GT(BytesToCompact(*db_, {KeysOfStore(2)}), buffers + bytes / 4);
  EXPECT_LT(BytesToCompact(*db_, {KeysOfStore(2)}), buffers + bytes / 2);
  EXPECT_EQ(BytesToCompact(*db_, {KeysOfStore(4)}), buffers);
  const std::vector<KeyRange> two_and_four = {KeysOfStore(2), KeysOfStore(4)};
  EXPECT_EQ(BytesToCompact(*db_, two_and_four), BytesToCompact(*db_, {KeysOfStore(2)}));
}

// RocksDB itself writes the buffers if a buffer has a key in the range that it compacts.
TEST_F(TableFilesTest, CompactionLeavesBuffersOfTheNextStoreAlone) {
  for (const std::uint64_t store : {std::uint64_t{2}, std::uint64_t{255}}) {
    ASSERT_TRUE(db_->Put(rocksdb::WriteOptions(), KeysOfStore(store + 1).begin, "first").ok());
    ASSERT_TRUE(CompactTables(*db_, KeysOfStore(store), cancelled_).ok());
    std::uint64_t entries = 0;
    EXPECT_TRUE(db_->GetIntProperty(rocksdb::DB::Properties::kNumEntriesActiveMemTable, &entries));
    EXPECT_GT(entries, 0u) << store;
  }
  ASSERT_TRUE(db_->Put(rocksdb::WriteOptions(),
                       EncodeKey({.store = 255, .kind = RecordKind::kWriter, .writer = "\xff"}),
                       "last")
                  .ok());
  ASSERT_TRUE(CompactTables(*db_, KeysOfStore(255), cancelled_).ok());
  std::uint64_t entries = 1;
  EXPECT_TRUE(db_->GetIntProperty(rocksdb::DB::Properties::kNumEntriesActiveMemTable, &entries));
  EXPECT_EQ(entries, 0u);
}

TEST_F(TableFilesTest, ACancelledCompactionEnds) {
  cancelled_ = true;
  EXPECT_TRUE(CompactTables(*db_, KeysOfStore(2), cancelled_).IsIncomplete());
}

}  // namespace
}  // namespace softlookup
