#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/storage/commit_log.h"
#include "core/storage/records.h"

namespace softlookup {
namespace {

rocksdb::Slice ToSlice(absl::string_view bytes) { return {bytes.data(), bytes.size()}; }
absl::string_view FromSlice(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

absl::Status UnavailableError(absl::string_view what, const rocksdb::Status& status) {
  return MakeError(reasons::kStorageFailed, absl::StrCat(what, ": ", status.ToString()));
}

absl::Status ReadError(const rocksdb::Status& status) {
  if (!status.IsCorruption()) return UnavailableError("cannot read the data directory", status);
  return MakeError(reasons::kDataLoss,
                   absl::StrCat("the data directory is damaged: ", status.ToString()));
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

rocksdb::Options LogOptions() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  // A record that was cut short at the log's end was never acknowledged; anything else that cannot
  // be read may have been, and must not be passed over in silence.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.track_and_verify_wals_in_manifest = true;
  options.compression = rocksdb::kNoCompression;  // Float32 components hardly shrink.
  options.write_buffer_size = std::size_t{64} << 20;
  options.max_background_jobs = 2;
  options.info_log_level = rocksdb::WARN_LEVEL;
  options.keep_log_file_num = 2;
  rocksdb::BlockBasedTableOptions table;
  // Rows are read once, when a store is loaded.
  table.no_block_cache = true;
  table.block_size = std::size_t{64} << 10;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

class RocksdbLog final : public CommitLog {
 public:
  explicit RocksdbLog(std::unique_ptr<rocksdb::DB> db) : db_(std::move(db)) {}
  ~RocksdbLog() override {
    // A server that is stopped leaves nothing to chance; whoever needed more has asked for it.
    if (has_unsynced_) db_->SyncWAL();
  }

  std::unique_ptr<LogBatch> NewBatch() override { return std::make_unique<RocksdbBatch>(); }

  absl::Status Commit(LogBatch& batch, Sync sync) override {
    if (!failure_.ok()) return failure_;
    rocksdb::WriteBatch& changes = static_cast<RocksdbBatch&>(batch).batch();
    rocksdb::WriteOptions options;
    options.sync = sync == Sync::kYes;
    rocksdb::Status status;
    if (changes.Count() > 0) {
      status = db_->Write(options, &changes);
      has_unsynced_ = !options.sync;
    } else if (options.sync && has_unsynced_) {
      status = db_->SyncWAL();
      has_unsynced_ = false;
    }
    if (!status.ok()) {
      failure_ = UnavailableError(
          "the data directory could not be written, and takes no more writes until the server is "
          "started again",
          status);
    }
    return failure_;
  }

  absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const override {
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    options.fill_cache = false;
    options.readahead_size = std::size_t{2} << 20;
    const rocksdb::Slice upper = ToSlice(end);
    options.iterate_upper_bound = &upper;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
    for (it->Seek(ToSlice(begin)); it->Valid(); it->Next()) {
      SOFTLOOKUP_RETURN_IF_ERROR(visit(FromSlice(it->key()), FromSlice(it->value())));
    }
    return it->status().ok() ? absl::OkStatus() : ReadError(it->status());
  }

  // Reads the record of the format, or writes it into a new log.
  absl::Status CheckOrWriteFormat() {
    std::string value;
    const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), ToSlice(FormatKey()), &value);
    if (status.ok()) return CheckFormat(value);
    if (!status.IsNotFound()) return ReadError(status);
    RocksdbBatch batch;
    batch.Put(FormatKey(), EncodeFormat());
    return Commit(batch, Sync::kYes);
  }

 private:
  const std::unique_ptr<rocksdb::DB> db_;
  absl::Status failure_;  // Of the first Commit that failed.
  bool has_unsynced_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CommitLog>> OpenCommitLog(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return MakeError(reasons::kStorageFailed, absl::StrCat("cannot make the data directory ",
                                                           directory, ": ", error.message()));
  }
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(LogOptions(), directory, &db);
  if (!status.ok()) {
    // RocksDB has no code of its own for this.
    if (status.IsIOError() && absl::StrContains(status.ToString(), "LOCK")) {
      return MakeError(reasons::kDirectoryInUse,
                       absl::StrCat("another process has the data directory ", directory, " open"));
    }
    return status.IsCorruption()
               ? ReadError(status)
               : UnavailableError(absl::StrCat("cannot open the data directory ", directory),
                                  status);
  }
  auto log = std::make_unique<RocksdbLog>(std::unique_ptr<rocksdb::DB>(db));
  SOFTLOOKUP_RETURN_IF_ERROR(log->CheckOrWriteFormat());
  return log;
}

}  // namespace softlookup
