#ifndef SOFTLOOKUP_CORE_STORAGE_ROCKSDB_LOG_H_
#define SOFTLOOKUP_CORE_STORAGE_ROCKSDB_LOG_H_

#include <rocksdb/env.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/storage/commit_log.h"
#include "core/storage/open_database.h"

namespace softlookup {

// Opens a log as OpenCommitLog (kWrite) and OpenCommitLogToRead (kRead) do, but in the file system
// of `env`, which must outlive the log. Leaves out what they do first: OpenCommitLog makes the
// directory, and OpenCommitLogToRead checks that there is a log.
absl::StatusOr<std::unique_ptr<CommitLog>> OpenRocksdbLog(const std::string& directory,
                                                          RocksdbAccess access, rocksdb::Env* env);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_ROCKSDB_LOG_H_
