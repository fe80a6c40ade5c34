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

// Returns STORAGE_FAILED. The message says what this process cannot do to `directory`, which is
// `what`, such as "write to", and that `error` is why. It also names --backup-dir and the remedy.
// `user` is the one that runs this process.
absl::Status BackupAccessError(absl::string_view what, const std::string& directory,
                               const std::error_code& error, uid_t user);

// The directory that holds all backups, as it is on the disk. Each backup is a directory in it,
// with a manifest, BACKUP.json. The name of a partial backup begins with a dot. So a partial backup
// that a crash leaves behind is not taken for a whole one. The next Make() removes it. Thread-safe.
class BackupDirectory {
 public:
  // The name of the manifest. Only a backup has a file of this name.
  static constexpr char kManifestName[] = "BACKUP.json";

  // Copies the data directory to `directory`, which does not exist yet. Until the copy is complete,
  // may use another new directory beside it, whose name has .tmp behind that of `directory`.
  using Copy = absl::FunctionRef<absl::Status(const std::string& directory)>;

  // Prepare() creates the directory `path` if it is missing, and so does Make().
  explicit BackupDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // Creates the directory if it is missing. Returns the error of BackupAccessError() if this
  // process cannot make backups in it. A full disk is no error: the next Make() may find room.
  absl::Status Prepare() const;

  // Makes the backup `name` of what `copy` copies. `name` must have passed CheckBackupName(). The
  // manifest has `begin`, the time at which the backup was begun, and `damaged_stores`. The backup
  // is safe on disk when this returns. If this fails, it removes the partial backup.
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
  // Compares the files that the manifest of the backup `name` lists with what the manifest says of
  // them. Does not look at other files. `name` must have passed CheckBackupName(). Compares the
  // size of each file, and its checksum, for which it reads the whole file. A manifest of format 1
  // has no checksums. Then only the sizes are compared, and no listed file is read.
  //
  // DATA_LOSS, which names the file, if a listed file is missing or differs. DATA_LOSS, which names
  // the manifest, if the manifest has a format that this server does not know, lists no file, or
  // lists a path in place of a name. STORAGE_FAILED if a file cannot be read. Also the errors of
  // Get(). If `cancel` ends the reading of a file, its error.
  absl::Status Check(const std::string& name, const CancelToken& cancel) const;
  // Returns the path of the backup `name`, which must have passed CheckBackupName().
  std::string DirectoryOf(const std::string& name) const;
  // Returns the backups whose manifest can be read, oldest first. A partial backup is none. There
  // are none if the directory does not exist. STORAGE_FAILED if it cannot be read.
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
