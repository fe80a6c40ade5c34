#include "core/storage/open_database.h"

#include <rocksdb/table.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/storage/empty_tables.h"
#include "core/storage/open_errors.h"
#include "core/storage/records.h"
#include "core/storage/rocksdb_errors.h"

namespace softlookup {
namespace {

// Drops RocksDB's messages. The file for them would be on the log's disk, which may be full or
// fail. Writing to that file after an error fails an assertion (RocksDB 7.8.3). What matters is in
// the errors that RocksDB returns.
class NoLogger final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// On a full disk, no write buffer should become full: it would be written to a table. One buffer
// has to hold all changes in the write-ahead log: two normal write buffers, and some more.
constexpr std::size_t kFullDiskWriteBufferBytes = std::size_t{1} << 30;

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
                                   " had been written and acknowledged", kRestoreRemedy));
}

// Returns whether the file `name` of a database holds records, or says how many there were.
bool HoldsRecords(absl::string_view name) {
  return name == kSyncedName || absl::EndsWith(name, ".sst") || absl::EndsWith(name, ".log");
}

// Returns whether the file `name` describes a database, but holds no records.
bool DescribesDatabase(absl::string_view name) {
  return name == "IDENTITY" || absl::StartsWith(name, "MANIFEST-") ||
         absl::StartsWith(name, "OPTIONS-");
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

}  // namespace

rocksdb::Options LogOptions(rocksdb::Env* env, const std::shared_ptr<BackgroundErrors>& errors) {
  rocksdb::Options options;
  options.env = env;
  options.listeners.push_back(errors);
  options.table_properties_collector_factories.push_back(std::make_shared<EmptyTableWatch>());
  options.max_bgerror_resume_count = 0;
  options.paranoid_checks = true;
  options.track_and_verify_wals_in_manifest = true;
  options.compression = rocksdb::kNoCompression;  // Float32 components hardly shrink.
  options.write_buffer_size = kWriteBufferBytes;
  options.max_background_jobs = 2;
  // Tables go to the disk while they are written, a little at a time. Otherwise a sync of the
  // write-ahead log would wait for a burst of tens of MiB.
  options.bytes_per_sync = std::uint64_t{1} << 20;
  options.strict_bytes_per_sync = true;
  options.skip_stats_update_on_db_open = true;  // The statistics would be read from every table.
  options.disable_auto_compactions = true;      // Until AllowTableCompaction().
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
  table.block_size = kTableBlockBytes;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

bool HasDatabase(const std::string& directory, RocksdbAccess access, absl::Status& status) {
  std::error_code error;
  if (std::filesystem::exists(directory + "/CURRENT", error)) return true;
  bool is_denied = error == std::errc::permission_denied;
  std::string found;  // The first one by name, so that the message is always the same.
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool counts =
        HoldsRecords(name) || (access == RocksdbAccess::kRead && DescribesDatabase(name));
    if (counts && (found.empty() || name < found)) found = name;
  }
  is_denied = is_denied || error == std::errc::permission_denied;
  if (is_denied) {
    status = AccessError(directory, geteuid());
  } else if (!found.empty()) {
    status = DamagedError(absl::StrCat("CURRENT is missing beside ", found, " in ", directory,
                                       ", and without it nothing can be read", kRestoreRemedy));
  }
  return false;
}

std::uint64_t FreeBytes(rocksdb::Env& env, const std::string& directory) {
  // RocksDB's own count includes bytes that only root may use. So that count is used only if `env`
  // is not the default one.
  if (&env != rocksdb::Env::Default()) {
    std::uint64_t bytes = 0;
    return env.GetFreeSpace(directory, &bytes).ok() ? bytes : 0;
  }
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  return error ? 0 : space.available;
}

rocksdb::Options FullDiskOptions(rocksdb::Options options) {
  options.write_buffer_size = kFullDiskWriteBufferBytes;
  options.avoid_flush_during_recovery = true;
  options.allow_fallocate = false;
  options.disable_auto_compactions = true;
  return options;
}

rocksdb::Status SyncLogFiles(rocksdb::Env& env, const std::string& directory) {
  std::vector<std::string> names;
  rocksdb::Status status = env.GetChildren(directory, &names);
  for (const std::string& name : names) {
    if (!status.ok()) break;
    if (!absl::EndsWith(name, ".log")) continue;
    std::unique_ptr<rocksdb::WritableFile> file;
    status = env.ReopenWritableFile(absl::StrCat(directory, "/", name), &file, {});
    if (status.ok()) status = file->Fsync();
    if (status.ok()) status = file->Close();
  }
  return status;
}

absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDatabase(rocksdb::Options options,
                                                          const std::string& directory,
                                                          const SyncedSequence& synced_sequence) {
  absl::Status found;
  options.create_if_missing = !HasDatabase(directory, RocksdbAccess::kWrite, found);
  SOFTLOOKUP_RETURN_IF_ERROR(found);
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

absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDatabaseToRead(
    const rocksdb::Options& options, const std::string& directory,
    const SyncedSequence& synced_sequence, rocksdb::FileLock*& lock) {
  // RocksDB does not lock a directory that it opens only to read.
  std::unique_ptr<rocksdb::DB> db;
  rocksdb::Status status = options.env->LockFile(directory + "/LOCK", &lock);
  if (status.ok()) status = OpenOnce(options, directory, RocksdbAccess::kRead, db);
  if (!status.ok()) return OpenError(directory, status);
  SOFTLOOKUP_RETURN_IF_ERROR(CheckSyncedSequence(*db, synced_sequence));
  return db;
}

absl::StatusOr<bool> ReadFormat(rocksdb::DB& db) {
  std::string value;
  const rocksdb::Status status = db.Get(rocksdb::ReadOptions(), FormatKey(), &value);
  if (status.IsNotFound()) return false;
  if (!status.ok()) return ReadError(status);
  SOFTLOOKUP_RETURN_IF_ERROR(CheckFormat(value));
  return true;
}

}  // namespace softlookup
