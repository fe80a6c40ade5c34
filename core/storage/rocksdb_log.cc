#include "core/storage/rocksdb_log.h"

#include <rocksdb/db.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/status_macros.h"
#include "core/storage/background_errors.h"
#include "core/storage/disk_reserve.h"
#include "core/storage/flush_guard.h"
#include "core/storage/log_failure.h"
#include "core/storage/open_database.h"
#include "core/storage/reclaimer.h"
#include "core/storage/records.h"
#include "core/storage/rocksdb_errors.h"
#include "core/storage/synced_sequence.h"
#include "core/storage/table_files.h"

namespace softlookup {
namespace {

rocksdb::Slice ToSlice(absl::string_view bytes) { return {bytes.data(), bytes.size()}; }
absl::string_view FromSlice(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// Most bytes of changes that are written on a full disk. They make room by what they delete, but
// maybe later, so the reserve has to be enough for many of them.
constexpr std::size_t kFullDiskChangesBytesMax = std::size_t{64} << 10;
static_assert(kFullDiskChangesBytesMax <= DiskReserve::kBytes / 32);

// How often the log at most tries to make a reserve that it lacks.
constexpr absl::Duration kReserveInterval = absl::Seconds(30);

class RocksdbBatch final : public LogBatch {
 public:
  void Put(absl::string_view key, absl::string_view value) override {
    batch_.Put(ToSlice(key), ToSlice(value));
  }
  void Delete(absl::string_view key) override { batch_.Delete(ToSlice(key)); }
  void DeleteRange(absl::string_view begin, absl::string_view end) override {
    batch_.DeleteRange(ToSlice(begin), ToSlice(end));
    deleted_.push_back({.begin = std::string(begin), .end = std::string(end)});
  }
  rocksdb::WriteBatch& batch() { return batch_; }
  // The ranges that the batch deletes.
  const std::vector<KeyRange>& deleted() const { return deleted_; }

 private:
  rocksdb::WriteBatch batch_;
  std::vector<KeyRange> deleted_;
};

// Keeps the log in a RocksDB database. LogFailure decides whether the database takes writes, or
// must be opened again.
class RocksdbLog final : public CommitLog {
 public:
  RocksdbLog(std::string directory, RocksdbAccess access, rocksdb::Env* env)
      : directory_(std::move(directory)),
        access_(access),
        env_(env),
        synced_sequence_(absl::StrCat(directory_, "/", kSyncedName)),
        reserve_(absl::StrCat(directory_, "/", kReserveName)),
        reclaimer_(access == RocksdbAccess::kWrite
                       ? std::make_unique<Reclaimer>(
                             *env, directory_,
                             [this](rocksdb::DB& db, const std::atomic<bool>& cancelled) {
                               return flush_guard_.Flush(db, cancelled);
                             })
                       : nullptr) {}
  ~RocksdbLog() override {
    if (lock_ != nullptr) env_->UnlockFile(lock_);
    if (access_ == RocksdbAccess::kRead || db_ == nullptr || !failure_.is_none()) return;
    // Syncs what was committed without a sync, so that a crash of the machine after a clean stop
    // loses nothing. Errors are ignored, because these writes were acknowledged as not yet synced.
    if (has_unsynced_ && db_->SyncWAL().ok()) MarkSynced();
    // Writes what is in RAM to tables, so that the next start has nothing to replay. If there is no
    // room for the tables, the next start replays the write-ahead log.
    flush_guard_.FlushBlockingWrites(*db_).PermitUncheckedError();
  }

  // Opens the database. Call this first, before other threads use the log.
  absl::Status Open() {
    if (access_ == RocksdbAccess::kRead) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(
          db_, OpenDatabaseToRead(Options(), directory_, synced_sequence_, lock_));
    } else {
      SOFTLOOKUP_RETURN_IF_ERROR(OpenToWrite());
    }
    SOFTLOOKUP_ASSIGN_OR_RETURN(const bool has_format, ReadFormat(*db_));
    if (has_format) return absl::OkStatus();
    if (access_ == RocksdbAccess::kRead) return DamagedError("it does not say what format it has");
    RocksdbBatch batch;
    batch.Put(FormatKey(), EncodeFormat());
    return Commit(batch, Sync::kYes);
  }

  std::unique_ptr<LogBatch> NewBatch() override { return std::make_unique<RocksdbBatch>(); }

  absl::Status Commit(LogBatch& batch, Sync sync) override {
    rocksdb::WriteBatch& changes = static_cast<RocksdbBatch&>(batch).batch();
    const std::vector<KeyRange>& deleted = static_cast<RocksdbBatch&>(batch).deleted();
    // Files are dropped after the write. If the write could be lost then, a part of the records
    // would be gone, and the rest would not.
    if (!deleted.empty()) sync = Sync::kYes;
    if (changes.Count() == 0 && sync == Sync::kNo) return absl::OkStatus();
    // After an error in the background RocksDB takes no more writes. Nothing that was committed is
    // lost, because it is in the write-ahead log. Room helps only against the error of a full disk.
    if (const rocksdb::Status error = errors_->first();
        !error.ok() &&
        (failure_.is_none() || (failure_.is_full_disk() && db_ != nullptr && !error.IsNoSpace()))) {
      // A backup syncs the log, too.
      if (failure_.is_none() && errors_->has(rocksdb::BackgroundErrorReason::kWriteCallback)) {
        sync_has_failed_ = true;
      }
      failure_.OnError(error);
    }
    if (failure_.is_full_disk()) ReopenIfThereIsRoom();
    absl::Status status = failure_.is_none() ? Write(changes, sync) : failure_.status();
    const bool makes_room = !deleted.empty() && changes.GetDataSize() <= kFullDiskChangesBytesMax;
    if (failure_.is_full_disk() && makes_room) status = WriteOnFullDisk(changes);
    if (status.ok() && !deleted.empty()) DropDeleted(deleted);
    if (status.ok()) MakeReserve();
    return status;
  }

  bool has_failed() const override { return !failure_.is_none() || !errors_->first().ok(); }

  absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const override {
    absl::ReaderMutexLock lock(&mutex_);
    if (db_ == nullptr) return failure_.status();
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    options.fill_cache = false;
    const rocksdb::Slice upper = ToSlice(end);
    options.iterate_upper_bound = &upper;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
    for (it->Seek(ToSlice(begin)); it->Valid(); it->Next()) {
      SOFTLOOKUP_RETURN_IF_ERROR(visit(FromSlice(it->key()), FromSlice(it->value())));
    }
    return it->status().ok() ? absl::OkStatus() : ReadError(it->status());
  }

  void BeginCompaction() override {
    absl::ReaderMutexLock lock(&mutex_);
    compacts_ = true;
    // An error is ignored: compaction then begins when the server starts again. After a full disk,
    // it begins when the database is opened again.
    if (!on_full_disk_) {
      db_->EnableAutoCompaction({db_->DefaultColumnFamily()}).PermitUncheckedError();
    }
    reclaimer_->AllowCompaction();
  }

  std::string LastKeyInTables() const override {
    absl::ReaderMutexLock lock(&mutex_);
    return db_ == nullptr ? "" : softlookup::LastKeyInTables(*db_);
  }

  std::vector<KeyRange> RangesInTables(absl::Span<const KeyRange> ranges) const override {
    absl::ReaderMutexLock lock(&mutex_);
    if (db_ == nullptr) return {};
    return softlookup::RangesInTables(*db_, ranges);
  }

  absl::Status ReadTables(absl::Span<const KeyRange> ranges) const override {
    absl::ReaderMutexLock lock(&mutex_);
    if (db_ == nullptr) return failure_.status();
    const std::atomic<bool> never{false};
    const rocksdb::Status status = softlookup::ReadTables(*db_, ranges, never);
    return status.ok() ? absl::OkStatus() : ReadError(status);
  }

  void AwaitReclaimed() override { reclaimer_->AwaitIdle(); }

  absl::Status VerifyChecksums() const override {
    absl::ReaderMutexLock lock(&mutex_);
    if (db_ == nullptr) return failure_.status();
    const rocksdb::Status status = db_->VerifyChecksum();
    return status.ok() ? absl::OkStatus() : ReadError(status);
  }

  absl::Status CopyTo(const std::string& directory) override {
    absl::ReaderMutexLock lock(&mutex_);
    if (db_ == nullptr) return failure_.status();
    // The checkpoint writes the buffers to tables, also if the log has failed. So that begins here.
    rocksdb::Status status = flush_guard_.BeginFlush(*db_);
    if (status.IsTryAgain()) status = rocksdb::Status::OK();  // It would have to wait.
    rocksdb::Checkpoint* made = nullptr;
    if (status.ok()) status = rocksdb::Checkpoint::Create(db_.get(), &made);
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
    if (status.ok()) status = checkpoint->CreateCheckpoint(directory);
    if (status.ok()) return absl::OkStatus();
    return UnavailableError(absl::StrCat("cannot copy the data directory to ", directory), status);
  }

 private:
  void MarkSynced() {
    synced_sequence_.Set(last_sequence_);
    has_unsynced_ = false;
  }

  rocksdb::Options Options() const {
    rocksdb::Options options = LogOptions(env_, errors_);
    if (compacts_ && !reclaimer_->has_found_damage()) options.disable_auto_compactions = false;
    return options;
  }

  // Opens the database to write when the log is opened.
  absl::Status OpenToWrite() {
    absl::StatusOr<std::unique_ptr<rocksdb::DB>> db =
        OpenDatabase(Options(), directory_, synced_sequence_);
    if (IsFullDiskError(db.status())) {
      // Stores that are on a full disk can be read, and can be deleted.
      reserve_.Release();
      if (const rocksdb::Status status = SyncLogFiles(*env_, directory_); !status.ok()) {
        return UnavailableError(absl::StrCat("cannot sync the data directory ", directory_),
                                status);
      }
      db = OpenDatabase(FullDiskOptions(Options()), directory_, synced_sequence_);
      on_full_disk_ = db.ok();
    }
    SOFTLOOKUP_RETURN_IF_ERROR(db.status());
    UseDatabase(*std::move(db));
    last_sequence_ = db_->GetLatestSequenceNumber();
    if (on_full_disk_) failure_.OnTooLittleRoom(FreeBytes(*env_, directory_), kRoomToReopen);
    return absl::OkStatus();
  }

  // Begins to use `db`. on_full_disk_ says how it was opened.
  void UseDatabase(std::unique_ptr<rocksdb::DB> db) {
    db_ = std::move(db);
    if (on_full_disk_) {
      reclaimer_->Attach(*db_, /*spare_bytes=*/0);
    } else {
      reclaimer_->Attach(*db_, kRoomToReopen);
      next_reserve_time_ = absl::InfinitePast();
      MakeReserve();
    }
  }

  // Makes the reserve if it is missing and there is room. Tries seldom.
  void MakeReserve() {
    if (on_full_disk_ || reserve_.is_held()) return;
    const absl::Time now = absl::Now();
    if (now < next_reserve_time_) return;
    next_reserve_time_ = now + kReserveInterval;
    reserve_.Make(FreeBytes(*env_, directory_));
  }

  // Frees the disk that `deleted` takes. The last write must have deleted it. Errors are ignored:
  // that write is safe, and `errors_` has the errors after which RocksDB takes no more.
  void DropDeleted(absl::Span<const KeyRange> deleted) {
    bool may_have_dropped = false;
    reclaimer_->Reclaim(deleted, may_have_dropped).PermitUncheckedError();
    // The deletion may have gone to a table and been dropped with it, but not all that it deleted.
    if (!may_have_dropped || !errors_->first().ok() || !HasRecords(*db_, deleted)) return;
    rocksdb::WriteBatch again;
    for (const KeyRange& range : deleted) again.DeleteRange(range.begin, range.end);
    Write(again, Sync::kYes).IgnoreError();
  }

  // Writes `changes`, and counts them as committed. db_ must be one that takes writes.
  absl::Status Write(rocksdb::WriteBatch& changes, Sync sync) {
    rocksdb::Status status;
    if (changes.Count() > 0) {
      status = flush_guard_.Write(*db_, changes);
      has_unsynced_ = true;
    }
    if (status.ok() && sync == Sync::kYes && has_unsynced_) {
      // By itself, so that it is known what failed.
      status = db_->SyncWAL();
      // RocksDB then notes in its manifest what it synced. If only that has no room, the changes
      // are safe, and the next Commit() finds the error in `errors_`.
      using Reason = rocksdb::BackgroundErrorReason;
      if (status.IsNoSpace() && errors_->has(Reason::kManifestWrite) &&
          !errors_->has(Reason::kWriteCallback)) {
        status = rocksdb::Status::OK();
      }
      sync_has_failed_ = !status.ok();
    }
    if (!status.ok()) {
      failure_.OnError(status);
      return failure_.status();
    }
    last_sequence_ = db_->GetLatestSequenceNumber();
    if (sync == Sync::kYes && has_unsynced_) MarkSynced();
    return absl::OkStatus();
  }

  // Writes and syncs `changes` while the disk is full. They must have at most
  // kFullDiskChangesBytesMax. The log still takes no other changes afterwards, until it is opened
  // again with room. Takes none after a failed sync: the kernel may have dropped what it had of the
  // write-ahead log, and a second sync would succeed. The log must then be written to tables.
  absl::Status WriteOnFullDisk(rocksdb::WriteBatch& changes) {
    absl::Status status = failure_.status();
    // The database may have been opened for this already. But then what was to free disk in the
    // background may have failed since, and the database has to be opened once more.
    for (int attempt = 0; attempt < 2 && failure_.is_full_disk() && !sync_has_failed_; ++attempt) {
      if (attempt > 0 || !on_full_disk_ || !errors_->first().ok()) {
        if (!mutex_.TryLock()) return status;  // Another thread copies or reads the database.
        reserve_.Release();
        Reopen(/*on_full_disk=*/true);
        mutex_.Unlock();
        if (!failure_.is_none()) {
          status = failure_.status();
          continue;
        }
      }
      status = Write(changes, Sync::kYes);
      if (status.ok()) {
        failure_.OnTooLittleRoom(FreeBytes(*env_, directory_), kRoomToReopen);
        break;
      }
    }
    return status;
  }

  // Opens the database again, unless there is too little room or another thread uses it. After a
  // write that had no room, RocksDB's state in RAM cannot be relied on. The state that it reads
  // from disk when it opens the database can be.
  void ReopenIfThereIsRoom() {
    const std::uint64_t room = FreeBytes(*env_, directory_);
    if (room < kRoomToReopen) return failure_.OnTooLittleRoom(room, kRoomToReopen);
    if (!mutex_.TryLock()) return;  // Another thread copies or reads the database.
    Reopen(/*on_full_disk=*/false);
    mutex_.Unlock();
  }

  void Reopen(bool on_full_disk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    reclaimer_->Detach();
    db_ = nullptr;
    on_full_disk_ = false;
    errors_->Clear();
    if (on_full_disk) {
      // RocksDB keeps the write-ahead logs that it finds, and syncs only the one that it adds. What
      // is acknowledged as synced follows what is in the others, so they must be safe first. After
      // a failed sync it is unknown what the kernel has of a file.
      if (const rocksdb::Status status = SyncLogFiles(*env_, directory_); !status.ok()) {
        return failure_.OnError(rocksdb::Status::IOError(status.ToString()));
      }
    }
    absl::StatusOr<std::unique_ptr<rocksdb::DB>> db = OpenDatabase(
        on_full_disk ? FullDiskOptions(Options()) : Options(), directory_, synced_sequence_);
    if (!db.ok()) return failure_.OnReopened(db.status(), last_sequence_);
    on_full_disk_ = on_full_disk;
    sync_has_failed_ = false;
    UseDatabase(*std::move(db));
    failure_.OnReopened(db_->GetLatestSequenceNumber(), last_sequence_);
  }

  const std::string directory_;
  const RocksdbAccess access_;
  rocksdb::Env* const env_;
  const std::shared_ptr<BackgroundErrors> errors_ = std::make_shared<BackgroundErrors>();
  rocksdb::FileLock* lock_ = nullptr;  // Held if access_ is kRead.
  SyncedSequence synced_sequence_;
  DiskReserve reserve_;
  absl::Time next_reserve_time_ = absl::InfinitePast();  // As reserve_, only Commit() uses it.
  // Held exclusively to change db_, and shared to use db_ outside of Commit(). Once the log is
  // open, only Commit() changes db_. After a full disk db_ is null if it could not be opened again.
  mutable absl::Mutex mutex_;
  std::unique_ptr<rocksdb::DB> db_;
  FlushGuard flush_guard_{errors_};  // For db_.
  bool on_full_disk_ = false;        // Whether db_ was opened with FullDiskOptions(). As db_.
  const std::unique_ptr<Reclaimer> reclaimer_;  // Works on db_. Null if access_ is kRead.
  LogFailure failure_;                          // Only Commit() changes it.
  // Only Open(), Commit() and the destructor use last_sequence_ and has_unsynced_.
  std::uint64_t last_sequence_ = 0;  // RocksDB's number of the last change that was committed.
  bool has_unsynced_ = false;        // Whether changes were written since the last sync.
  // Whether a sync of the write-ahead log has failed since db_ was opened. Only Commit() uses it.
  bool sync_has_failed_ = false;
  std::atomic<bool> compacts_{false};
};

}  // namespace

absl::StatusOr<std::unique_ptr<CommitLog>> OpenRocksdbLog(const std::string& directory,
                                                          RocksdbAccess access, rocksdb::Env* env) {
  auto log = std::make_unique<RocksdbLog>(directory, access, env);
  SOFTLOOKUP_RETURN_IF_ERROR(log->Open());
  return log;
}

absl::StatusOr<std::unique_ptr<CommitLog>> OpenCommitLog(const std::string& directory) {
  if (const std::error_code error = MakeDirectories(directory)) {
    return MakeError(reasons::kStorageFailed, absl::StrCat("cannot make the data directory ",
                                                           directory, ": ", error.message()));
  }
  return OpenRocksdbLog(directory, RocksdbAccess::kWrite, rocksdb::Env::Default());
}

absl::StatusOr<std::unique_ptr<const CommitLog>> OpenCommitLogToRead(const std::string& directory) {
  absl::Status damage;
  if (!HasDatabase(directory, RocksdbAccess::kRead, damage)) {
    if (!damage.ok()) return damage;
    std::error_code error;
    return MakeError(reasons::kStorageFailed, absl::StrCat("there is no data directory ", directory,
                                                           std::filesystem::exists(directory, error)
                                                               ? ": it has none of the files of one"
                                                               : ""));
  }
  return OpenRocksdbLog(directory, RocksdbAccess::kRead, rocksdb::Env::Default());
}

}  // namespace softlookup
