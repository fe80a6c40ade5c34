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

// Returns what `directory` is. Changes nothing. Files of others do not count if they can stand in a
// new data directory: what a fresh file system has, what a start that was cut short leaves, and
// what one of `own_paths` goes through. These are paths that the server's flags name. Empty ones
// are ignored.
//
// FAILED_PRECONDITION, which names the remedy, if a server must not open the directory: it is a
// backup, which the server would change; or it has files of others and none of a data directory,
// such as a directory of backups. Its name is then probably mistyped.
absl::StatusOr<DataDirectoryState> InspectDataDirectory(const std::string& directory,
                                                        const std::vector<std::string>& own_paths);

// Returns FAILED_PRECONDITION, which names the command that restores the newest backup, if there
// are backups directly in `directory`.
absl::Status CheckHasNoBackups(const std::string& directory);

// Warns in the server log that a start makes a new data directory of `directory`. That hides a
// wrong --data-dir.
void WarnOfNewDataDirectory(const std::string& directory);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_DATA_DIRECTORY_H_
