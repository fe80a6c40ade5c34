#ifndef SOFTLOOKUP_CORE_STORAGE_LOG_DATABASE_H_
#define SOFTLOOKUP_CORE_STORAGE_LOG_DATABASE_H_

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/storage/background_errors.h"
#include "core/storage/commit_log.h"
#include "core/storage/disk_reserve.h"
#include "core/storage/flush_guard.h"
#include "core/storage/log_failure.h"
#include "core/storage/open_database.h"
#include "core/storage/reclaimer.h"
#include "core/storage/synced_sequence.h"

namespace softlookup {

// Keeps the RocksDB database of a log open. After a full disk, opens the database again: for small
// deletions while the disk is full, and for all writes once there is room. LogFailure decides
// whether the database takes writes, or must be opened again.
//
// One thread at a time may call Open(), Write(), DropDeleted(), FreeDiskOf() and MakeReserve(). The
// other functions are thread-safe once Open() has returned.
class LogDatabase {
 public:
  // `env` must outlive this object.
  LogDatabase(std::string directory, RocksdbAccess access, rocksdb::Env* env);
  // Closes the database. First syncs what was written, and writes the write buffers to tables,
  // unless the log has failed.
  ~LogDatabase();
  LogDatabase(const LogDatabase&) = delete;
  LogDatabase& operator=(const LogDatabase&) = delete;

  // Opens the database. Call this first. The errors are those of OpenCommitLog().
  absl::Status Open();

  // Writes `changes`. With Sync::kYes, also syncs them, and all that was written before. Pass true
  // as `makes_room` if `changes` delete records and have at most kFullDiskChangesBytesMax bytes.
  // Such changes are also written on a full disk, and are then synced.
  absl::Status Write(rocksdb::WriteBatch& changes, Sync sync, bool makes_room);
  // Maximum number of bytes of `changes` that Write() writes on a full disk. The room that such
  // changes make may become free only later. So the reserve must have room for many of them.
  static constexpr std::size_t kFullDiskChangesBytesMax = std::size_t{64} << 10;
  static_assert(kFullDiskChangesBytesMax <= DiskReserve::kBytes / 32);

  // Drops tables to free the disk that the records in `deleted` take. reclaimer_ frees the rest
  // later. The last Write() must have deleted these records, with a sync. Errors are ignored: that
  // write is safe. If RocksDB takes no more writes after an error, the next Write() finds that
  // error.
  void DropDeleted(absl::Span<const KeyRange> deleted);

  // Leaves it to reclaimer_ to free the disk that deleted records in `ranges` take.
  void FreeDiskOf(absl::Span<const KeyRange> ranges) { reclaimer_->Add(ranges); }

  // Makes the DiskReserve if it is missing and there is room. Does nothing shortly after an attempt
  // that failed, and while the database is open for a full disk. Call this after writes.
  void MakeReserve();

  // Returns true after a write or work in the background has failed, as CommitLog::has_failed().
  bool has_failed() const { return !failure_.is_none() || !errors_->first().ok(); }

  // Calls use(db), and returns its result. The database stays open meanwhile. If the database is
  // closed, as it can be after a full disk, returns the error that writes get instead.
  absl::Status Use(absl::FunctionRef<absl::Status(rocksdb::DB&)> use) const;

  // As the functions of CommitLog of these names.
  void AllowTableCompaction();
  void AwaitReclaimed() { reclaimer_->AwaitIdle(); }
  std::uint64_t deleted_bytes() const {
    return reclaimer_ == nullptr ? 0 : reclaimer_->deleted_bytes();
  }

  // As CommitLog::CopyTo().
  absl::Status CopyTo(const std::string& directory);

 private:
  rocksdb::Options Options() const;
  // Returns the error of a copy to `directory` that failed with `status`. The message names the
  // directory in which something failed: that of the database, or `directory`.
  absl::Status CopyError(const std::string& directory, const rocksdb::Status& status) const;
  absl::Status OpenToWrite();
  // Begins to use `db`. on_full_disk_ must say whether `db` was opened with FullDiskOptions().
  void UseDatabase(std::unique_ptr<rocksdb::DB> db);

  // If RocksDB's work in the background has failed, passes the first error to failure_. Leaves out
  // an error that would change nothing in failure_: any error once the log is broken, and a full
  // disk once that is known. Sets sync_has_failed_ if a sync may have failed. After an error in the
  // background, RocksDB takes no more writes. Nothing that was written is lost, because it is in
  // the write-ahead log.
  void FindBackgroundError();
  // Lets RocksDB compact tables by itself if the disk has room for that, and otherwise keeps it
  // from beginning. A compaction without room fills the disk, and then no write is taken. db_ must
  // not change meanwhile.
  void LetCompactWhereThereIsRoom();
  LogFailure::Room RoomNow() const;
  // Opens the database again, unless there is too little room or another thread uses it. After a
  // write that had no room, RocksDB's state in RAM cannot be relied on. The state that it reads
  // from disk when it opens the database can be.
  void ReopenIfThereIsRoom();
  void Reopen(bool on_full_disk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Writes `changes` to db_, which must be one that takes writes.
  absl::Status WriteToOpen(rocksdb::WriteBatch& changes, Sync sync);
  // Writes and syncs `changes` while the disk is full. They must have at most
  // kFullDiskChangesBytesMax bytes. The database still takes no other changes afterwards, until it
  // is opened again with room. Refuses `changes` if a sync has failed. The kernel may then have
  // dropped bytes of the write-ahead log that are not on disk, and a second sync would succeed
  // without them. Opening the database with room helps, because it writes the changes of that log
  // to tables.
  absl::Status WriteOnFullDisk(rocksdb::WriteBatch& changes);
  void MarkSynced();

  const std::string directory_;
  const RocksdbAccess access_;
  rocksdb::Env* const env_;
  const std::unique_ptr<rocksdb::Env> database_env_;  // env_ with HideErrorsOfEmptyTables().
  const std::shared_ptr<BackgroundErrors> errors_ = std::make_shared<BackgroundErrors>();
  rocksdb::FileLock* lock_ = nullptr;  // Held if access_ is kRead.
  SyncedSequence synced_sequence_;
  DiskReserve reserve_;
  absl::Time next_reserve_time_ = absl::InfinitePast();  // MakeReserve() tries no earlier.
  // Write() holds it exclusively while it changes db_. Nothing else changes db_ once Open() has
  // returned. Functions that are thread-safe hold it shared while they use db_. After a full disk
  // db_ is null if it could not be opened again.
  mutable absl::Mutex mutex_;
  std::unique_ptr<rocksdb::DB> db_;
  FlushGuard flush_guard_{errors_};  // For db_.
  // Whether db_ was opened with FullDiskOptions(). mutex_ protects it as it protects db_.
  bool on_full_disk_ = false;
  const std::unique_ptr<Reclaimer> reclaimer_;  // Works on db_. Null if access_ is kRead.
  // Only Open(), Write() and DropDeleted() change failure_. Only these three and the destructor use
  // the three members declared next.
  LogFailure failure_;
  std::uint64_t last_sequence_ = 0;  // RocksDB's number of the last change that was written.
  bool has_unsynced_ = false;        // Whether changes were written since the last sync.
  // Whether a sync of the write-ahead log has failed since db_ was opened.
  bool sync_has_failed_ = false;
  std::atomic<bool> compacts_{false};  // Whether AllowTableCompaction() was called.
  // What LetCompactWhereThereIsRoom() found last, and when it has to look again.
  absl::Mutex room_mutex_;
  bool has_room_to_compact_ ABSL_GUARDED_BY(room_mutex_) = false;
  std::uint64_t seen_tables_ ABSL_GUARDED_BY(room_mutex_) = 0;  // VersionOfTables() then.
  absl::Time next_look_at_room_ ABSL_GUARDED_BY(room_mutex_) = absl::InfinitePast();
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_LOG_DATABASE_H_
