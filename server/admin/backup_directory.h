#ifndef SOFTLOOKUP_SERVER_ADMIN_BACKUP_DIRECTORY_H_
#define SOFTLOOKUP_SERVER_ADMIN_BACKUP_DIRECTORY_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "softlookup/admin/v1/admin.pb.h"

namespace softlookup::server {

// Returns INVALID_NAME if `name` cannot be the name of a backup. `field` is the request's field
// that holds it.
absl::Status CheckBackupName(absl::string_view field, const std::string& name);

// Returns BACKUP_IN_PROGRESS with a retry delay: the error of a backup that is refused because
// another one is being made.
absl::Status BackupInProgress();

// Returns STORAGE_FAILED: `user`, who runs this process, cannot `what` the directory for backups
// because of `error`. The message names --backup-dir, the directory and the remedy.
absl::Status BackupAccessError(absl::string_view what, const std::string& directory,
                               const std::error_code& error, uid_t user);

// The directory that holds all backups, as it is on the disk. Each backup is a directory in it,
// with a manifest, BACKUP.json. The name of a partial backup begins with a dot. So a partial backup
// that a crash leaves behind is not taken for a whole one. The next Make() removes it. Thread-safe.
class BackupDirectory {
 public:
  // The file of a backup that only backups have.
  static constexpr char kManifestName[] = "BACKUP.json";

  // Copies the data directory to `directory`, which does not exist yet. May use another new
  // directory beside it, with the further suffix .tmp, until the copy is complete.
  using Copy = absl::FunctionRef<absl::Status(const std::string& directory)>;

  // Prepare() creates the directory `path` if it is missing, and so does Make().
  explicit BackupDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // Creates the directory if it is missing, and finds out whether this process may make backups in
  // it. The error of BackupAccessError() if not. A full disk is no error: the next Make() may find
  // room.
  absl::Status Prepare() const;

  // Makes the backup `name`, which was begun at `begin`, of what `copy` copies. `name` must have
  // passed CheckBackupName(). The manifest lists `damaged_stores`. The backup is safe on disk when
  // this returns. If this fails, it removes the partial backup.
  //
  // BACKUP_IN_PROGRESS if another Make(), perhaps of another process, is at work in the directory.
  // BACKUP_EXISTS if the name is taken. STORAGE_FAILED for errors of the file system. Also the
  // errors of `copy`.
  absl::Status Make(const std::string& name, absl::Time begin,
                    const std::vector<std::string>& damaged_stores, Copy copy) const;

  // Returns the backup `name`. Nullopt if there is none, or if its manifest cannot be read.
  std::optional<admin::v1::Backup> Find(const std::string& name) const;
  // As Find(), but says what is wrong: BACKUP_NOT_FOUND, or DATA_LOSS if the manifest cannot be
  // read.
  absl::StatusOr<admin::v1::Backup> Get(const std::string& name) const;
  // Reads all files of the backup `name`, which must have passed CheckBackupName(), and compares
  // their sizes and checksums with its manifest. A backup of format 1 has no checksums. DATA_LOSS,
  // which names the file, if one is missing or is not as it was backed up, or if the manifest is of
  // a later format. STORAGE_FAILED if a file cannot be read. Also the errors of Get(), and of
  // `cancel`, which ends the work.
  absl::Status Check(const std::string& name, const CancelToken& cancel) const;
  // Returns the path of the backup `name`, which must have passed CheckBackupName().
  std::string DirectoryOf(const std::string& name) const;
  // Returns the backups that are complete, oldest first. There are none if the directory does not
  // exist. STORAGE_FAILED if it cannot be read.
  absl::StatusOr<std::vector<admin::v1::Backup>> List() const;
  // Returns the time at which the newest backup was begun. Returns the Unix epoch if there is no
  // backup or no directory, and nullopt if the directory cannot be read. Backups begun after `now`
  // do not count.
  std::optional<absl::Time> NewestTime(absl::Time now) const;

 private:
  // Removes the partial backups. The directory must be locked.
  void RemoveLeftovers() const;

  const std::string path_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_BACKUP_DIRECTORY_H_
