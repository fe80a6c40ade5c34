#ifndef SOFTLOOKUP_CLIENT_TOOL_WHOLE_FILE_H_
#define SOFTLOOKUP_CLIENT_TOOL_WHOLE_FILE_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace softlookup::tool {

// Files that are written whole and synced, or not at all, except by WriteFile(). They have their
// final mode from the start, so nobody reads a secret that is just being written. Errors are
// InputErrors. A crash may leave a temporary file behind, named as the file with a dot and a few
// characters appended.

// Modes of files and of directories.
inline constexpr mode_t kOwnerOnly = 0600;
inline constexpr mode_t kReadableByAll = 0644;
inline constexpr mode_t kOwnerOnlyDirectory = 0700;

// Writes a new file, which appears with all its bytes. AlreadyExists if `path` exists, even as a
// dangling link. The umask can take bits from `mode`.
absl::Status CreateFile(const std::string& path, std::string_view bytes, mode_t mode);

// Replaces the contents of the file at `path` by what `edit` returns for them. The replacement is
// atomic: a reader sees the old contents or the new ones. Concurrent edits of one file run one
// after another. The file keeps its mode and its owner. A missing file counts as empty; it is made
// with the mode kOwnerOnly. If `edit` returns the same contents, nothing is written.
absl::Status EditFile(const std::string& path,
                      const std::function<absl::StatusOr<std::string>(std::string)>& edit);

// Writes or overwrites a file that holds no secret, such as a report. A crash may leave a part.
absl::Status WriteFile(const std::string& path, std::string_view bytes);

// Copies the file `from` to a new file with the mode kOwnerOnly. AlreadyExists as CreateFile(). A
// crash may leave a part of the copy.
absl::Status CopyFile(const std::string& from, const std::string& to);

// Makes a directory and its missing parents, with the mode kOwnerOnlyDirectory. An existing one is
// left as it is.
absl::Status EnsureDirectory(const std::string& path);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_WHOLE_FILE_H_
