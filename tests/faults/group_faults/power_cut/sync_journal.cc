// A library to preload into a process: notes in a journal what of the files of a directory is on
// the disk for sure, so that a test can kill the process and then take away what a power cut could
// take (power_cut.h).
//
// SYNC_JOURNAL names the journal, to which lines are added.
// SYNC_JOURNAL_OF names the directory, as the process does, without symbolic links.
// SYNC_JOURNAL_KEEP names a directory on the same disk, for files that others replace.
//
// The fields of a line are separated by tabs:
//   created INODE PATH         a new file, empty
//   emptied INODE              a file that was opened with O_TRUNC
//   renamed PATH PATH KEPT     KEPT is where a file is that the other has replaced; - : there was
//                              none; ! : there was one, and it could not be kept
//   synced INODE BYTES         the first BYTES bytes of the file are on the disk
//   synced-names OFFSET PATH   a directory has all names on the disk that the journal has before
//                              this offset
//
// What was synced is noted before the process learns of it, and what changes a name, after it was
// changed. So a process that is killed between the two has relied on less than the journal says.
//
// Not seen are: bytes that are written over others, also by mmap(); files that become shorter;
// names that are removed, or made by link() or mkdir(); and what libc opens by itself, such as in
// fopen(). All of these count as on the disk at once. sync_file_range() and msync() count as
// nothing: the one syncs no sizes, and nobody here writes by mmap().
#undef _FORTIFY_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using Open = int(const char*, int, ...);
using OpenAt = int(int, const char*, int, ...);
using Sync = int(int);
using Rename = int(const char*, const char*);
using RenameAt = int(int, const char*, int, const char*);
using RenameAt2 = int(int, const char*, int, const char*, unsigned);

// The function that would be called without this library.
template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Keeps errno as it was.
class KeepErrno {
 public:
  ~KeepErrno() { errno = errno_; }

 private:
  const int errno_ = errno;
};

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int Journal() {
  static const int file = Next<Open>("open")(Variable("SYNC_JOURNAL").c_str(),
                                             O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
  return file;
}

// Adds a line, whole. Without it the test would be wrong, so there is no going on.
void Note(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(Journal(), whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
    std::perror("the journal of what was synced");
    std::abort();
  }
}

// Whether a path is that of the directory, or of something in it.
bool IsInside(std::string_view path) {
  static const std::string directory = Variable("SYNC_JOURNAL_OF");
  return !directory.empty() && path.substr(0, directory.size()) == directory &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

// The path of an open file, as it is now; "" if it is not in the directory.
std::string PathOf(int file) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = readlink(link.c_str(), path, sizeof path);
  const std::string_view found(path, size < 0 ? 0 : static_cast<std::size_t>(size));
  return IsInside(found) ? std::string(found) : "";
}

// The path that `path` is from the directory `at` on; "" if it is not in the directory.
std::string PathAt(int at, const char* path) {
  if (path[0] == '/' || at == AT_FDCWD) return IsInside(path) ? path : "";
  const std::string directory = PathOf(at);
  return directory.empty() ? "" : directory + "/" + path;
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string InodeOf(const struct stat& status) { return std::to_string(status.st_ino); }

// Opens by `open_it` what is `path` in full. Notes whether the file is new.
template <typename OpenIt>
int OpenAndNote(const std::string& path, int flags, OpenIt open_it) {
  const bool may_change = !path.empty() && (flags & (O_CREAT | O_TRUNC)) != 0;
  const bool is_new = may_change && !Exists(path);
  const int file = open_it();
  if (file < 0 || !may_change || (!is_new && (flags & O_TRUNC) == 0)) return file;
  const KeepErrno keep;
  struct stat status = {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return file;
  Note(is_new ? "created\t" + InodeOf(status) + "\t" + path : "emptied\t" + InodeOf(status));
  return file;
}

// Syncs by `sync`, and notes what was there before.
int SyncAndNote(int file, Sync* sync) {
  struct stat before = {};
  std::string path;
  off_t offset = 0;
  {
    const KeepErrno keep;
    path = PathOf(file);
    if (!path.empty()) {
      fstat(file, &before);
      offset = lseek(Journal(), 0, SEEK_END);
    }
  }
  const int result = sync(file);
  if (result != 0 || path.empty()) return result;
  const KeepErrno keep;
  if (S_ISDIR(before.st_mode)) {
    Note("synced-names\t" + std::to_string(offset) + "\t" + path);
  } else {
    Note("synced\t" + InodeOf(before) + "\t" + std::to_string(before.st_size));
  }
  return result;
}

// Keeps the file at `path`, which will be replaced. Returns where; "-" if there is none, and "!" if
// that is not possible.
std::string Keep(const std::string& path) {
  const KeepErrno keep;
  static const std::string directory = Variable("SYNC_JOURNAL_KEEP");
  static std::atomic<int> count = 0;
  if (!Exists(path)) return "-";
  const std::string kept =
      directory + "/" + std::to_string(getpid()) + "-" + std::to_string(++count);
  return link(path.c_str(), kept.c_str()) == 0 ? kept : "!";
}

// Renames by `rename_it` what are `from` and `to` in full.
template <typename RenameIt>
int RenameAndNote(const std::string& from, const std::string& to, RenameIt rename_it) {
  if (from.empty() || to.empty()) return rename_it();
  const std::string kept = Keep(to);
  const int result = rename_it();
  const KeepErrno keep;
  if (result == 0) Note("renamed\t" + from + "\t" + to + "\t" + kept);
  return result;
}

// The argument after `flags`, if there is one.
#define SOFTLOOKUP_MODE(flags)                                      \
  mode_t mode = 0;                                                  \
  if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) { \
    va_list arguments;                                              \
    va_start(arguments, flags);                                     \
    mode = va_arg(arguments, mode_t);                               \
    va_end(arguments);                                              \
  }

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  SOFTLOOKUP_MODE(flags)
  return OpenAndNote(PathAt(AT_FDCWD, path), flags,
                     [&] { return Next<Open>("open")(path, flags, mode); });
}

int open64(const char* path, int flags, ...) {
  SOFTLOOKUP_MODE(flags)
  return OpenAndNote(PathAt(AT_FDCWD, path), flags,
                     [&] { return Next<Open>("open64")(path, flags, mode); });
}

int openat(int at, const char* path, int flags, ...) {
  SOFTLOOKUP_MODE(flags)
  return OpenAndNote(PathAt(at, path), flags,
                     [&] { return Next<OpenAt>("openat")(at, path, flags, mode); });
}

int openat64(int at, const char* path, int flags, ...) {
  SOFTLOOKUP_MODE(flags)
  return OpenAndNote(PathAt(at, path), flags,
                     [&] { return Next<OpenAt>("openat64")(at, path, flags, mode); });
}

int creat(const char* path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int fsync(int file) { return SyncAndNote(file, Next<Sync>("fsync")); }
int fdatasync(int file) { return SyncAndNote(file, Next<Sync>("fdatasync")); }

int rename(const char* from, const char* to) noexcept {
  return RenameAndNote(PathAt(AT_FDCWD, from), PathAt(AT_FDCWD, to),
                       [&] { return Next<Rename>("rename")(from, to); });
}

int renameat(int from_at, const char* from, int to_at, const char* to) noexcept {
  return RenameAndNote(PathAt(from_at, from), PathAt(to_at, to),
                       [&] { return Next<RenameAt>("renameat")(from_at, from, to_at, to); });
}

int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  return RenameAndNote(PathAt(from_at, from), PathAt(to_at, to), [&] {
    return Next<RenameAt2>("renameat2")(from_at, from, to_at, to, flags);
  });
}

}  // extern "C"
