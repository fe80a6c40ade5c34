#include "core/storage/rocksdb_log.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/status_macros.h"
#include "core/storage/log_database.h"
#include "core/storage/records.h"
#include "core/storage/rocksdb_errors.h"
#include "core/storage/table_files.h"

namespace softlookup {
namespace {

rocksdb::Slice ToSlice(absl::string_view bytes) { return {bytes.data(), bytes.size()}; }
absl::string_view FromSlice(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

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
  void FreeDiskOf(absl::string_view begin, absl::string_view end) override {
    thinned_.push_back({.begin = std::string(begin), .end = std::string(end)});
  }
  void MakesRoom() override { makes_room_ = true; }

  rocksdb::WriteBatch& batch() { return batch_; }
  // Whether the batch deletes ranges, or is needed before one that does.
  bool makes_room() const { return makes_room_ || !deleted_.empty(); }
  // The ranges that the batch deletes.
  const std::vector<KeyRange>& deleted() const { return deleted_; }
  // The ranges that FreeDiskOf() was given.
  const std::vector<KeyRange>& thinned() const { return thinned_; }

 private:
  rocksdb::WriteBatch batch_;
  std::vector<KeyRange> deleted_;
  std::vector<KeyRange> thinned_;
  bool makes_room_ = false;
};

// Keeps the records of a log in a RocksDB database.
class RocksdbLog final : public CommitLog {
 public:
  RocksdbLog(std::string directory, RocksdbAccess access, rocksdb::Env* env)
      : database_(std::move(directory), access, env) {}

  // Opens the database. Call this first, before other threads use the log.
  absl::Status Open() { return database_.Open(); }

  std::unique_ptr<LogBatch> NewBatch() override { return std::make_unique<RocksdbBatch>(); }

  absl::Status Commit(LogBatch& batch, Sync sync) override {
    rocksdb::WriteBatch& changes = static_cast<RocksdbBatch&>(batch).batch();
    const std::vector<KeyRange>& deleted = static_cast<RocksdbBatch&>(batch).deleted();
    // Files are dropped after the write. If a power cut could lose the write after that, some of
    // the records would be gone, and the others would be back.
    if (!deleted.empty()) sync = Sync::kYes;
    if (changes.Count() == 0 && sync == Sync::kNo) return absl::OkStatus();
    const bool makes_room = static_cast<RocksdbBatch&>(batch).makes_room() &&
                            changes.GetDataSize() <= LogDatabase::kFullDiskChangesBytesMax;
    SOFTLOOKUP_RETURN_IF_ERROR(database_.Write(changes, sync, makes_room));
    if (!deleted.empty()) database_.DropDeleted(deleted);
    database_.FreeDiskOf(static_cast<RocksdbBatch&>(batch).thinned());
    database_.MakeReserve();
    return absl::OkStatus();
  }

  bool has_failed() const override { return database_.has_failed(); }

  absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const override {
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    options.fill_cache = false;
    const rocksdb::Slice upper = ToSlice(end);
    options.iterate_upper_bound = &upper;
    return database_.Use([&](rocksdb::DB& db) {
      const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(options));
      for (it->Seek(ToSlice(begin)); it->Valid(); it->Next()) {
        SOFTLOOKUP_RETURN_IF_ERROR(visit(FromSlice(it->key()), FromSlice(it->value())));
      }
      return ReadResult(it->status());
    });
  }

  void AllowTableCompaction() override { database_.AllowTableCompaction(); }

  std::string LastKeyInTables() const override {
    std::string key;
    database_
        .Use([&](rocksdb::DB& db) {
          key = softlookup::LastKeyInTables(db);
          return absl::OkStatus();
        })
        .IgnoreError();  // A database that is closed tells of no tables.
    return key;
  }

  std::vector<KeyRange> RangesInTables(absl::Span<const KeyRange> ranges) const override {
    std::vector<KeyRange> found;
    database_
        .Use([&](rocksdb::DB& db) {
          found = softlookup::RangesInTables(db, ranges);
          return absl::OkStatus();
        })
        .IgnoreError();  // As in LastKeyInTables().
    return found;
  }

  absl::Status ReadTables(absl::Span<const KeyRange> ranges) const override {
    return database_.Use([&](rocksdb::DB& db) {
      const std::atomic<bool> never{false};
      return ReadResult(softlookup::ReadTables(db, ranges, never));
    });
  }

  void AwaitReclaimed() override { database_.AwaitReclaimed(); }
  std::uint64_t deleted_bytes() const override { return database_.deleted_bytes(); }

  absl::Status VerifyChecksums() const override {
    return database_.Use([](rocksdb::DB& db) { return ReadResult(db.VerifyChecksum()); });
  }

  absl::Status CopyTo(const std::string& directory) override { return database_.CopyTo(directory); }

 private:
  static absl::Status ReadResult(const rocksdb::Status& status) {
    return status.ok() ? absl::OkStatus() : ReadError(status);
  }

  LogDatabase database_;
};

// The default file system, but LockFile() takes no lock and makes no file.
class EnvWithoutLocks final : public rocksdb::EnvWrapper {
 public:
  EnvWithoutLocks() : EnvWrapper(rocksdb::Env::Default()) {}
  const char* Name() const override { return "EnvWithoutLocks"; }
  rocksdb::Status LockFile(const std::string&, rocksdb::FileLock** lock) override {
    *lock = nullptr;
    return rocksdb::Status::OK();
  }
};

// As OpenCommitLogToRead(), in the file system of `env`, which must outlive the log.
absl::StatusOr<std::unique_ptr<const CommitLog>> OpenToRead(const std::string& directory,
                                                            rocksdb::Env* env) {
  absl::Status found;
  if (!HasDatabase(directory, RocksdbAccess::kRead, found)) {
    SOFTLOOKUP_RETURN_IF_ERROR(found);
    std::error_code error;
    return MakeError(reasons::kStorageFailed, absl::StrCat("there is no data directory ", directory,
                                                           std::filesystem::exists(directory, error)
                                                               ? ": it has none of the files of one"
                                                               : ""));
  }
  return OpenRocksdbLog(directory, RocksdbAccess::kRead, env);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CommitLog>> OpenRocksdbLog(const std::string& directory,
                                                          RocksdbAccess access, rocksdb::Env* env) {
  auto log = std::make_unique<RocksdbLog>(directory, access, env);
  SOFTLOOKUP_RETURN_IF_ERROR(log->Open());
  return log;
}

absl::StatusOr<std::unique_ptr<CommitLog>> OpenCommitLog(const std::string& directory) {
  if (const std::error_code error = MakeDirectories(directory)) {
    std::string message =
        absl::StrCat("cannot make the data directory ", directory, ": ", error.message());
    if (error == std::errc::permission_denied) {
      absl::StrAppend(&message, "; make it, and give it to the user of this process: chown ",
                      geteuid(), " ", directory);
    }
    return MakeError(reasons::kStorageFailed, message);
  }
  return OpenRocksdbLog(directory, RocksdbAccess::kWrite, rocksdb::Env::Default());
}

absl::StatusOr<std::unique_ptr<const CommitLog>> OpenCommitLogToRead(const std::string& directory) {
  return OpenToRead(directory, rocksdb::Env::Default());
}

absl::StatusOr<std::unique_ptr<const CommitLog>> OpenCommitLogCopy(const std::string& directory) {
  static auto& env = *new EnvWithoutLocks;
  return OpenToRead(directory, &env);
}

}  // namespace softlookup
