#ifndef SOFTLOOKUP_CLIENT_TOOL_RESTORE_H_
#define SOFTLOOKUP_CLIENT_TOOL_RESTORE_H_

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace softlookup::tool {

struct Restored {
  std::string data_directory;
  int files = 0;
  std::uint64_t bytes = 0;
  bool sizes_only = false;  // True: the backup has no checksums.
  // As in BackupManifest.
  google::protobuf::RepeatedPtrField<std::string> damaged_stores;
};

// Copies the files of a backup to `data_directory`, which must be missing or empty, and syncs them
// to disk. Changes `data_directory` only once all files are copied. Only the owner may read the new
// directory and its files. Does not change the backup.
//
// InputError if `backup_directory` is not a complete backup, if `data_directory` lies in it, if a
// file's bytes are not those that were backed up, or if a file cannot be read or written.
// AlreadyExists if `data_directory` is not empty.
absl::StatusOr<Restored> RestoreBackup(const std::string& backup_directory,
                                       const std::string& data_directory);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_RESTORE_H_
