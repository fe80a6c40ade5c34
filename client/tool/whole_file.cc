#include "client/tool/whole_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/tool/exit_code.h"

namespace softlookup::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = 1 << 20;

absl::Status Errno(const std::string& path) { return InputError(path, std::strerror(errno)); }

absl::Status ExistsError(const std::string& path) {
  return absl::AlreadyExistsError(absl::StrCat(path, " exists and is not overwritten"));
}

// A file descriptor that is closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

absl::StatusOr<Descriptor> OpenDirectory(const std::string& path) {
  Descriptor directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return Errno(path);
  return directory;
}

std::string DirectoryOf(const std::string& path) {
  const fs::path name(path);
  const fs::path parent = (name.has_filename() ? name : name.parent_path()).parent_path();
  return parent.empty() ? "." : parent.string();
}

absl::Status WriteAll(int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Errno(path);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status Sync(int file, const std::string& path) {
  return fsync(file) == 0 ? absl::OkStatus() : Errno(path);
}

// Reads `file` to its end and passes each part to `take`.
absl::Status ReadAll(int file, const std::string& path,
                     absl::FunctionRef<absl::Status(std::string_view)> take) {
  std::vector<char> buffer(kBufferBytes);
  for (;;) {
    const ssize_t count = read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Errno(path);
    if (count == 0) return absl::OkStatus();
    CLIENT_RETURN_IF_ERROR(take({buffer.data(), static_cast<std::size_t>(count)}));
  }
}

// The contents and attributes of a file that EditFile() replaces.
struct Existing {
  std::string bytes;
  struct stat attributes;
};

// Returns false if there is no file at `path`.
absl::StatusOr<bool> ReadExisting(const std::string& path, Existing* existing) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) return false;
  if (file.get() < 0 || fstat(file.get(), &existing->attributes) != 0) return Errno(path);
  CLIENT_RETURN_IF_ERROR(ReadAll(file.get(), path, [existing](std::string_view part) {
    existing->bytes.append(part);
    return absl::OkStatus();
  }));
  return true;
}

absl::Status CopyAttributes(const struct stat& from, int to, const std::string& path) {
  struct stat own;
  if (fstat(to, &own) != 0) return Errno(path);
  const bool same_owner = own.st_uid == from.st_uid && own.st_gid == from.st_gid;
  if (!same_owner && fchown(to, from.st_uid, from.st_gid) != 0) {
    return InputError(path, absl::StrCat("its owner cannot be kept: ", std::strerror(errno)));
  }
  return fchmod(to, from.st_mode & 07777) == 0 ? absl::OkStatus() : Errno(path);
}

// Makes a new file, has `write` fill it, and syncs it. If writing or syncing fails, removes the
// file.
absl::Status Create(const std::string& path, mode_t mode,
                    absl::FunctionRef<absl::Status(int file)> write) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (file.get() < 0 && errno == EEXIST) return ExistsError(path);
  if (file.get() < 0) return Errno(path);
  absl::Status written = write(file.get());
  if (written.ok()) written = Sync(file.get(), path);
  if (!written.ok()) unlink(path.c_str());
  return written;
}

}  // namespace

absl::Status CreateFile(const std::string& path, std::string_view bytes, mode_t mode) {
  CLIENT_ASSIGN_OR_RETURN(const Descriptor directory, OpenDirectory(DirectoryOf(path)));
  // The name is random, so that it does not meet a file that a crash left behind.
  const std::string temporary = absl::StrCat(path, ".", absl::Hex(std::random_device{}()));
  CLIENT_RETURN_IF_ERROR(
      Create(temporary, mode, [&](int file) { return WriteAll(file, bytes, temporary); }));
  const absl::Cleanup remove_temporary = [&] { unlink(temporary.c_str()); };
  // Unlike rename(), link() never replaces a file.
  if (link(temporary.c_str(), path.c_str()) != 0) {
    return errno == EEXIST ? ExistsError(path) : Errno(path);
  }
  absl::Status synced = Sync(directory.get(), path);
  if (!synced.ok()) unlink(path.c_str());
  return synced;
}

absl::Status WriteFile(const std::string& path, std::string_view bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (!file) return InputError(path, absl::StrCat("cannot be written: ", std::strerror(errno)));
  return absl::OkStatus();
}

std::string FollowLinks(std::string path) {
  constexpr int kLinksMax = 40;  // As many as Linux follows.
  for (int link = 0; link < kLinksMax; ++link) {
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = (fs::path(path).parent_path() / target).string();
  }
  return path;
}

absl::Status CheckWritable(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const auto refuse = [&](const char* why) {
    return InputError(path, absl::StrCat("cannot be written: ", why));
  };
  struct stat attributes;
  if (stat(path.c_str(), &attributes) == 0 && S_ISFIFO(attributes.st_mode) &&
      !absl::StartsWith(path, "/dev/")) {
    return refuse("it is a pipe");  // To open and close it would end its reader.
  }
  int file = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) {
    const std::string target = FollowLinks(path);
    file = open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) unlink(target.c_str());
  }
  if (file < 0) return refuse(std::strerror(errno));
  close(file);
  return absl::OkStatus();
}

absl::Status ReadFile(const std::string& path, absl::FunctionRef<void(std::string_view)> take) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return Errno(path);
  return ReadAll(file.get(), path, [take](std::string_view part) {
    take(part);
    return absl::OkStatus();
  });
}

absl::Status CopyFile(const std::string& from, const std::string& to,
                      absl::FunctionRef<void(std::string_view)> take) {
  const Descriptor source(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (source.get() < 0) return Errno(from);
  return Create(to, kOwnerOnly, [&](int file) {
    return ReadAll(source.get(), from, [&](std::string_view part) {
      take(part);
      return WriteAll(file, part, to);
    });
  });
}

absl::Status EditFile(const std::string& path,
                      const std::function<absl::StatusOr<std::string>(std::string)>& edit) {
  // If `path` is a link, edit the file that it names.
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(path, error);
  const std::string target = error ? path : resolved.string();
  CLIENT_ASSIGN_OR_RETURN(const Descriptor directory, OpenDirectory(DirectoryOf(target)));
  // The lock is held until `directory` is closed. The lock is on the directory, because EditFile()
  // replaces the file, and a lock on the old file would not stop the next edit.
  if (flock(directory.get(), LOCK_EX) != 0) return Errno(target);
  Existing existing;
  CLIENT_ASSIGN_OR_RETURN(const bool exists, ReadExisting(target, &existing));
  CLIENT_ASSIGN_OR_RETURN(const std::string edited, edit(existing.bytes));
  if (exists && edited == existing.bytes) return absl::OkStatus();

  std::string temporary = absl::StrCat(target, ".XXXXXX");
  const Descriptor file(mkostemp(temporary.data(), O_CLOEXEC));  // Its mode is 0600.
  if (file.get() < 0) return Errno(temporary);
  absl::Cleanup remove_temporary = [&] { unlink(temporary.c_str()); };
  if (exists) CLIENT_RETURN_IF_ERROR(CopyAttributes(existing.attributes, file.get(), target));
  CLIENT_RETURN_IF_ERROR(WriteAll(file.get(), edited, temporary));
  CLIENT_RETURN_IF_ERROR(Sync(file.get(), temporary));
  if (rename(temporary.c_str(), target.c_str()) != 0) return Errno(target);
  std::move(remove_temporary).Cancel();
  return SyncReplaced(target);
}

absl::Status SyncDirectory(const std::string& path) {
  CLIENT_ASSIGN_OR_RETURN(const Descriptor directory, OpenDirectory(path));
  return Sync(directory.get(), path);
}

absl::Status SyncReplaced(const std::string& path) {
  absl::Status synced = SyncDirectory(DirectoryOf(path));
  if (synced.ok()) return synced;
  return Annotate(synced, absl::StrCat(path, " is in place, but a power cut may undo that"));
}

absl::Status EnsureDirectory(const std::string& path) {
  if (mkdir(path.c_str(), kOwnerOnlyDirectory) == 0) return SyncDirectory(DirectoryOf(path));
  if (errno == EEXIST) {
    std::error_code error;
    return fs::is_directory(path, error) ? absl::OkStatus()
                                         : InputError(path, "is not a directory");
  }
  const std::string parent = fs::path(path).parent_path().string();
  if (errno != ENOENT || parent.empty() || parent == path) return Errno(path);
  CLIENT_RETURN_IF_ERROR(EnsureDirectory(parent));
  // If `path` ends in a slash, `parent` is the same directory, and mkdir() finds that it exists.
  const bool exists = mkdir(path.c_str(), kOwnerOnlyDirectory) == 0 || errno == EEXIST;
  return exists ? SyncDirectory(parent) : Errno(path);
}

}  // namespace softlookup::tool
