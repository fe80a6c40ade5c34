#ifndef SOFTLOOKUP_CLIENT_TOOL_RESTORE_H_
#define SOFTLOOKUP_CLIENT_TOOL_RESTORE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace softlookup::tool {

struct Restored {
  std::string data_directory;
  int files = 0;
  std::uint64_t bytes = 0;
};

// Makes `data_directory`, which must not exist or be empty, a data directory with what the backup
// holds. It is safe on disk once this returns; before, and after an error, it is as it was. Its
// owner alone may read it and its files. The backup is only read.
//
// InputError if the backup is none or is not whole, or if a file cannot be read or written;
// AlreadyExists if there is something in `data_directory`.
absl::StatusOr<Restored> RestoreBackup(const std::string& backup_directory,
                                       const std::string& data_directory);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_RESTORE_H_
