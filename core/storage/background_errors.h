#ifndef SOFTLOOKUP_CORE_STORAGE_BACKGROUND_ERRORS_H_
#define SOFTLOOKUP_CORE_STORAGE_BACKGROUND_ERRORS_H_

#include <rocksdb/listener.h>

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace softlookup {

// Keeps the first error of RocksDB's work in the background, and the reasons of all such errors.
// Stops RocksDB from recovering by itself, because LogDatabase opens the database again instead.
// Thread-safe.
class BackgroundErrors final : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    absl::MutexLock lock(&mutex_);
    if (first_.ok()) first_ = *error;
    reasons_.insert(reason);
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }

  // Returns the first error since the last Clear(), or OK if there was none.
  rocksdb::Status first() const {
    absl::MutexLock lock(&mutex_);
    return first_;
  }
  // Returns whether there was an error with this `reason` since the last Clear(). The reason
  // kWriteCallback means that a write or a sync of the write-ahead log has failed.
  bool has(rocksdb::BackgroundErrorReason reason) const {
    absl::MutexLock lock(&mutex_);
    return reasons_.count(reason) > 0;
  }
  void Clear() {
    absl::MutexLock lock(&mutex_);
    first_ = rocksdb::Status::OK();
    reasons_.clear();
  }

 private:
  mutable absl::Mutex mutex_;
  rocksdb::Status first_ ABSL_GUARDED_BY(mutex_);
  std::set<rocksdb::BackgroundErrorReason> reasons_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_BACKGROUND_ERRORS_H_
