#include "server/admin/data_directory.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "server/admin/backup_directory.h"
#include "server/base/data_files.h"

namespace softlookup::server {
namespace {

namespace fs = std::filesystem;

// Returns whether the file `name` shows that stores were kept in its directory. A damaged data
// directory may lack some of these files. The others still show what it is.
bool IsOfStores(absl::string_view name) {
  return name == kRootFile || name == "SYNCED" || name == "RESERVE" ||
         absl::StartsWith(name, "MANIFEST-") || IsNumberedFile(name, ".sst");
}

bool IsOfSeed(absl::string_view name) {
  return name == kSeedIncoming || name == kSeedComplete || name == kSeedOutgoing ||
         name == kSeedAgain;
}

// Returns whether the file `name` can stand in a directory without making it somebody else's: a
// fresh file system has it, or a start that was cut short leaves it, also one of a replica.
bool IsOfNobody(absl::string_view name) {
  return name == "lost+found" || IsOfSeed(name) || name == "LOCK" || name == "LOG" ||
         name == "IDENTITY" || absl::StartsWith(name, "LOG.old") ||
         absl::StartsWith(name, "OPTIONS-") || absl::EndsWith(name, ".dbtmp") ||
         IsNumberedFile(name, ".log");
}

// Adds to `names` the name in `directory` that `path` leads through. If `path` does not lead into
// `directory`, adds at most "." or "..", which no file has as its name. Both paths are absolute.
void AddNameOn(const fs::path& path, const fs::path& directory, std::set<std::string>& names) {
  const fs::path relative = path.lexically_relative(directory);
  if (!relative.empty()) names.insert(relative.begin()->string());
}

// Returns the names in `directory` that one of `paths` leads through, either by the path's text or
// after links are followed. May also return "." and "..".
std::set<std::string> NamesOn(const std::vector<std::string>& paths, const std::string& directory) {
  std::error_code error;
  const fs::path base = fs::absolute(directory, error).lexically_normal();
  const fs::path followed_base = fs::weakly_canonical(base, error);
  std::set<std::string> names;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    const fs::path absolute = fs::absolute(path, error).lexically_normal();
    AddNameOn(absolute, base, names);
    AddNameOn(fs::weakly_canonical(absolute, error), followed_base, names);
  }
  return names;
}

// Returns the names of what is in `directory`, in order.
std::set<std::string> NamesIn(const std::string& directory, std::error_code& error) {
  std::set<std::string> names;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    names.insert(it->path().filename().string());
  }
  return names;
}

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string PathIn(const std::string& directory, const std::string& name) {
  return (fs::path(directory) / name).string();
}

bool IsBackup(const std::string& directory) {
  return Exists(PathIn(directory, BackupDirectory::kManifestName));
}

absl::Status CheckIsNoBackup(const std::string& directory) {
  if (!IsBackup(directory)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(directory,
                   " is a backup, and serving it would change it. Make a data directory "
                   "of it first: softlookup backup restore ",
                   directory, " DATA_DIRECTORY"));
}

// Returns the error of a directory with files of others, whose names are `others`.
absl::Status OthersError(const std::string& directory, const std::set<std::string>& others) {
  const std::string is_none = absl::StrCat(directory, " is no data directory: it has ",
                                           *others.begin(), ", and none of the files of one. ");
  // Looks for a data directory before it looks for backups: a backup beside it may be older.
  for (const std::string& name : others) {
    const std::string child = PathIn(directory, name);
    // A partial backup, whose name begins with a dot, has the root of a data directory, too.
    if (name[0] == '.' || IsBackup(child) || !Exists(PathIn(child, kRootFile))) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(is_none, "Did you mean --data-dir ", child,
                     "? A new data directory takes an empty or new directory"));
  }
  SOFTLOOKUP_RETURN_IF_ERROR(CheckHasNoBackups(directory));
  return absl::FailedPreconditionError(
      absl::StrCat(is_none,
                   "Look at --data-dir and at what is mounted; a new data directory takes an empty "
                   "or new directory"));
}

}  // namespace

absl::StatusOr<DataDirectoryState> InspectDataDirectory(const std::string& directory,
                                                        const std::vector<std::string>& own_paths) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckIsNoBackup(directory));
  std::error_code error;
  const std::set<std::string> names = NamesIn(directory, error);
  if (error == std::errc::no_such_file_or_directory) return DataDirectoryState::kNew;
  if (error) return DataDirectoryState::kExisting;
  if (std::any_of(names.begin(), names.end(), IsOfStores)) return DataDirectoryState::kExisting;
  const std::set<std::string> own = NamesOn(own_paths, directory);
  std::set<std::string> others;
  for (const std::string& name : names) {
    if (!IsOfNobody(name) && !own.contains(name)) others.insert(name);
  }
  if (!others.empty()) return OthersError(directory, others);
  // If only files of the write-ahead log are left, the engine says what is wrong.
  const bool has_log = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return IsNumberedFile(name, ".log");
  });
  return has_log ? DataDirectoryState::kExisting : DataDirectoryState::kNew;
}

absl::Status CheckHasNoBackups(const std::string& directory) {
  const auto backups = BackupDirectory(directory).List();
  if (!backups.ok() || backups->empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      directory,
      " is a directory of backups, not a data directory. To serve its newest backup, make a data "
      "directory of it first: softlookup backup restore ",
      PathIn(directory, backups->back().name()), " DATA_DIRECTORY"));
}

void WarnOfNewDataDirectory(const std::string& directory) {
  std::error_code error;
  const bool is_empty = NamesIn(directory, error).empty();
  const char* const state = !Exists(directory) ? "does not exist"
                            : is_empty         ? "is empty"
                                               : "has no stores yet";
  spdlog::warn(
      "{} {}: it becomes a new data directory; if stores should be there, look at --data-dir and "
      "at what is mounted",
      directory, state);
}

}  // namespace softlookup::server
