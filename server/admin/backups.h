#ifndef SOFTLOOKUP_SERVER_ADMIN_BACKUPS_H_
#define SOFTLOOKUP_SERVER_ADMIN_BACKUPS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "server/admin/backup_directory.h"
#include "server/base/single_task.h"
#include "softlookup/admin/v1/admin.pb.h"

namespace softlookup::server {

// Makes the backups that callers ask for, one at a time, each on a thread of its own. Its
// destructor waits until a backup in progress has ended. Thread-safe.
class Backups {
 public:
  // Does the same as Engine::CopyTo.
  using Copy = std::function<absl::Status(const std::string& directory)>;
  // Does the same as Engine::DamagedStores.
  using DamagedStores = std::function<std::vector<std::string>()>;
  using Callback = absl::AnyInvocable<void(absl::StatusOr<admin::v1::Backup>)>;

  // `directory` is the path of the BackupDirectory. If it is "", Create(), List() and Find() fail
  // with BACKUPS_DISABLED. Calls `damaged_stores` and `copy` for each backup. Calls `on_made` after
  // each backup that succeeds. All three run on the thread that makes the backup.
  Backups(Copy copy, DamagedStores damaged_stores, std::string directory,
          std::function<void()> on_made)
      : copy_(std::move(copy)),
        damaged_stores_(std::move(damaged_stores)),
        directory_(std::move(directory)),
        on_made_(std::move(on_made)) {}

  // Makes a backup on a thread of its own. Admin.CreateBackup (admin.proto) describes the backup
  // and its errors. An empty `name` stands for the current time in UTC, such as 20240229T130500Z.
  // `callback` runs once: on the backup's thread, or on the caller's if the backup cannot begin.
  // The next Create() waits until it has returned. So it must be quick, and must not call Create()
  // itself.
  void Create(const std::string& name, Callback callback);

  // Does the same as BackupDirectory::List(). Also BACKUPS_DISABLED.
  absl::StatusOr<std::vector<admin::v1::Backup>> List() const;

  // Returns the backup `name`, the value of a request's field `backup`. Errors: BACKUPS_DISABLED;
  // INVALID_NAME; BACKUP_NOT_FOUND; DATA_LOSS if its manifest cannot be read.
  absl::StatusOr<admin::v1::Backup> Find(const std::string& name) const;
  // Does the same as BackupDirectory::Check(). Find() must have found the backup `name`.
  absl::Status Check(const std::string& name, const CancelToken& cancel) const {
    return directory_.Check(name, cancel);
  }
  // Returns the path of the backup `name`, which Find() must have found.
  std::string DirectoryOf(const std::string& name) const { return directory_.DirectoryOf(name); }

 private:
  absl::Status CheckEnabled() const;
  // Makes a backup, and logs how that ended, and which damaged stores it has. Returns the backup.
  absl::StatusOr<admin::v1::Backup> Make(const std::string& name, absl::Time begin) const;

  const Copy copy_;
  const DamagedStores damaged_stores_;
  const BackupDirectory directory_;
  const std::function<void()> on_made_;

  SingleTask making_;  // Declared last: its destructor waits for the backup in progress.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_BACKUPS_H_
