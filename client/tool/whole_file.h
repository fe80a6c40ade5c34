#ifndef SOFTLOOKUP_CLIENT_TOOL_WHOLE_FILE_H_
#define SOFTLOOKUP_CLIENT_TOOL_WHOLE_FILE_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace softlookup::tool {

// CreateFile() and EditFile() either write a whole file and sync it, or change nothing; for one
// exception, see EditFile(). They set the file's final mode before they write the first byte, so
// that nobody else can read a secret while it is written. A crash may leave their temporary file
// behind: the file's name with a dot and a few characters appended. Errors of all functions below
// are InputErrors, except AlreadyExists where named, and the errors of `edit`.

// Modes of files and of directories.
inline constexpr mode_t kOwnerOnly = 0600;
inline constexpr mode_t kReadableByAll = 0644;
inline constexpr mode_t kOwnerOnlyDirectory = 0700;

// Writes a new file, which becomes visible with all its bytes. AlreadyExists if `path` exists, even
// as a dangling link. The umask can clear bits of `mode`.
absl::Status CreateFile(const std::string& path, std::string_view bytes, mode_t mode);

// Replaces the contents of the file at `path` by what `edit` returns for them. The replacement is
// atomic: a reader sees the old contents or the new ones. Concurrent edits of one file run one
// after another. The file keeps its mode and its owner. A missing file counts as empty; it is made
// with the mode kOwnerOnly. If `edit` returns the contents of an existing file unchanged, nothing
// is written. If the last step, SyncReplaced(), fails, so does EditFile(), with the file changed.
absl::Status EditFile(const std::string& path,
                      const std::function<absl::StatusOr<std::string>(std::string)>& edit);

// Writes or overwrites a file that holds no secret, such as a report. A crash may leave part of it.
absl::Status WriteFile(const std::string& path, std::string_view bytes);

// Checks that WriteFile() can write to `path`, before the work whose result the file will hold. OK
// if `path` is empty. Leaves no new file, and does not change an existing one. Refuses a named
// pipe, because writing to it may wait for ever, but accepts one in /dev, such as /dev/stdout.
absl::Status CheckWritable(const std::string& path);

// Returns the path that the link `path` leads to, even if no file is there. Returns `path` if it is
// not a link.
std::string FollowLinks(std::string path);

// Reads the file at `path` and passes its bytes to `take`, part by part.
absl::Status ReadFile(const std::string& path, absl::FunctionRef<void(std::string_view)> take);

// Copies the file `from` to a new file `to` with the mode kOwnerOnly, and syncs it. Also passes the
// bytes to `take`, part by part. AlreadyExists if `to` exists. A crash may leave part of the copy.
absl::Status CopyFile(const std::string& from, const std::string& to,
                      absl::FunctionRef<void(std::string_view)> take);

// Makes a directory and its missing parents, with the mode kOwnerOnlyDirectory, and syncs their
// entries. An existing directory stays as it is.
absl::Status EnsureDirectory(const std::string& path);

// Syncs the entries of the directory at `path`.
absl::Status SyncDirectory(const std::string& path);

// Syncs the directory entry of `path`, which has just been replaced. An error also says that `path`
// is in place, but that a power cut may undo that.
absl::Status SyncReplaced(const std::string& path);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_WHOLE_FILE_H_
