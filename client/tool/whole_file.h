#ifndef SOFTLOOKUP_CLIENT_TOOL_WHOLE_FILE_H_
#define SOFTLOOKUP_CLIENT_TOOL_WHOLE_FILE_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace softlookup::tool {

// Files that are written whole and synced, or not at all. They have their final mode from the
// start, so nobody reads a secret that is just being written. Errors are InputErrors.

// Modes of files and of directories.
inline constexpr mode_t kOwnerOnly = 0600;
inline constexpr mode_t kReadableByAll = 0644;
inline constexpr mode_t kOwnerOnlyDirectory = 0700;

// Writes a new file. AlreadyExists if there is anything at `path`.
absl::Status CreateFile(const std::string& path, std::string_view bytes, mode_t mode);

// Replaces what the file at `path` holds by what `edit` makes of it, in one step: a reader sees the
// old contents or the new ones. Two edits of one file follow each other. A file keeps its mode and
// its owner; `edit` makes a new one, which its owner alone may read, of an empty string.
absl::Status EditFile(const std::string& path,
                      const std::function<absl::StatusOr<std::string>(std::string)>& edit);

// Writes a new file, for its owner alone, with what `from` holds. AlreadyExists as CreateFile().
absl::Status CopyFile(const std::string& from, const std::string& to);

// Makes a directory for its owner alone, and those above it that are missing, unless there is one.
absl::Status EnsureDirectory(const std::string& path);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_WHOLE_FILE_H_
