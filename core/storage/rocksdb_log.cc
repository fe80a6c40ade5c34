#include "core/storage/rocksdb_log.h"

#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <cstdarg>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/storage/records.h"
#include "core/storage/synced_mark.h"

namespace softlookup {
namespace {

rocksdb::Slice ToSlice(absl::string_view bytes) { return {bytes.data(), bytes.size()}; }
absl::string_view FromSlice(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

absl::Status UnavailableError(absl::string_view what, const rocksdb::Status& status) {
  return MakeError(reasons::kStorageFailed, absl::StrCat(what, ": ", status.ToString()));
}

absl::Status DamagedError(absl::string_view what) {
  return MakeError(reasons::kDataLoss, absl::StrCat("the data directory is damaged: ", what));
}

absl::Status ReadError(const rocksdb::Status& status) {
  return status.IsCorruption() ? DamagedError(status.ToString())
                               : UnavailableError("cannot read the data directory", status);
}

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

// RocksDB's own log file would lie on the disk that fails, and writing to it after an error fails
// an assertion (7.8.3). What matters is in the errors that it returns.
class NoLogger final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// Notes what fails in the background, and keeps RocksDB from mending it by itself, beside us.
// Thread-safe.
class ErrorListener final : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override {
    absl::MutexLock lock(&mutex_);
    if (error_.ok()) error_ = *error;
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }

  // The first error since the last Clear.
  rocksdb::Status error() const {
    absl::MutexLock lock(&mutex_);
    return error_;
  }
  void Clear() {
    absl::MutexLock lock(&mutex_);
    error_ = rocksdb::Status::OK();
  }

 private:
  mutable absl::Mutex mutex_;
  rocksdb::Status error_ ABSL_GUARDED_BY(mutex_);
};

constexpr std::size_t kWriteBufferBytes = std::size_t{64} << 20;

rocksdb::Options LogOptions(rocksdb::Env* env, const std::shared_ptr<ErrorListener>& listener) {
  rocksdb::Options options;
  options.env = env;
  options.listeners.push_back(listener);
  options.max_bgerror_resume_count = 0;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  options.track_and_verify_wals_in_manifest = true;
  options.compression = rocksdb::kNoCompression;  // Float32 components hardly shrink.
  options.write_buffer_size = kWriteBufferBytes;
  options.max_background_jobs = 2;
  options.info_log = std::make_shared<NoLogger>();
  rocksdb::BlockBasedTableOptions table;
  // Rows are read once, when a store is loaded.
  table.no_block_cache = true;
  // The kernel reads ahead, and a block is copied once less.
  table.max_auto_readahead_size = 0;
  options.advise_random_on_open = false;
  table.block_size = std::size_t{64} << 10;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::Status OpenOnce(const rocksdb::Options& options, const std::string& directory,
                         RocksdbAccess access, std::unique_ptr<rocksdb::DB>& database) {
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = access == RocksdbAccess::kWrite
                                     ? rocksdb::DB::Open(options, directory, &db)
                                     : rocksdb::DB::OpenForReadOnly(options, directory, &db);
  database.reset(db);
  return status;
}

absl::Status CheckMark(const rocksdb::DB& db, const SyncedMark& mark) {
  const std::uint64_t found = db.GetLatestSequenceNumber(), synced = mark.Read();
  if (found >= synced) return absl::OkStatus();
  return DamagedError(absl::StrCat("its log ends after ", found, " records, but ", synced,
                                   " had been written and acknowledged"));
}

absl::Status OpenError(const std::string& directory, const rocksdb::Status& status) {
  // RocksDB has no code of its own for this.
  if (status.IsIOError() && absl::StrContains(status.ToString(), "LOCK")) {
    return MakeError(reasons::kDirectoryInUse,
                     absl::StrCat("another process has the data directory ", directory, " open"));
  }
  if (status.IsCorruption()) return ReadError(status);
  return UnavailableError(absl::StrCat("cannot open the data directory ", directory), status);
}

// With all that `mark` says was synced, or not at all.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDatabase(
    const std::string& directory, RocksdbAccess access, rocksdb::Env* env,
    const std::shared_ptr<ErrorListener>& listener, const SyncedMark& mark) {
  rocksdb::Options options = LogOptions(env, listener);
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;
  std::unique_ptr<rocksdb::DB> db;
  rocksdb::Status status = OpenOnce(options, directory, access, db);
  if (status.IsCorruption()) {
    // The write-ahead log does not end well. What comes before is whole, and enough if it has all
    // that was synced; looked at first, as opening it to write throws the rest away.
    options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
    status = OpenOnce(options, directory, RocksdbAccess::kRead, db);
    if (status.ok()) SOFTLOOKUP_RETURN_IF_ERROR(CheckMark(*db, mark));
    if (status.ok() && access == RocksdbAccess::kWrite) {
      db = nullptr;
      status = OpenOnce(options, directory, access, db);
    }
  }
  if (!status.ok()) return OpenError(directory, status);
  SOFTLOOKUP_RETURN_IF_ERROR(CheckMark(*db, mark));
  return db;
}

class RocksdbLog final : public CommitLog {
 public:
  RocksdbLog(std::string directory, RocksdbAccess access, rocksdb::Env* env)
      : directory_(std::move(directory)),
        access_(access),
        env_(env),
        synced_(directory_ + "/SYNCED") {}
  ~RocksdbLog() override {
    if (lock_ != nullptr) env_->UnlockFile(lock_);
    // A server that is stopped leaves nothing to chance; whoever needed more has asked for it.
    if (has_unsynced_ && state_ == State::kWorks && db_->SyncWAL().ok()) MarkSynced();
  }

  // Before anything else, so nobody else uses it yet.
  absl::Status Open() {
    if (access_ == RocksdbAccess::kRead) {
      // RocksDB keeps others away only from who writes.
      const rocksdb::Status status = env_->LockFile(directory_ + "/LOCK", &lock_);
      if (!status.ok()) return OpenError(directory_, status);
    }
    SOFTLOOKUP_ASSIGN_OR_RETURN(db_, OpenDatabase(directory_, access_, env_, errors_, synced_));
    SOFTLOOKUP_RETURN_IF_ERROR(CheckOrWriteFormat());
    last_sequence_ = db_->GetLatestSequenceNumber();
    return absl::OkStatus();
  }

  std::unique_ptr<LogBatch> NewBatch() override { return std::make_unique<RocksdbBatch>(); }

  absl::Status Commit(LogBatch& batch, Sync sync) override {
    rocksdb::WriteBatch& changes = static_cast<RocksdbBatch&>(batch).batch();
    if (changes.Count() == 0 && sync == Sync::kNo) return absl::OkStatus();
    if (state_ == State::kFull) ReopenIfThereIsRoom();
    if (state_ == State::kWorks) {
      // What was committed is in the write-ahead log, but RocksDB will not go on.
      if (const rocksdb::Status error = errors_->error(); !error.ok()) {
        absl::MutexLock lock(&mutex_);
        SetFailure(error);
      }
    }
    if (state_ != State::kWorks) return failure_;
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
      absl::MutexLock lock(&mutex_);
      SetFailure(status);
      return failure_;
    }
    last_sequence_ = db_->GetLatestSequenceNumber();
    if (options.sync && has_unsynced_) MarkSynced();
    return absl::OkStatus();
  }

  absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const override {
    absl::ReaderMutexLock lock(&mutex_);
    if (db_ == nullptr) return failure_;
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

  absl::Status VerifyChecksums() const override {
    absl::ReaderMutexLock lock(&mutex_);
    const rocksdb::Status status = db_->VerifyChecksum();
    return status.ok() ? absl::OkStatus() : ReadError(status);
  }

  absl::Status CopyTo(const std::string& directory) override {
    absl::ReaderMutexLock lock(&mutex_);
    if (db_ == nullptr) return failure_;
    rocksdb::Checkpoint* made = nullptr;
    rocksdb::Status status = rocksdb::Checkpoint::Create(db_.get(), &made);
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
    if (status.ok()) status = checkpoint->CreateCheckpoint(directory);
    if (status.ok()) return absl::OkStatus();
    return UnavailableError(absl::StrCat("cannot copy the data directory to ", directory), status);
  }

 private:
  enum class State { kWorks, kFull, kBroken };

  // Reads the record of the format, or writes it into a new log.
  absl::Status CheckOrWriteFormat() {
    std::string value;
    const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), ToSlice(FormatKey()), &value);
    if (status.ok()) return CheckFormat(value);
    if (!status.IsNotFound()) return ReadError(status);
    if (access_ == RocksdbAccess::kRead) return DamagedError("it does not say what format it has");
    RocksdbBatch batch;
    batch.Put(FormatKey(), EncodeFormat());
    return Commit(batch, Sync::kYes);
  }

  void MarkSynced() {
    synced_.Set(last_sequence_);
    has_unsynced_ = false;
  }

  void SetFailure(const rocksdb::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (status.IsNoSpace()) {
      state_ = State::kFull;
      failure_ = WithRetryAfter(
          UnavailableError("the disk of the data directory is full; writes are taken again as soon "
                           "as there is room",
                           status),
          absl::Seconds(1));
    } else {
      SetBroken(status.ToString());
    }
  }

  void SetBroken(absl::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    state_ = State::kBroken;
    failure_ = MakeError(reasons::kStorageFailed,
                         absl::StrCat("the data directory could not be written, and takes no more "
                                      "writes until the server is started again: ",
                                      why));
  }

  // After a write that had no room, only what a new start would find can be relied on.
  void ReopenIfThereIsRoom() {
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(directory_, error);
    if (error || space.available < kRoomToReopen) return;
    absl::MutexLock lock(&mutex_);
    db_ = nullptr;
    errors_->Clear();
    absl::StatusOr<std::unique_ptr<rocksdb::DB>> db =
        OpenDatabase(directory_, access_, env_, errors_, synced_);
    if (!db.ok()) {
      // The room may have gone again. What is wrong with the files does not pass.
      if (!absl::IsUnavailable(db.status())) SetBroken(db.status().message());
      return;
    }
    db_ = *std::move(db);
    if (db_->GetLatestSequenceNumber() == last_sequence_) {
      state_ = State::kWorks;
    } else {
      SetBroken("what could not be synced for want of room was written");
    }
  }

  // What is in memory, at most, and a new write-ahead log and manifest.
  static constexpr std::uint64_t kRoomToReopen = kWriteBufferBytes + (std::uint64_t{4} << 20);

  const std::string directory_;
  const RocksdbAccess access_;
  rocksdb::Env* const env_;
  const std::shared_ptr<ErrorListener> errors_ = std::make_shared<ErrorListener>();
  rocksdb::FileLock* lock_ = nullptr;  // While it only reads.
  SyncedMark synced_;
  // Held to change db_, which is null only after a full disk, and failure_; shared to use them
  // outside Commit, which alone changes them once the log is open.
  mutable absl::Mutex mutex_;
  std::unique_ptr<rocksdb::DB> db_;
  State state_ = State::kWorks;
  absl::Status failure_;             // Unless it works.
  std::uint64_t last_sequence_ = 0;  // Of the records that Commit has written.
  bool has_unsynced_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CommitLog>> OpenRocksdbLog(const std::string& directory,
                                                          RocksdbAccess access, rocksdb::Env* env) {
  auto log = std::make_unique<RocksdbLog>(directory, access, env);
  SOFTLOOKUP_RETURN_IF_ERROR(log->Open());
  return log;
}

absl::StatusOr<std::unique_ptr<CommitLog>> OpenCommitLog(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return MakeError(reasons::kStorageFailed, absl::StrCat("cannot make the data directory ",
                                                           directory, ": ", error.message()));
  }
  return OpenRocksdbLog(directory, RocksdbAccess::kWrite, rocksdb::Env::Default());
}

absl::StatusOr<std::unique_ptr<const CommitLog>> OpenCommitLogToRead(const std::string& directory) {
  if (!std::filesystem::exists(directory + "/CURRENT")) {
    return MakeError(reasons::kStorageFailed,
                     absl::StrCat("there is no data directory ", directory));
  }
  return OpenRocksdbLog(directory, RocksdbAccess::kRead, rocksdb::Env::Default());
}

}  // namespace softlookup
