#ifndef SOFTLOOKUP_CORE_STORAGE_ROCKSDB_ERRORS_H_
#define SOFTLOOKUP_CORE_STORAGE_ROCKSDB_ERRORS_H_

#include <rocksdb/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace softlookup {

// The errors of the log that come from RocksDB or its files.

// Returns `text` with the names of files alone instead of their paths. Clients get such texts, and
// the server's directories are none of their business.
std::string WithoutPaths(absl::string_view text);

// Returns UNAVAILABLE: `what`, then the text of `status`.
absl::Status UnavailableError(absl::string_view what, const rocksdb::Status& status);
// Returns the same with a retry delay, for a disk that has too little room.
absl::Status FullDiskError(absl::string_view what, const rocksdb::Status& status);
// Returns whether `status` is UNAVAILABLE with a retry delay, as FullDiskError() makes it.
bool IsFullDiskError(const absl::Status& status);
// Returns DATA_LOSS: the data directory is damaged. `what` says what is wrong with it.
absl::Status DamagedError(absl::string_view what);
// Returns the error of a read that failed with `status`: DATA_LOSS for damage, else UNAVAILABLE.
absl::Status ReadError(const rocksdb::Status& status);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_ROCKSDB_ERRORS_H_
