#ifndef SOFTLOOKUP_SERVER_ADMIN_DATA_DIRECTORY_H_
#define SOFTLOOKUP_SERVER_ADMIN_DATA_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace softlookup::server {

// What a directory is before a server opens it as its data directory.
enum class DataDirectoryState {
  kNew,       // Opening it makes a new data directory: it is missing, or has nothing of one.
  kExisting,  // It has files of a data directory, or cannot be read. The engine finds out more.
};

// Returns what `directory` is. Changes nothing. Three kinds of files may be in a new data
// directory: those that a fresh file system has, those that an interrupted start leaves, and those
// that one of `own_paths` leads through. `own_paths` are paths that the server's flags name. Empty
// ones are ignored. A file that is none of these, and none of a data directory, is a file of
// others.
//
// FAILED_PRECONDITION, which names the remedy, if a server must not open the directory. Either it
// is a backup, which the server would change. Or it has files of others, such as backups, and none
// of a data directory: its name is then probably mistyped.
absl::StatusOr<DataDirectoryState> InspectDataDirectory(const std::string& directory,
                                                        const std::vector<std::string>& own_paths);

// Returns FAILED_PRECONDITION, which names the command that restores the newest backup, if there
// are backups directly in `directory`.
absl::Status CheckHasNoBackups(const std::string& directory);

// Warns in the server log that a start makes a new data directory of `directory`. Without the
// warning, a wrong --data-dir would go unnoticed.
void WarnOfNewDataDirectory(const std::string& directory);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_DATA_DIRECTORY_H_
