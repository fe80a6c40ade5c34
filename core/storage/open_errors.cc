#include "core/storage/open_errors.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/error.h"
#include "core/storage/rocksdb_errors.h"

namespace softlookup {
namespace {

// Returns the owner of the file at `path`. Nullopt if it cannot be known.
std::optional<uid_t> OwnerOf(const std::string& path) {
  struct stat attributes {};
  if (lstat(path.c_str(), &attributes) != 0) return std::nullopt;
  return attributes.st_uid;
}

// Returns `directory`, then the paths of what is in it, sorted. Returns `directory` alone if it
// cannot be read.
std::vector<std::string> PathsOf(const std::string& directory) {
  std::vector<std::string> paths = {directory};
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    paths.push_back(it->path().string());
  }
  std::sort(paths.begin() + 1, paths.end());
  return paths;
}

// Returns what is wrong with a table in `directory` that has lost its end: the size that it has,
// and the size that it should have. RocksDB's `text` tells only the latter. Nullopt if `text` is
// another error.
std::optional<std::string> ShortTableFault(const std::string& directory, absl::string_view text) {
  constexpr absl::string_view kBegin = "file is too short (", kMiddle = " bytes) to be an sstable",
                              kSuffix = ".sst";
  const std::size_t begin = text.find(kBegin);
  if (begin == absl::string_view::npos) return std::nullopt;
  text.remove_prefix(begin + kBegin.size());
  const std::size_t middle = text.find(kMiddle);
  std::uint64_t expected = 0;
  if (middle == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, middle), &expected)) {
    return std::nullopt;
  }
  // The path follows, in RocksDB 7.8.3 without a space, and then the name of the manifest.
  text.remove_prefix(middle + kMiddle.size());
  const std::size_t end = text.find(kSuffix);
  if (end == absl::string_view::npos) return std::nullopt;
  const std::string path(text.substr(0, end + kSuffix.size()));
  const std::string name = path.substr(path.rfind('/') + 1);
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(directory + "/" + name, error);
  if (error || size >= expected) return std::nullopt;
  return absl::StrCat(name, " has ", size, " bytes instead of ", expected);
}

}  // namespace

absl::Status AccessError(const std::string& directory, uid_t user) {
  std::string message =
      absl::StrCat("cannot open the data directory ", directory, ": permission denied to uid ",
                   user, ", the user that runs this process; ");
  if (!OwnerOf(directory).has_value()) {
    absl::StrAppend(&message, "let that user enter the directories above it");
    return MakeError(reasons::kStorageFailed, message);
  }
  for (const std::string& path : PathsOf(directory)) {
    const std::optional<uid_t> owner = OwnerOf(path);
    if (!owner.has_value() || *owner == user) continue;
    absl::StrAppend(&message, path, " belongs to uid ", *owner,
                    ": run the process as that user, or give it the files: chown -R ", user, " ",
                    directory);
    return MakeError(reasons::kStorageFailed, message);
  }
  absl::StrAppend(&message, "look at the mode and the mount of what is there: chmod -R u+rwX ",
                  directory);
  return MakeError(reasons::kStorageFailed, message);
}

absl::Status OpenError(const std::string& directory, const rocksdb::Status& status) {
  // RocksDB has no status code for a directory in use, for a file that is missing, and for a file
  // of another user. So the text of `status` decides.
  const std::string text = status.ToString();
  if (absl::StrContains(text, "While lock file: ") ||
      absl::StrContains(text, "lock hold by current process")) {
    return MakeError(reasons::kDirectoryInUse,
                     absl::StrCat("another process has the data directory ", directory, " open"));
  }
  if (absl::StrContains(text, "Permission denied")) return AccessError(directory, geteuid());
  if (absl::StrContains(text, "No such file or directory")) {
    // RocksDB looks for a table by its name, then by the name that LevelDB would give it. The error
    // is about the latter.
    const std::string missing = absl::StrReplaceAll(WithoutPaths(text), {{".ldb", ".sst"}});
    return DamagedError(
        absl::StrCat("a file is missing in ", directory, ": ", missing, kRestoreRemedy));
  }
  if (const std::optional<std::string> fault = ShortTableFault(directory, text)) {
    return DamagedError(absl::StrCat(*fault, kRestoreRemedy));
  }
  if (status.IsCorruption()) {
    return DamagedError(absl::StrCat(WithoutPaths(text), kRestoreRemedy));
  }
  if (status.IsNoSpace()) {
    return FullDiskError(
        absl::StrCat("cannot open the data directory ", directory, ", whose disk is full"), status);
  }
  return UnavailableError(absl::StrCat("cannot open the data directory ", directory), status);
}

}  // namespace softlookup
