#include "client/tool/restore.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/tool/backup_files.h"
#include "client/tool/exit_code.h"
#include "client/tool/whole_file.h"
#include "softlookup/admin/v1/admin.pb.h"

namespace softlookup::tool {
namespace {

namespace fs = std::filesystem;
using admin::v1::BackupManifest;

absl::Status FileError(const fs::path& path, const std::error_code& error) {
  return InputError(path.string(), error.message());
}

// Returns the absolute path without a slash at its end, so that filename() and parent_path() work.
fs::path Absolute(const std::string& directory) {
  const fs::path path = fs::absolute(directory).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

// Returns InputError if `target` lies in `backup`, also by way of links.
absl::Status CheckIsOutside(const fs::path& target, const fs::path& backup) {
  std::error_code error;
  const fs::path inner = fs::weakly_canonical(target, error);
  if (error) return FileError(target, error);
  const fs::path outer = fs::weakly_canonical(backup, error);
  if (error) return FileError(backup, error);
  const fs::path relative = inner.lexically_relative(outer);
  if (relative.empty() || *relative.begin() == "..") return absl::OkStatus();
  return InputError(target.string(),
                    absl::StrCat("lies in the backup ", backup.string(),
                                 ", which would no longer be what was backed up; name a directory "
                                 "outside of it"));
}

absl::Status CheckTarget(const fs::path& target) {
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  if (status.type() == fs::file_type::not_found) return absl::OkStatus();
  if (error) return FileError(target, error);
  if (!fs::is_directory(status)) return InputError(target.string(), "is not a directory");
  const bool empty = fs::is_empty(target, error);
  if (error) return FileError(target, error);
  if (empty) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(target.string(), " is not empty; a backup is restored to a new directory"));
}

absl::Status CopyPart(const fs::path& from, const BackupManifest::File& file, const fs::path& to) {
  const std::string source = (from / file.name()).string();
  FileCheck check(file);
  CLIENT_RETURN_IF_ERROR(CopyFile(source, (to / file.name()).string(),
                                  [&check](std::string_view part) { check.Add(part); }));
  return check.Finish(source);
}

absl::Status CopyFiles(const fs::path& from, const BackupManifest& manifest, const fs::path& to) {
  CLIENT_RETURN_IF_ERROR(EnsureDirectory(to.string()));
  for (const BackupManifest::File& file : manifest.files()) {
    CLIENT_RETURN_IF_ERROR(CopyPart(from, file, to));
  }
  return SyncDirectory(to.string());
}

// Renames `partial` to `target` in one step, so that a server never finds half of the files. Syncs
// the new entry.
absl::Status Rename(const fs::path& partial, const fs::path& target) {
  std::error_code error;
  fs::rename(partial, target, error);
  if (error == std::errc::device_or_resource_busy) {
    return InputError(target.string(),
                      "cannot be replaced, as something is mounted there; name a new directory in "
                      "it instead");
  }
  if (error) return FileError(target, error);
  return SyncReplaced(target.string());
}

}  // namespace

absl::StatusOr<Restored> RestoreBackup(const std::string& backup_directory,
                                       const std::string& data_directory) {
  const fs::path backup = Absolute(backup_directory), target = Absolute(data_directory);
  CLIENT_ASSIGN_OR_RETURN(const BackupManifest manifest, ReadBackupManifest(backup.string()));
  CLIENT_RETURN_IF_ERROR(CheckIsOutside(target, backup));
  CLIENT_RETURN_IF_ERROR(CheckTarget(target));
  const fs::path partial =
      target.parent_path() / absl::StrCat(".", target.filename().string(), ".restoring");
  std::error_code ignored;
  fs::remove_all(partial, ignored);  // A killed attempt may have left it.
  absl::Status status = CopyFiles(backup, manifest, partial);
  if (status.ok()) status = Rename(partial, target);
  if (!status.ok()) {
    fs::remove_all(partial, ignored);
    return status;
  }
  return Restored{.data_directory = target.string(),
                  .files = manifest.files_size(),
                  .bytes = ByteSizeOf(manifest),
                  .sizes_only = HasSizesOnly(manifest),
                  .damaged_stores = manifest.damaged_stores()};
}

}  // namespace softlookup::tool
