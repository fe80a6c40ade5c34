#include "core/storage/rocksdb_log.h"

#include <rocksdb/db.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/status_macros.h"
#include "core/storage/background_errors.h"
#include "core/storage/log_failure.h"
#include "core/storage/open_database.h"
#include "core/storage/records.h"
#include "core/storage/rocksdb_errors.h"
#include "core/storage/synced_sequence.h"

namespace softlookup {
namespace {

rocksdb::Slice ToSlice(absl::string_view bytes) { return {bytes.data(), bytes.size()}; }
absl::string_view FromSlice(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

class RocksdbBatch final : public LogBatch {
 public:
  void Put(absl::string_view key, absl::string_view value) override {
    batch_.Put(ToSlice(key), ToSlice(value));
  }
  void DeleteRange(absl::string_view begin, absl::string_view end) override {
    batch_.DeleteRange(ToSlice(begin), ToSlice(end));
  }
  rocksdb::WriteBatch& batch() { return batch_; }

 private:
  rocksdb::WriteBatch batch_;
};

// Keeps the log in a RocksDB database. LogFailure decides whether the database takes writes, or
// must be opened again.
class RocksdbLog final : public CommitLog {
 public:
  RocksdbLog(std::string directory, RocksdbAccess access, rocksdb::Env* env)
      : directory_(std::move(directory)),
        access_(access),
        env_(env),
        synced_sequence_(absl::StrCat(directory_, "/", kSyncedName)) {}
  ~RocksdbLog() override {
    if (lock_ != nullptr) env_->UnlockFile(lock_);
    if (access_ == RocksdbAccess::kRead || db_ == nullptr || !failure_.is_none()) return;
    // Syncs what was committed without a sync, so that a crash of the machine after a clean stop
    // loses nothing. Errors are ignored, because these writes were acknowledged as not yet synced.
    if (has_unsynced_ && db_->SyncWAL().ok()) MarkSynced();
    // Writes what is in RAM to tables, so that the next start has nothing to replay. If there is no
    // room for the tables, the next start replays the write-ahead log.
    db_->Flush(rocksdb::FlushOptions()).PermitUncheckedError();
  }

  // Opens the database. Call this first, before other threads use the log.
  absl::Status Open() {
    SOFTLOOKUP_ASSIGN_OR_RETURN(
        db_, access_ == RocksdbAccess::kWrite
                 ? OpenDatabase(Options(), directory_, synced_sequence_)
                 : OpenDatabaseToRead(Options(), directory_, synced_sequence_, lock_));
    SOFTLOOKUP_ASSIGN_OR_RETURN(const bool has_format, ReadFormat(*db_));
    last_sequence_ = db_->GetLatestSequenceNumber();
    if (has_format) return absl::OkStatus();
    if (access_ == RocksdbAccess::kRead) return DamagedError("it does not say what format it has");
    RocksdbBatch batch;
    batch.Put(FormatKey(), EncodeFormat());
    return Commit(batch, Sync::kYes);
  }

  std::unique_ptr<LogBatch> NewBatch() override { return std::make_unique<RocksdbBatch>(); }

  absl::Status Commit(LogBatch& batch, Sync sync) override {
    rocksdb::WriteBatch& changes = static_cast<RocksdbBatch&>(batch).batch();
    if (changes.Count() == 0 && sync == Sync::kNo) return absl::OkStatus();
    if (failure_.is_none()) {
      // After an error in the background RocksDB takes no more writes. Nothing that was committed
      // is lost, because it is in the write-ahead log.
      if (const rocksdb::Status error = errors_->first(); !error.ok()) {
        failure_.OnError(error);
      }
    }
    if (failure_.is_full_disk()) ReopenIfThereIsRoom();
    if (!failure_.is_none()) return failure_.status();
    rocksdb::WriteOptions options;
    options.sync = sync == Sync::kYes;
    rocksdb::Status status;
    if (changes.Count() > 0) {
      status = db_->Write(options, &changes);
      has_unsynced_ = true;
    } else if (has_unsynced_) {
      status = db_->SyncWAL();
    }
    if (!status.ok()) {
      failure_.OnError(status);
      return failure_.status();
    }
    last_sequence_ = db_->GetLatestSequenceNumber();
    if (options.sync && has_unsynced_) MarkSynced();
    return absl::OkStatus();
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
    // An error is ignored: compaction then begins when the server starts again.
    db_->EnableAutoCompaction({db_->DefaultColumnFamily()}).PermitUncheckedError();
  }

  absl::Status VerifyChecksums() const override {
    absl::ReaderMutexLock lock(&mutex_);
    if (db_ == nullptr) return failure_.status();
    const rocksdb::Status status = db_->VerifyChecksum();
    return status.ok() ? absl::OkStatus() : ReadError(status);
  }

  absl::Status CopyTo(const std::string& directory) override {
    absl::ReaderMutexLock lock(&mutex_);
    if (db_ == nullptr) return failure_.status();
    rocksdb::Checkpoint* made = nullptr;
    rocksdb::Status status = rocksdb::Checkpoint::Create(db_.get(), &made);
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
    if (compacts_) options.disable_auto_compactions = false;
    return options;
  }

  // Opens the database again, unless there is too little room or another thread uses it. After a
  // write that had no room, RocksDB's state in RAM cannot be relied on. The state that it reads
  // from disk when it opens the database can be.
  void ReopenIfThereIsRoom() {
    if (!HasRoomToReopen(*env_, directory_)) return;
    if (!mutex_.TryLock()) return;  // Another thread copies or reads the database.
    Reopen();
    mutex_.Unlock();
  }

  void Reopen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    db_ = nullptr;
    errors_->Clear();
    absl::StatusOr<std::unique_ptr<rocksdb::DB>> db =
        OpenDatabase(Options(), directory_, synced_sequence_);
    if (!db.ok()) return failure_.OnReopened(db.status(), last_sequence_);
    db_ = *std::move(db);
    failure_.OnReopened(db_->GetLatestSequenceNumber(), last_sequence_);
  }

  const std::string directory_;
  const RocksdbAccess access_;
  rocksdb::Env* const env_;
  const std::shared_ptr<BackgroundErrors> errors_ = std::make_shared<BackgroundErrors>();
  rocksdb::FileLock* lock_ = nullptr;  // Held if access_ is kRead.
  SyncedSequence synced_sequence_;
  // Held exclusively to change db_, and shared to use db_ outside of Commit(). Once the log is
  // open, only Commit() changes db_. After a full disk db_ is null if it could not be opened again.
  mutable absl::Mutex mutex_;
  std::unique_ptr<rocksdb::DB> db_;
  LogFailure failure_;  // Only Commit() changes it.
  // Only Open(), Commit() and the destructor use last_sequence_ and has_unsynced_.
  std::uint64_t last_sequence_ = 0;  // RocksDB's number of the last change that was committed.
  bool has_unsynced_ = false;        // Whether changes were written since the last sync.
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
  if (!HasDatabase(directory, damage)) {
    if (!damage.ok()) return damage;
    return MakeError(reasons::kStorageFailed,
                     absl::StrCat("there is no data directory ", directory));
  }
  return OpenRocksdbLog(directory, RocksdbAccess::kRead, rocksdb::Env::Default());
}

}  // namespace softlookup
