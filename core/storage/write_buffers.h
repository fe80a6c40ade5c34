#ifndef SOFTLOOKUP_CORE_STORAGE_WRITE_BUFFERS_H_
#define SOFTLOOKUP_CORE_STORAGE_WRITE_BUFFERS_H_

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "core/storage/background_errors.h"

namespace softlookup {

// The write buffers of a log's database. All writes go through this object, and so does all that
// writes the buffers to tables. RocksDB must not begin a new buffer again after it failed to (an
// assertion of RocksDB 7.8.3). So no buffer is begun once the database has failed. Thread-safe.
class WriteBuffers {
 public:
  // `errors` is told of the database's errors.
  explicit WriteBuffers(std::shared_ptr<const BackgroundErrors> errors)
      : errors_(std::move(errors)) {}

  // Writes `changes`, without a sync.
  rocksdb::Status Write(rocksdb::DB& db, rocksdb::WriteBatch& changes);

  // Begins to write the buffers to tables. TryAgain if that would have to wait. Incomplete if the
  // database has failed.
  rocksdb::Status BeginFlush(rocksdb::DB& db);
  // Writes the buffers to tables, and waits until RocksDB has done so. Writes go on meanwhile; the
  // wait then includes the buffers that they fill. Incomplete if the database has failed before, or
  // soon after `cancelled` is true. If it fails meanwhile, returns its first error.
  rocksdb::Status Flush(rocksdb::DB& db, const std::atomic<bool>& cancelled);
  // Does the same at once. Writes wait for it.
  rocksdb::Status FlushWithoutWrites(rocksdb::DB& db);

 private:
  rocksdb::Status Flush(rocksdb::DB& db, bool wait);

  const std::shared_ptr<const BackgroundErrors> errors_;
  absl::Mutex mutex_;  // Held while RocksDB may begin a new buffer.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_WRITE_BUFFERS_H_
