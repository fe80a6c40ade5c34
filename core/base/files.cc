#include "core/base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace softlookup {

namespace fs = std::filesystem;

std::error_code SyncPath(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {errno, std::generic_category()};
  std::error_code error;
  if (fsync(file) != 0) error = {errno, std::generic_category()};
  close(file);
  return error;
}

std::error_code MakeDirectories(const fs::path& directory) {
  std::error_code error;
  if (directory.empty() || fs::is_directory(directory, error)) return {};
  // The last component of "a/b/" is empty, and parent_path() removes it.
  const fs::path path = directory.has_filename() ? directory : directory.parent_path();
  if (error = MakeDirectories(path.parent_path()); error) return error;
  fs::create_directory(path, error);
  if (error) return error;
  // The error of SyncPath() is ignored: a parent without read permission cannot be synced, but it
  // can be used.
  SyncPath(path.has_parent_path() ? path.parent_path() : fs::path("."));
  return {};
}

}  // namespace softlookup
