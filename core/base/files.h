#ifndef SOFTLOOKUP_CORE_BASE_FILES_H_
#define SOFTLOOKUP_CORE_BASE_FILES_H_

#include <filesystem>
#include <system_error>

namespace softlookup {

// Syncs a file's contents, or a directory's entries, to the disk. Returns no error if that
// succeeds.
std::error_code SyncPath(const std::filesystem::path& path);

// Creates `directory` and its missing parents. Syncs the parent of each new directory, so that the
// new directory survives a power cut. Returns the error if a directory cannot be created. Errors of
// a sync are ignored.
std::error_code MakeDirectories(const std::filesystem::path& directory);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_FILES_H_
