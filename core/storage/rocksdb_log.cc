#include "core/storage/rocksdb_log.h"

#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <cstdarg>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/status_macros.h"
#include "core/storage/records.h"
#include "core/storage/synced_sequence.h"

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

// Drops RocksDB's messages. The file for them would be on the log's disk, which may be full or
// fail. Writing to that file after an error fails an assertion (RocksDB 7.8.3). What matters is in
// the errors that RocksDB returns.
class NoLogger final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// Keeps the first error of RocksDB's work in the background. Stops RocksDB from recovering by
// itself, because RocksdbLog opens the database again instead. Thread-safe.
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

  // Returns the first error since the last Clear().
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

constexpr char kSyncedName[] = "SYNCED";  // The file of the SyncedSequence.
constexpr std::size_t kWriteBufferBytes = std::size_t{64} << 20;

rocksdb::Options LogOptions(rocksdb::Env* env, const std::shared_ptr<ErrorListener>& listener) {
  rocksdb::Options options;
  options.env = env;
  options.listeners.push_back(listener);
  options.max_bgerror_resume_count = 0;
  options.paranoid_checks = true;
  options.track_and_verify_wals_in_manifest = true;
  options.compression = rocksdb::kNoCompression;  // Float32 components hardly shrink.
  options.write_buffer_size = kWriteBufferBytes;
  options.max_background_jobs = 2;
  options.skip_stats_update_on_db_open = true;  // The statistics would be read from every table.
  options.disable_auto_compactions = true;      // Until BeginCompaction().
  // Cuts the write-ahead log off at its first bad record and keeps all records before.
  // CheckSyncedSequence() then finds out whether a record was lost that had been synced.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.info_log = std::make_shared<NoLogger>();
  rocksdb::BlockBasedTableOptions table;
  // A cache would not help: rows are read once, when a store is loaded.
  table.no_block_cache = true;
  // The operating system reads ahead, and RocksDB does not. That saves one copy of what is read.
  table.max_auto_readahead_size = 0;
  options.advise_random_on_open = false;
  table.block_size = std::size_t{64} << 10;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::Status OpenOnce(const rocksdb::Options& options, const std::string& directory,
                         RocksdbAccess access, std::unique_ptr<rocksdb::DB>& database) {
  rocksdb::DB* db = nullptr;
  rocksdb::Status status = access == RocksdbAccess::kWrite
                               ? rocksdb::DB::Open(options, directory, &db)
                               : rocksdb::DB::OpenForReadOnly(options, directory, &db);
  database.reset(db);
  return status;
}

// Returns DATA_LOSS if the log of `db` ends before `synced_sequence`, the last synced change.
absl::Status CheckSyncedSequence(const rocksdb::DB& db, const SyncedSequence& synced_sequence) {
  const std::uint64_t found = db.GetLatestSequenceNumber(), synced = synced_sequence.Read();
  if (found >= synced) return absl::OkStatus();
  return DamagedError(absl::StrCat("its log ends after ", found, " records, but ", synced,
                                   " had been written and acknowledged"));
}

absl::Status OpenError(const std::string& directory, const rocksdb::Status& status) {
  // RocksDB has no status code for a directory in use, so the text of `status` decides.
  const std::string text = status.ToString();
  if (absl::StrContains(text, "While lock file: ") ||
      absl::StrContains(text, "lock hold by current process")) {
    return MakeError(reasons::kDirectoryInUse,
                     absl::StrCat("another process has the data directory ", directory, " open"));
  }
  if (status.IsCorruption()) return ReadError(status);
  return UnavailableError(absl::StrCat("cannot open the data directory ", directory), status);
}

// Returns whether the database has a record of its format. DATA_LOSS if this server does not know
// the format.
absl::StatusOr<bool> ReadFormat(rocksdb::DB& db) {
  std::string value;
  const rocksdb::Status status = db.Get(rocksdb::ReadOptions(), ToSlice(FormatKey()), &value);
  if (status.IsNotFound()) return false;
  if (!status.ok()) return ReadError(status);
  SOFTLOOKUP_RETURN_IF_ERROR(CheckFormat(value));
  return true;
}

// Returns whether `directory` has RocksDB's file CURRENT, the root of a database. Sets `damage` if
// CURRENT is missing but other files of a database are there.
bool HasDatabase(const std::string& directory, absl::Status& damage) {
  std::error_code error;
  if (std::filesystem::exists(directory + "/CURRENT", error)) return true;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    const std::filesystem::path& file = it->path();
    if (file.filename() == kSyncedName || file.extension() == ".sst" ||
        file.extension() == ".log") {
      damage = DamagedError(absl::StrCat("CURRENT is missing beside ", file.filename().string()));
    }
  }
  return false;
}

// Checks that the database opens, has all changes that `synced_sequence` says were synced, and has
// a known format. Opens it read-only and changes nothing.
absl::Status CheckDatabase(const rocksdb::Options& options, const std::string& directory,
                           const SyncedSequence& synced_sequence) {
  std::unique_ptr<rocksdb::DB> db;
  const rocksdb::Status status = OpenOnce(options, directory, RocksdbAccess::kRead, db);
  if (!status.ok()) return OpenError(directory, status);
  SOFTLOOKUP_RETURN_IF_ERROR(CheckSyncedSequence(*db, synced_sequence));
  return ReadFormat(*db).status();
}

// Opens a database to write, and creates it if there is none. DATA_LOSS if the database has lost
// changes that `synced_sequence` says were synced.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDatabase(rocksdb::Options options,
                                                          const std::string& directory,
                                                          const SyncedSequence& synced_sequence) {
  absl::Status damage;
  options.create_if_missing = !HasDatabase(directory, damage);
  SOFTLOOKUP_RETURN_IF_ERROR(damage);
  // When RocksDB opens a database to write, it deletes files that nothing refers to. A database
  // with losses must stay as it was found. So CheckDatabase looks for losses first, while the lock
  // keeps other processes from writing. The write-ahead log is thus replayed twice.
  if (!options.create_if_missing && synced_sequence.Read() > 0) {
    rocksdb::FileLock* lock = nullptr;
    const rocksdb::Status locked = options.env->LockFile(directory + "/LOCK", &lock);
    if (!locked.ok()) return OpenError(directory, locked);
    const absl::Status status = CheckDatabase(options, directory, synced_sequence);
    options.env->UnlockFile(lock).PermitUncheckedError();
    SOFTLOOKUP_RETURN_IF_ERROR(status);
  }
  std::unique_ptr<rocksdb::DB> db;
  const rocksdb::Status status = OpenOnce(options, directory, RocksdbAccess::kWrite, db);
  if (!status.ok()) return OpenError(directory, status);
  return db;
}

// A log in a RocksDB database, which it opens again after a full disk.
class RocksdbLog final : public CommitLog {
 public:
  RocksdbLog(std::string directory, RocksdbAccess access, rocksdb::Env* env)
      : directory_(std::move(directory)),
        access_(access),
        env_(env),
        synced_sequence_(absl::StrCat(directory_, "/", kSyncedName)) {}
  ~RocksdbLog() override {
    if (lock_ != nullptr) env_->UnlockFile(lock_);
    if (access_ == RocksdbAccess::kRead || db_ == nullptr || state_ != State::kWorks) return;
    // Syncs what was committed without a sync, so that a crash of the machine after a clean stop
    // loses nothing. Errors are ignored, because these writes were acknowledged as not yet synced.
    if (has_unsynced_ && db_->SyncWAL().ok()) MarkSynced();
    // Writes what is in RAM to tables, so that the next start has nothing to replay. If there is no
    // room for the tables, the next start replays the write-ahead log.
    db_->Flush(rocksdb::FlushOptions()).PermitUncheckedError();
  }

  // Opens the database. Call this first, before other threads use the log.
  absl::Status Open() {
    if (access_ == RocksdbAccess::kWrite) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(db_, OpenDatabase(Options(), directory_, synced_sequence_));
    } else {
      // RocksDB does not lock a directory that it opens only to read, so Open() locks it.
      rocksdb::Status status = env_->LockFile(directory_ + "/LOCK", &lock_);
      if (status.ok()) status = OpenOnce(Options(), directory_, access_, db_);
      if (!status.ok()) return OpenError(directory_, status);
      SOFTLOOKUP_RETURN_IF_ERROR(CheckSyncedSequence(*db_, synced_sequence_));
    }
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
    if (state_ == State::kWorks) {
      // After an error in the background RocksDB takes no more writes. Nothing that was committed
      // is lost, because it is in the write-ahead log.
      if (const rocksdb::Status error = errors_->error(); !error.ok()) SetFailure(error);
    }
    if (state_ == State::kFull) ReopenIfThereIsRoom();
    if (state_ != State::kWorks) return failure();
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
      SetFailure(status);
      return failure();
    }
    last_sequence_ = db_->GetLatestSequenceNumber();
    if (options.sync && has_unsynced_) MarkSynced();
    return absl::OkStatus();
  }

  bool has_failed() const override { return state_ != State::kWorks || !errors_->error().ok(); }

  absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const override {
    absl::ReaderMutexLock lock(&mutex_);
    if (db_ == nullptr) return failure();
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
    if (db_ == nullptr) return failure();
    const rocksdb::Status status = db_->VerifyChecksum();
    return status.ok() ? absl::OkStatus() : ReadError(status);
  }

  absl::Status CopyTo(const std::string& directory) override {
    absl::ReaderMutexLock lock(&mutex_);
    if (db_ == nullptr) return failure();
    rocksdb::Checkpoint* made = nullptr;
    rocksdb::Status status = rocksdb::Checkpoint::Create(db_.get(), &made);
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
    if (status.ok()) status = checkpoint->CreateCheckpoint(directory);
    if (status.ok()) return absl::OkStatus();
    return UnavailableError(absl::StrCat("cannot copy the data directory to ", directory), status);
  }

 private:
  // kFull: the disk was full, and Commit() tries to open the database again. kBroken: no Commit()
  // succeeds until the log is opened again.
  enum class State { kWorks, kFull, kBroken };

  void MarkSynced() {
    synced_sequence_.Set(last_sequence_);
    has_unsynced_ = false;
  }

  rocksdb::Options Options() const {
    rocksdb::Options options = LogOptions(env_, errors_);
    if (compacts_) options.disable_auto_compactions = false;
    return options;
  }

  absl::Status failure() const {
    absl::MutexLock lock(&failure_mutex_);
    return failure_;
  }

  void Fail(State state, absl::Status failure) {
    state_ = state;
    absl::MutexLock lock(&failure_mutex_);
    failure_ = std::move(failure);
  }

  void SetFailure(const rocksdb::Status& status) {
    if (status.IsNoSpace()) {
      Fail(State::kFull,
           WithRetryAfter(UnavailableError("the disk of the data directory is full; writes are "
                                           "taken again as soon as there is room",
                                           status),
                          absl::Seconds(1)));
    } else if (status.IsCorruption()) {
      Fail(State::kBroken,
           DamagedError(absl::StrCat(status.ToString(), "; it takes no more writes")));
    } else {
      SetBroken(status.ToString());
    }
  }

  void SetBroken(absl::string_view why) {
    Fail(State::kBroken,
         MakeError(reasons::kStorageFailed,
                   absl::StrCat("the data directory could not be written, and takes no more "
                                "writes until the server is started again: ",
                                why)));
  }

  // Opens the database again, unless there is too little room or another thread uses it. After a
  // write that had no room, RocksDB's state in RAM cannot be relied on. The state that it reads
  // from disk when it opens the database can be.
  void ReopenIfThereIsRoom() {
    if (FreeBytes() < kRoomToReopen) return;
    if (!mutex_.TryLock()) return;  // Another thread copies or reads the database.
    Reopen();
    mutex_.Unlock();
  }

  // Returns the free bytes of the disk, or 0 if they are unknown. RocksDB's own count includes
  // bytes that only root may use. So that count is used only if env_ is not the default one.
  std::uint64_t FreeBytes() const {
    if (env_ != rocksdb::Env::Default()) {
      std::uint64_t bytes = 0;
      return env_->GetFreeSpace(directory_, &bytes).ok() ? bytes : 0;
    }
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(directory_, error);
    return error ? 0 : space.available;
  }

  void Reopen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    db_ = nullptr;
    errors_->Clear();
    absl::StatusOr<std::unique_ptr<rocksdb::DB>> db =
        OpenDatabase(Options(), directory_, synced_sequence_);
    if (!db.ok()) {
      // UNAVAILABLE can be temporary, such as too little room again, so state_ stays kFull. Other
      // errors come from the files, and would come again.
      if (!absl::IsUnavailable(db.status())) SetBroken(db.status().message());
      return;
    }
    db_ = *std::move(db);
    const std::uint64_t found = db_->GetLatestSequenceNumber();
    if (found == last_sequence_) {
      state_ = State::kWorks;
    } else if (found > last_sequence_) {
      SetBroken("what could not be synced for want of room was written");
    } else {
      SetBroken("what had been written is gone");
    }
  }

  // Most bytes of disk that opening the database again takes. RocksDB needs them for a write buffer
  // that it writes to a table, and for the next buffer. It also needs some for a new write-ahead
  // log and manifest.
  static constexpr std::uint64_t kRoomToReopen = 2 * kWriteBufferBytes + (std::uint64_t{4} << 20);

  const std::string directory_;
  const RocksdbAccess access_;
  rocksdb::Env* const env_;
  const std::shared_ptr<ErrorListener> errors_ = std::make_shared<ErrorListener>();
  rocksdb::FileLock* lock_ = nullptr;  // Held if access_ is kRead.
  SyncedSequence synced_sequence_;
  // Held exclusively to change db_, and shared to use db_ outside of Commit(). Once the log is
  // open, only Commit() changes db_. After a full disk db_ is null if it could not be opened again.
  mutable absl::Mutex mutex_;
  std::unique_ptr<rocksdb::DB> db_;
  mutable absl::Mutex failure_mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(failure_mutex_);  // The cause, if state_ is not kWorks.
  std::atomic<State> state_{State::kWorks};               // Only Commit() changes it.
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
