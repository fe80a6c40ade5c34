#ifndef SOFTLOOKUP_CORE_BASE_FILES_H_
#define SOFTLOOKUP_CORE_BASE_FILES_H_

#include <filesystem>
#include <system_error>

namespace softlookup {

// Sees that a file's contents, or a directory's entries, are on the disk.
std::error_code SyncPath(const std::filesystem::path& path);

// Makes a directory and those that it is in, if need be: what is kept there outlives a power cut.
std::error_code MakeDirectories(const std::filesystem::path& directory);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_FILES_H_
