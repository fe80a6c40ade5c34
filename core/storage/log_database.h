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

// Keeps the RocksDB database of a log open. After a full disk it opens the database again, so that
// it takes writes once there is room, and before that small deletions. LogFailure decides whether
// the database takes writes, or must be opened again.
//
// One thread at a time may call Open(), Write(), DropDeleted() and MakeReserve(). The other
// functions are thread-safe once Open() has returned.
class LogDatabase {
 public:
  // `env` must outlive this object.
  LogDatabase(std::string directory, RocksdbAccess access, rocksdb::Env* env);
  // Syncs and closes the database.
  ~LogDatabase();
  LogDatabase(const LogDatabase&) = delete;
  LogDatabase& operator=(const LogDatabase&) = delete;

  // Opens the database. Call this first. The errors are those of OpenCommitLog().
  absl::Status Open();

  // Writes `changes`. With Sync::kYes it also syncs them, and all that was written before.
  // `makes_room` says that they delete records and have at most kFullDiskChangesBytesMax. Such
  // changes are also written on a full disk, and synced.
  absl::Status Write(rocksdb::WriteBatch& changes, Sync sync, bool makes_room);
  // Most bytes of changes that are written on a full disk. They make room by what they delete, but
  // maybe later, so the reserve has to be enough for many of them.
  static constexpr std::size_t kFullDiskChangesBytesMax = std::size_t{64} << 10;
  static_assert(kFullDiskChangesBytesMax <= DiskReserve::kBytes / 32);

  // Frees the disk that `deleted` takes. The last Write() must have deleted and synced it. Errors
  // are ignored: that write is safe, and the next Write() finds an error after which RocksDB takes
  // no more.
  void DropDeleted(absl::Span<const KeyRange> deleted);

  // Makes the DiskReserve if it is missing and there is room. Tries seldom. Call it after writes.
  void MakeReserve();

  // Returns true while the database takes no writes because one failed, or work in the background.
  bool has_failed() const { return !failure_.is_none() || !errors_->first().ok(); }

  // Calls use(db), and returns its result. The database stays open meanwhile. After a full disk the
  // database may be closed. Then returns the error of writes, and does not call `use`.
  absl::Status Use(absl::FunctionRef<absl::Status(rocksdb::DB&)> use) const;

  // As CommitLog::BeginCompaction() and CommitLog::AwaitReclaimed().
  void BeginCompaction();
  void AwaitReclaimed() { reclaimer_->AwaitIdle(); }

  // As CommitLog::CopyTo().
  absl::Status CopyTo(const std::string& directory);

 private:
  rocksdb::Options Options() const;
  absl::Status OpenToWrite();
  // Begins to use `db`. on_full_disk_ says how it was opened.
  void UseDatabase(std::unique_ptr<rocksdb::DB> db);

  // Tells failure_ of an error in the background. After one, RocksDB takes no more writes. Nothing
  // that was written is lost, because it is in the write-ahead log.
  void FindBackgroundError();
  // Opens the database again, unless there is too little room or another thread uses it. After a
  // write that had no room, RocksDB's state in RAM cannot be relied on. The state that it reads
  // from disk when it opens the database can be.
  void ReopenIfThereIsRoom();
  void Reopen(bool on_full_disk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Writes `changes` to db_, which must be one that takes writes.
  absl::Status WriteToOpen(rocksdb::WriteBatch& changes, Sync sync);
  // Writes and syncs `changes` while the disk is full. They must have at most
  // kFullDiskChangesBytesMax. The database still takes no other changes afterwards, until it is
  // opened again with room. Takes none after a failed sync: the kernel may have dropped what it had
  // of the write-ahead log, and a second sync would succeed. The write-ahead log must then be
  // written to tables.
  absl::Status WriteOnFullDisk(rocksdb::WriteBatch& changes);
  void MarkSynced();

  const std::string directory_;
  const RocksdbAccess access_;
  rocksdb::Env* const env_;
  const std::shared_ptr<BackgroundErrors> errors_ = std::make_shared<BackgroundErrors>();
  rocksdb::FileLock* lock_ = nullptr;  // Held if access_ is kRead.
  SyncedSequence synced_sequence_;
  DiskReserve reserve_;
  absl::Time next_reserve_time_ = absl::InfinitePast();  // As reserve_, MakeReserve() uses it.
  // Held exclusively to change db_, and shared to use db_ outside of Write(). Once the database is
  // open, only Write() changes db_. After a full disk db_ is null if it could not be opened again.
  mutable absl::Mutex mutex_;
  std::unique_ptr<rocksdb::DB> db_;
  FlushGuard flush_guard_{errors_};  // For db_.
  bool on_full_disk_ = false;        // Whether db_ was opened with FullDiskOptions(). As db_.
  const std::unique_ptr<Reclaimer> reclaimer_;  // Works on db_. Null if access_ is kRead.
  LogFailure failure_;                          // Only Write() changes it.
  // Only Open(), Write() and the destructor use last_sequence_ and has_unsynced_.
  std::uint64_t last_sequence_ = 0;  // RocksDB's number of the last change that was written.
  bool has_unsynced_ = false;        // Whether changes were written since the last sync.
  // Whether a sync of the write-ahead log has failed since db_ was opened. Only Write() uses it.
  bool sync_has_failed_ = false;
  std::atomic<bool> compacts_{false};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_LOG_DATABASE_H_
