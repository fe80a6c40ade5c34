#ifndef SOFTLOOKUP_CORE_STORAGE_FLUSH_GUARD_H_
#define SOFTLOOKUP_CORE_STORAGE_FLUSH_GUARD_H_

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "core/storage/background_errors.h"

namespace softlookup {

// Refuses flushes once the database of a log has failed. A flush, which writes the write buffers to
// tables, begins a new buffer, and so can a write to the database. After RocksDB has failed to
// begin a buffer, it must not try again: an assertion of RocksDB 7.8.3 would fail. It refuses
// writes by itself then, but not flushes. So all writes and flushes go through this object, which
// lets one at a time begin a buffer. Thread-safe.
class FlushGuard {
 public:
  // `errors` is told of the database's errors.
  explicit FlushGuard(std::shared_ptr<const BackgroundErrors> errors)
      : errors_(std::move(errors)) {}

  // Writes `changes`, without a sync.
  rocksdb::Status Write(rocksdb::DB& db, rocksdb::WriteBatch& changes);

  // Begins a flush. TryAgain if that would have to wait. Incomplete if the database has failed.
  rocksdb::Status BeginFlush(rocksdb::DB& db);
  // Begins a flush, and waits until RocksDB has done it. Writes go on meanwhile; the wait then
  // includes the buffers that they fill. Incomplete if the database has failed before, or soon
  // after `cancelled` is true. If the database fails meanwhile, returns its first error.
  rocksdb::Status Flush(rocksdb::DB& db, const std::atomic<bool>& cancelled);
  // Begins a flush, and waits until RocksDB has done it. Writes wait meanwhile. Incomplete if the
  // database has failed before.
  rocksdb::Status FlushBlockingWrites(rocksdb::DB& db);

 private:
  // Begins a flush while it holds mutex_. If `wait`, holds mutex_ until RocksDB has done it.
  rocksdb::Status FlushUnderMutex(rocksdb::DB& db, bool wait);

  const std::shared_ptr<const BackgroundErrors> errors_;
  absl::Mutex mutex_;  // Held while RocksDB may begin a new buffer.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_FLUSH_GUARD_H_
