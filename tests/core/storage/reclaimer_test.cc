#include "core/storage/reclaimer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/storage/background_errors.h"
#include "core/storage/open_database.h"
#include "core/storage/synced_sequence.h"
#include "core/storage/table_files.h"
#include "tests/testing/damage_table.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;

constexpr std::uint64_t kRecordBytes = 10'000;
constexpr std::uint64_t kNoSpare = 0;

rocksdb::Status FlushDatabase(rocksdb::DB& db, const std::atomic<bool>& /*cancelled*/) {
  return db.Flush(rocksdb::FlushOptions());
}

// Keeps compactions from beginning until Open(). Open from the start.
class CompactionGate final : public rocksdb::EventListener {
 public:
  void OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override {
    absl::MutexLock lock(&mutex_);
    is_met_ = true;
    mutex_.Await(absl::Condition(&is_open_));
  }
  void Close() {
    absl::MutexLock lock(&mutex_);
    is_met_ = is_open_ = false;
  }
  void AwaitMet() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_met_));
  }
  void Open() {
    absl::MutexLock lock(&mutex_);
    is_open_ = true;
  }

 private:
  absl::Mutex mutex_;
  bool is_met_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = true;
};

// The file system, with as much room as the test says.
class RoomyEnv final : public rocksdb::EnvWrapper {
 public:
  RoomyEnv() : EnvWrapper(rocksdb::Env::Default()) {}
  const char* Name() const override { return "RoomyEnv"; }
  rocksdb::Status GetFreeSpace(const std::string& /*path*/, std::uint64_t* free) override {
    *free = free_bytes;
    return rocksdb::Status::OK();
  }

  std::atomic<std::uint64_t> free_bytes{0};
};

// A database with records of stores.
class ReclaimerTest : public ::testing::Test {
 protected:
  ReclaimerTest() { OpenAgain(); }

  void OpenAgain() {
    db_ = nullptr;
    rocksdb::Options options =
        LogOptions(rocksdb::Env::Default(), std::make_shared<BackgroundErrors>());
    options.listeners.push_back(gate_);
    auto db = OpenDatabase(options, directory_.path(),
                           SyncedSequence(directory_.path() + "/" + kSyncedName));
    EXPECT_THAT(db, IsOk());
    db_ = *std::move(db);
  }

  // Puts records of about `bytes` in all.
  void Put(std::uint64_t store, std::uint64_t bytes) {
    const std::string value(kRecordBytes, static_cast<char>('a' + store));
    for (std::uint64_t i = 0; i < bytes / kRecordBytes; ++i) {
      const std::string key = EncodeKey({.store = store, .kind = RecordKind::kRows, .number = i});
      ASSERT_TRUE(db_->Put(rocksdb::WriteOptions(), key, value).ok());
    }
  }
  void Flush() { ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok()); }

  void Delete(std::uint64_t store, Reclaimer& reclaimer) {
    const KeyRange keys = KeysOfStore(store);
    ASSERT_TRUE(
        db_->DeleteRange(rocksdb::WriteOptions(), db_->DefaultColumnFamily(), keys.begin, keys.end)
            .ok());
    EXPECT_TRUE(reclaimer.Reclaim(std::vector<KeyRange>{keys}, may_have_dropped_).ok());
  }

  std::uint64_t BytesOfStore(std::uint64_t store) const {
    return BytesIn(*db_, KeysOfStore(store));
  }

  std::uint64_t RecordsOf(std::uint64_t store) const {
    const KeyRange keys = KeysOfStore(store);
    std::uint64_t count = 0;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions()));
    for (it->Seek(keys.begin); it->Valid() && it->key().compare(keys.end) < 0; it->Next()) ++count;
    EXPECT_TRUE(it->status().ok());
    return count;
  }

  const softlookup::testing::TemporaryDirectory directory_;
  const std::shared_ptr<CompactionGate> gate_ = std::make_shared<CompactionGate>();
  std::unique_ptr<rocksdb::DB> db_;
  bool may_have_dropped_ = false;  // By the last Delete().
};

TEST_F(ReclaimerTest, WhatIsDeletedIsCompactedWhenItIsATenth) {
  for (const std::uint64_t store : {1, 2, 3}) Put(store, 4'000'000);
  Put(4, 1'100'000);
  Flush();
  Reclaimer reclaimer(*rocksdb::Env::Default(), directory_.path(), FlushDatabase);
  reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
  reclaimer.AllowCompaction();
  Delete(4, reclaimer);
  reclaimer.AwaitIdle();
  EXPECT_EQ(RecordsOf(4), 0u);
  EXPECT_GT(BytesOfStore(4), 1'000'000u) << "less than a tenth";
  Delete(2, reclaimer);
  reclaimer.AwaitIdle();
  for (const std::uint64_t store : {2, 4}) {
    EXPECT_EQ(RecordsOf(store), 0u);
    EXPECT_LT(BytesOfStore(store), 100'000u);
  }
  for (const std::uint64_t store : {1, 3}) EXPECT_EQ(RecordsOf(store), 400u);
  EXPECT_LT(BytesOfTables(*db_), 10'000'000u);
}

// Whoever deletes a store to make room waits for it.
TEST_F(ReclaimerTest, OnAFullDiskLessThanATenthIsCompacted) {
  for (const std::uint64_t store : {1, 2, 3}) Put(store, 4'000'000);
  Put(4, 1'100'000);
  Flush();
  Reclaimer reclaimer(*rocksdb::Env::Default(), directory_.path(), FlushDatabase);
  reclaimer.Attach(*db_, Reclaimer::Disk::kFull, kNoSpare);
  reclaimer.AllowCompaction();
  Delete(4, reclaimer);
  reclaimer.AwaitIdle();
  EXPECT_LT(BytesOfStore(4), 100'000u);
  for (const std::uint64_t store : {1, 2, 3}) EXPECT_EQ(RecordsOf(store), 400u);
}

TEST_F(ReclaimerTest, WhatIsOnlyInTheWriteBufferGoes) {
  Put(1, 1'000'000);
  Put(2, 4'000'000);
  Reclaimer reclaimer(*rocksdb::Env::Default(), directory_.path(), FlushDatabase);
  reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
  reclaimer.AllowCompaction();
  Delete(2, reclaimer);
  reclaimer.AwaitIdle();
  EXPECT_LT(BytesOfWriteBuffers(*db_), 1'000'000u);
  EXPECT_GT(BytesOfTables(*db_), 1'000'000u);
  EXPECT_LT(BytesOfTables(*db_), 2'000'000u);
  EXPECT_EQ(RecordsOf(1), 100u);
}

TEST_F(ReclaimerTest, NothingIsCompactedBeforeThatIsAllowed) {
  Put(1, 1'000'000);
  Put(2, 4'000'000);
  Flush();
  Reclaimer reclaimer(*rocksdb::Env::Default(), directory_.path(), FlushDatabase);
  reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
  Delete(2, reclaimer);
  reclaimer.AwaitIdle();
  EXPECT_GT(BytesOfStore(2), 3'900'000u);
  EXPECT_GT(reclaimer.deleted_bytes(), 3'900'000u);
  reclaimer.AllowCompaction();
  reclaimer.AwaitIdle();
  EXPECT_EQ(reclaimer.deleted_bytes(), 0u);
  EXPECT_LT(BytesOfStore(2), 100'000u);
}

TEST_F(ReclaimerTest, WriteBuffersAreLeftAloneBeforeCompactionIsAllowed) {
  Put(1, 1'000'000);
  Put(2, 4'000'000);
  Reclaimer reclaimer(*rocksdb::Env::Default(), directory_.path(), FlushDatabase);
  reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
  Delete(2, reclaimer);
  reclaimer.AwaitIdle();
  EXPECT_EQ(BytesOfTables(*db_), 0u);
}

TEST_F(ReclaimerTest, NoTablesAreDroppedDuringACompaction) {
  for (const std::uint64_t store : {1, 2, 3}) Put(store, 4'000'000);
  Flush();
  Reclaimer reclaimer(*rocksdb::Env::Default(), directory_.path(), FlushDatabase);
  reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
  reclaimer.AllowCompaction();
  gate_->Close();
  Delete(2, reclaimer);
  gate_->AwaitMet();
  // A table that holds nothing else, and is in no compaction.
  Put(4, 4'000'000);
  Flush();
  std::vector<rocksdb::LiveFileMetaData> tables;
  db_->GetLiveFilesMetaData(&tables);
  Delete(4, reclaimer);
  EXPECT_FALSE(may_have_dropped_);
  std::vector<rocksdb::LiveFileMetaData> still;
  db_->GetLiveFilesMetaData(&still);
  EXPECT_EQ(still.size(), tables.size());
  gate_->Open();
  reclaimer.AwaitIdle();
  for (const std::uint64_t store : {2, 4}) EXPECT_LT(BytesOfStore(store), 100'000u);
  for (const std::uint64_t store : {1, 3}) EXPECT_EQ(RecordsOf(store), 400u);
}

// The buffers need room only for what is not deleted.
TEST_F(ReclaimerTest, WhatIsLeftOfTheWriteBuffersNeedsRoom) {
  Put(1, 1'000'000);
  Put(2, 4'000'000);
  const std::atomic<bool> never{false}, at_once{true};
  EXPECT_GT(BytesKeptOfWriteBuffers(*db_, never), 4'900'000u);
  Flush();
  Put(3, 4'000'000);
  Reclaimer reclaimer(*rocksdb::Env::Default(), directory_.path(), FlushDatabase);
  reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
  Delete(3, reclaimer);
  EXPECT_LT(BytesKeptOfWriteBuffers(*db_, never), 100'000u);
  Put(4, 1'000'000);
  EXPECT_GT(BytesKeptOfWriteBuffers(*db_, never), 900'000u);
  EXPECT_LT(BytesKeptOfWriteBuffers(*db_, never), 1'100'000u);
  EXPECT_EQ(BytesKeptOfWriteBuffers(*db_, at_once), std::uint64_t{1} << 62);
}

TEST_F(ReclaimerTest, NothingIsCompactedWithoutRoomAndTheNextDatabaseGoesOn) {
  Put(1, 1'000'000);
  Put(2, 4'000'000);
  Flush();
  Reclaimer reclaimer(*rocksdb::Env::Default(), directory_.path(), FlushDatabase);
  reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, /*spare_bytes=*/std::uint64_t{1} << 62);
  reclaimer.AllowCompaction();
  Delete(2, reclaimer);
  reclaimer.AwaitIdle();
  EXPECT_GT(BytesOfStore(2), 3'900'000u);
  EXPECT_GT(reclaimer.deleted_bytes(), 3'900'000u);
  EXPECT_GT(reclaimer.needed_bytes(), std::uint64_t{1} << 62);
  reclaimer.Detach();
  OpenAgain();
  reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
  reclaimer.AwaitIdle();
  EXPECT_EQ(reclaimer.needed_bytes(), 0u);
  EXPECT_LT(BytesOfStore(2), 100'000u);
  EXPECT_EQ(RecordsOf(1), 100u);
}

TEST_F(ReclaimerTest, WhatIsDeletedIsFreedOnceThereIsRoomWithoutAnythingElse) {
  for (const bool is_asked : {false, true}) {
    SCOPED_TRACE(is_asked);
    OpenAgain();  // A reclaimer that is gone leaves a database that can only be closed.
    const std::uint64_t kept = is_asked ? 3 : 1, deleted = is_asked ? 4 : 2;
    Put(kept, 1'000'000);
    Put(deleted, 4'000'000);
    Flush();
    RoomyEnv env;
    // If it is not asked to look, it looks by itself.
    Reclaimer reclaimer(env, directory_.path(), FlushDatabase,
                        is_asked ? absl::Hours(1) : absl::Milliseconds(1));
    reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
    reclaimer.AllowCompaction();
    Delete(deleted, reclaimer);
    while (reclaimer.needed_bytes() == 0) reclaimer.AwaitIdle();
    EXPECT_FALSE(reclaimer.IsFreeing(reclaimer.needed_bytes() - 1));
    EXPECT_GT(BytesOfStore(deleted), 3'900'000u);
    env.free_bytes = std::uint64_t{1} << 40;
    if (is_asked) {
      EXPECT_TRUE(reclaimer.IsFreeing(env.free_bytes));
    }
    while (reclaimer.deleted_bytes() > 0) reclaimer.AwaitIdle();
    EXPECT_FALSE(reclaimer.IsFreeing(env.free_bytes));
    EXPECT_LT(BytesOfStore(deleted), 100'000u);
    EXPECT_EQ(RecordsOf(kept), 100u);
  }
}

TEST_F(ReclaimerTest, ManySmallStoresAreAsOneOnceTheyMeet) {
  // None takes a block of a table.
  constexpr std::uint64_t kCount = 100;
  for (std::uint64_t store = 2; store < 2 + kCount; ++store) Put(store, 5 * kRecordBytes);
  Put(1, 1'000'000);
  Flush();
  Reclaimer reclaimer(*rocksdb::Env::Default(), directory_.path(), FlushDatabase);
  reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
  reclaimer.AllowCompaction();
  for (std::uint64_t store = 2; store < 2 + kCount; ++store) Delete(store, reclaimer);
  reclaimer.AwaitIdle();
  EXPECT_LT(BytesOfTables(*db_), 2'500'000u);
  EXPECT_EQ(RecordsOf(1), 100u);
}

// The thread may be anywhere in its work.
TEST_F(ReclaimerTest, ADatabaseIsDetachedAtAnyTime) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t store = 2 + static_cast<std::uint64_t>(round);
    Put(1, 1'000'000);
    Put(store, 4'000'000);
    {
      Reclaimer reclaimer(*rocksdb::Env::Default(), directory_.path(), FlushDatabase);
      reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
      reclaimer.AllowCompaction();
      Delete(store, reclaimer);
    }
    OpenAgain();
    EXPECT_EQ(RecordsOf(1), 100u);
    EXPECT_EQ(RecordsOf(store), 0u);
  }
}

TEST_F(ReclaimerTest, CompactionComesByNoDamage) {
  Put(1, 1'000'000);
  Put(2, 4'000'000);
  Flush();
  const std::string value(kRecordBytes, 'a' + 2);
  softlookup::testing::DamageBytes(softlookup::testing::OnlyTableIn(directory_.path()), value);
  ASSERT_TRUE(db_->EnableAutoCompaction({db_->DefaultColumnFamily()}).ok());
  Reclaimer reclaimer(*rocksdb::Env::Default(), directory_.path(), FlushDatabase);
  reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
  reclaimer.AllowCompaction();
  EXPECT_FALSE(reclaimer.has_found_damage());
  Delete(2, reclaimer);
  reclaimer.AwaitIdle();
  EXPECT_TRUE(reclaimer.has_found_damage());
  EXPECT_TRUE(db_->GetOptions().disable_auto_compactions);
  EXPECT_GT(BytesOfStore(2), 3'900'000u);
  // Tables of level 0, of which RocksDB would compact four.
  for (int i = 0; i < 8; ++i) {
    Put(1, 2'000'000);
    Flush();
  }
  EXPECT_EQ(RecordsOf(1), 200u);
  Delete(1, reclaimer);
  reclaimer.AwaitIdle();
  EXPECT_GT(BytesOfStore(2), 3'900'000u);
  Put(3, 1'000'000);
  EXPECT_EQ(RecordsOf(3), 100u);
}

TEST_F(ReclaimerTest, AFailedDatabaseIsLeftAloneAndAFullDiskUntilMoreIsDeleted) {
  for (const bool is_full : {false, true}) {
    SCOPED_TRACE(is_full);
    OpenAgain();
    for (const std::uint64_t store : {1, 2, 3}) Put(store, 4'000'000);
    Flush();
    int flushes = 0;
    bool fails = true;
    const auto flush = [&](rocksdb::DB& db, const std::atomic<bool>& cancelled) {
      ++flushes;
      if (!fails) return FlushDatabase(db, cancelled);
      return is_full ? rocksdb::Status::NoSpace() : rocksdb::Status::Incomplete();
    };
    Reclaimer reclaimer(*rocksdb::Env::Default(), directory_.path(), flush);
    reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
    reclaimer.AllowCompaction();
    Delete(2, reclaimer);
    reclaimer.AwaitIdle();
    EXPECT_GT(BytesOfStore(2), 3'900'000u);
    const int tried = flushes;
    EXPECT_GT(tried, 0);
    fails = false;
    reclaimer.Detach();
    OpenAgain();
    reclaimer.Attach(*db_, Reclaimer::Disk::kHasRoom, kNoSpare);
    reclaimer.AwaitIdle();
    if (is_full) {
      EXPECT_EQ(flushes, tried);
      Delete(3, reclaimer);
      reclaimer.AwaitIdle();
    }
    EXPECT_LT(BytesOfStore(2), 100'000u);
    EXPECT_EQ(RecordsOf(1), 400u);
  }
}

}  // namespace
}  // namespace softlookup
