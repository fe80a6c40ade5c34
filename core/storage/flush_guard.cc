#include "core/storage/flush_guard.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/storage/table_files.h"

namespace softlookup {
namespace {

// How often Flush() looks whether the buffers are written. RocksDB can wait for that itself, but
// only in the call that begins a new buffer. The mutex would be held until the end of that call.
constexpr absl::Duration kLookInterval = absl::Milliseconds(5);

}  // namespace

rocksdb::Status FlushGuard::Write(rocksdb::DB& db, rocksdb::WriteBatch& changes) {
  absl::MutexLock lock(&mutex_);
  return db.Write(rocksdb::WriteOptions(), &changes);
}

rocksdb::Status FlushGuard::BeginFlush(rocksdb::DB& db) {
  return FlushUnderMutex(db, /*wait=*/false);
}

rocksdb::Status FlushGuard::FlushBlockingWrites(rocksdb::DB& db) {
  return FlushUnderMutex(db, /*wait=*/true);
}

rocksdb::Status FlushGuard::FlushUnderMutex(rocksdb::DB& db, bool wait) {
  absl::MutexLock lock(&mutex_);
  if (const rocksdb::Status error = errors_->first(); !error.ok()) {
    return rocksdb::Status::Incomplete("the log has failed", error.ToString());
  }
  rocksdb::FlushOptions options;
  options.wait = wait;
  options.allow_write_stall = true;  // Else it might wait for compaction, and writes with it.
  return db.Flush(options);
}

rocksdb::Status FlushGuard::Flush(rocksdb::DB& db, const std::atomic<bool>& cancelled) {
  bool has_begun = false;
  for (;;) {
    if (cancelled) return rocksdb::Status::Incomplete();
    if (!has_begun) {
      rocksdb::Status status = BeginFlush(db);
      if (!status.ok() && !status.IsTryAgain()) return status;
      has_begun = status.ok();
    }
    if (has_begun && !HasFullWriteBuffers(db)) return rocksdb::Status::OK();
    if (rocksdb::Status error = errors_->first(); !error.ok()) return error;
    absl::SleepFor(kLookInterval);
  }
}

}  // namespace softlookup
