#include "server/cluster/seeding.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/status_macros.h"
#include "server/base/data_files.h"
#include "server/base/file_descriptor.h"
#include "server/cluster/fetch_seed.h"

namespace softlookup::server {
namespace {

namespace fs = std::filesystem;

// How often should_stop() is asked while nothing else happens.
constexpr absl::Duration kAskInterval = absl::Milliseconds(100);
// The rest after attempts that have brought nothing doubles from the one to the other. Each attempt
// has the primary copy its records.
constexpr absl::Duration kRestMin = absl::Milliseconds(200);
constexpr absl::Duration kRestMax = absl::Seconds(30);
constexpr absl::Duration kWaitingLineInterval = absl::Seconds(5);

constexpr char kLockName[] = "LOCK";

absl::Status DiskError(const fs::path& path, const std::error_code& error) {
  return absl::UnavailableError(absl::StrCat(path.string(), ": ", error.message()));
}
absl::Status DiskError(const fs::path& path) {
  return DiskError(path, std::error_code(errno, std::generic_category()));
}

absl::Status SyncDirectory(const fs::path& directory) {
  const std::error_code error = SyncPath(directory);
  return error ? DiskError(directory, error) : absl::OkStatus();
}

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Whether a file of this name has records, or shows that there were some.
bool IsOfRecords(absl::string_view name) {
  return name == kRootFile || name == "SYNCED" || IsNumberedFile(name, ".sst") ||
         IsNumberedFile(name, ".log") || absl::StartsWith(name, "MANIFEST-");
}

// Whether the engine makes files of this name.
bool IsOfEngine(absl::string_view name) {
  return IsOfRecords(name) || name == "RESERVE" || name == "IDENTITY" || name == kLockName ||
         absl::StartsWith(name, "LOG") || absl::StartsWith(name, "OPTIONS-");
}

absl::StatusOr<std::vector<fs::path>> FilesIn(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    files.push_back(it->path());
  }
  if (error) return DiskError(directory, error);
  return files;
}

// A data directory, and the places of a seed in it. No other process changes it meanwhile.
class SeededDirectory {
 public:
  static absl::StatusOr<SeededDirectory> Open(const std::string& path) {
    const fs::path data = fs::absolute(path);
    std::error_code error;
    if (fs::create_directories(data, error)) {
      SOFTLOOKUP_RETURN_IF_ERROR(SyncDirectory(data.parent_path()));
    }
    if (error) return DiskError(data, error);
    // The engine's own lock. A lock of this kind ends when the process closes the file, so the
    // engine takes it only after this object is gone.
    FileDescriptor lock(open((data / kLockName).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    struct flock range = {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    if (lock.get() < 0) return DiskError(data / kLockName);
    if (fcntl(lock.get(), F_SETLK, &range) != 0) {
      return MakeError(reasons::kDirectoryInUse,
                       absl::StrCat("Another process has the directory ", path, " open"));
    }
    return SeededDirectory(data, std::move(lock));
  }

  const fs::path& incoming() const { return incoming_; }
  bool must_seed_again() const { return Exists(data_ / kSeedAgain); }

  absl::StatusOr<bool> IsNew() const {
    SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesIn(data_));
    return std::ranges::none_of(
        files, [](const fs::path& file) { return IsOfRecords(file.filename().string()); });
  }
  // Removes the records, the root first.
  absl::Status RemoveRecords() const {
    SOFTLOOKUP_RETURN_IF_ERROR(Remove(data_ / kRootFile));
    SOFTLOOKUP_RETURN_IF_ERROR(SyncDirectory(data_));
    SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesIn(data_));
    for (const fs::path& file : files) {
      const std::string name = file.filename().string();
      if (!IsOfEngine(name) || name == kLockName) continue;
      SOFTLOOKUP_RETURN_IF_ERROR(Remove(file));
    }
    SOFTLOOKUP_RETURN_IF_ERROR(Remove(data_ / kSeedAgain));
    return SyncDirectory(data_);
  }
  // Removes what attempts have left.
  absl::Status Clear() const { return Remove(incoming_); }
  // The bytes of what attempts have left, as far as they can be counted.
  std::uint64_t IncomingBytes() const {
    std::uint64_t bytes = 0;
    std::error_code error;
    for (fs::directory_iterator it(incoming_, error), end; !error && it != end;
         it.increment(error)) {
      const std::uintmax_t size = it->file_size(error);
      if (!error) bytes += size;
    }
    return bytes;
  }
  // All files of the seed are there, and on the disk.
  absl::Status SetComplete() const {
    SOFTLOOKUP_RETURN_IF_ERROR(Remove(incoming_ / kLockName));
    std::error_code error;
    fs::rename(incoming_, complete_, error);
    if (error) return DiskError(incoming_, error);
    return SyncDirectory(data_);
  }
  // Moves the files of a complete seed up, the root last. So a start that is cut short goes on.
  absl::Status Install() const {
    if (!Exists(complete_)) return absl::OkStatus();
    if (Exists(complete_ / kRootFile)) {
      if (Exists(data_ / kRootFile)) {
        return absl::FailedPreconditionError(absl::StrCat(
            data_.string(), " has records that were made after ", complete_.string(),
            ", a copy of those of another replica, had arrived; remove the wrong ones"));
      }
      SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesIn(complete_));
      for (const fs::path& file : files) {
        if (file.filename() != kRootFile) SOFTLOOKUP_RETURN_IF_ERROR(MoveUp(file));
      }
      SOFTLOOKUP_RETURN_IF_ERROR(SyncDirectory(data_));
      SOFTLOOKUP_RETURN_IF_ERROR(MoveUp(complete_ / kRootFile));
      SOFTLOOKUP_RETURN_IF_ERROR(SyncDirectory(data_));
    }
    return Remove(complete_);
  }

 private:
  SeededDirectory(fs::path data, FileDescriptor lock)
      : data_(std::move(data)),
        incoming_(data_ / kSeedIncoming),
        complete_(data_ / kSeedComplete),
        lock_(std::move(lock)) {}

  static absl::Status Remove(const fs::path& path) {
    std::error_code error;
    fs::remove_all(path, error);
    return error ? DiskError(path, error) : absl::OkStatus();
  }
  absl::Status MoveUp(const fs::path& file) const {
    std::error_code error;
    fs::rename(file, data_ / file.filename(), error);
    return error ? DiskError(file, error) : absl::OkStatus();
  }

  fs::path data_, incoming_, complete_;
  FileDescriptor lock_;
};

// Copies the records of `source`. FAILED_PRECONDITION if they are not of this group.
absl::Status FetchAndAdopt(const SeededDirectory& directory, const ReplicaName& name,
                           const PeerOptions& peers, const SeedSource& source,
                           const std::function<bool()>& should_stop) {
  spdlog::info("copies the records of its group from node {} at {}", source.node, source.address);
  const absl::Time begin = absl::Now();
  const std::string incoming = directory.incoming().string();
  const absl::Status fetched = FetchSeed(source.address, peers, source.node, incoming, should_stop);
  if (!fetched.ok()) {
    // Whatever the other side has said, another attempt may succeed.
    return absl::UnavailableError(
        absl::StrCat("node ", source.node, " at ", source.address, ": ", fetched.message()));
  }
  absl::Status adopted = AdoptSeed(name, incoming);
  if (!adopted.ok()) {
    directory.Clear().IgnoreError();  // The caller gets the first error.
    return adopted;
  }
  SOFTLOOKUP_RETURN_IF_ERROR(directory.SetComplete());
  spdlog::info("has the records of its group, after {:.1f} s",
               absl::ToDoubleSeconds(absl::Now() - begin));
  return absl::OkStatus();
}

// Returns false if should_stop() has returned true meanwhile.
bool Rest(absl::Duration rest, const std::function<bool()>& should_stop) {
  const absl::Time end = absl::Now() + rest;
  while (!should_stop()) {
    const absl::Duration left = end - absl::Now();
    if (left <= absl::ZeroDuration()) return true;
    absl::SleepFor(std::min(left, kAskInterval));
  }
  return false;
}

}  // namespace

absl::Status SeedIfNew(const std::string& data_directory, const ReplicaName& name,
                       const PeerOptions& peers, bool may_found, ReplicaThread& thread,
                       const std::function<bool()>& should_stop) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const SeededDirectory directory,
                              SeededDirectory::Open(data_directory));
  SOFTLOOKUP_RETURN_IF_ERROR(directory.Install());
  SOFTLOOKUP_ASSIGN_OR_RETURN(const bool is_new, directory.IsNew());
  if (!is_new && !directory.must_seed_again()) return directory.Clear();
  absl::Time next_line = absl::Now() + kWaitingLineInterval;
  for (absl::Duration rest = kRestMin;; rest = std::min(2 * rest, kRestMax)) {
    const absl::StatusOr<std::optional<SeedSource>> source =
        FindSeedSource(name, may_found, thread);
    absl::Status status = source.status();
    if (source.ok()) {
      if (!source->has_value()) return directory.Clear();
      // The group has all that these records have.
      if (directory.must_seed_again()) SOFTLOOKUP_RETURN_IF_ERROR(directory.RemoveRecords());
      const std::uint64_t bytes_before = directory.IncomingBytes();
      status = FetchAndAdopt(directory, name, peers, **source, should_stop);
      if (status.ok()) return directory.Install();
      if (directory.IncomingBytes() > bytes_before) rest = kRestMin;
    } else {
      rest = kRestMin;  // Nothing was copied.
    }
    if (!absl::IsUnavailable(status)) return status;
    if (absl::Now() >= next_line) {
      next_line = absl::Now() + kWaitingLineInterval;
      spdlog::info("waits for the records of its group: {}", std::string(status.message()));
    }
    if (!Rest(rest, should_stop)) {
      return absl::CancelledError("stopped before it had the records of its group");
    }
  }
}

absl::Status SeedAgain(const std::string& data_directory) {
  const fs::path mark = fs::path(data_directory) / kSeedAgain;
  const FileDescriptor file(open(mark.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (file.get() < 0) return DiskError(mark);
  return SyncDirectory(data_directory);
}

bool HasUnfinishedSeed(const std::string& data_directory) {
  return Exists(fs::path(data_directory) / kSeedComplete);
}

}  // namespace softlookup::server
