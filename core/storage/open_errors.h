#ifndef SOFTLOOKUP_CORE_STORAGE_OPEN_ERRORS_H_
#define SOFTLOOKUP_CORE_STORAGE_OPEN_ERRORS_H_

#include <rocksdb/status.h>
#include <sys/types.h>

#include <string>

#include "absl/status/status.h"

namespace softlookup {

// The errors of a data directory that cannot be opened. Most end with what the operator can do.

// What to do about a data directory that is damaged as a whole: the end of a message.
inline constexpr char kRestoreRemedy[] =
    "; restore a backup: softlookup backup restore BACKUP NEW_DATA_DIRECTORY";

// Returns the error of opening the database in `directory`, which failed with `status`.
// DIRECTORY_IN_USE if another process has it open. DATA_LOSS if it is damaged or lacks a file. If a
// table has lost its end, the message says how many bytes the table has, and how many it should
// have. UNAVAILABLE otherwise, with a retry delay if the disk is full.
absl::Status OpenError(const std::string& directory, const rocksdb::Status& status);

// Returns the error of a `directory` that `user`, who runs this process, may not read or write:
// UNAVAILABLE. The message names the directory. If the directory or a file in it belongs to another
// user, the message also names the first such path and its owner.
absl::Status AccessError(const std::string& directory, uid_t user);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_OPEN_ERRORS_H_
