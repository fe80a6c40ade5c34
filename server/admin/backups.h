#ifndef SOFTLOOKUP_SERVER_ADMIN_BACKUPS_H_
#define SOFTLOOKUP_SERVER_ADMIN_BACKUPS_H_

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// Returns FAILED_PRECONDITION if `directory` is a backup. A server that opened the backup as its
// data directory would change it.
absl::Status CheckIsNoBackup(const std::string& directory);

// Returns the time at which the newest backup in `directory` was begun. Returns the Unix epoch if
// there is no backup or no `directory`, and nullopt if the directory cannot be read. Backups begun
// after `now` do not count.
std::optional<absl::Time> NewestBackupTime(const std::string& directory, absl::Time now);

// Makes and lists the backups of an engine. Each backup is a directory with a manifest,
// BACKUP.json, and all backups are in one directory. The name of a partial backup begins with a
// dot. So a partial backup that a crash leaves behind is not taken for a whole one. The next
// Create() removes it. Thread-safe.
class Backups {
 public:
  using Callback = absl::AnyInvocable<void(absl::StatusOr<admin::v1::Backup>)>;

  // The first backup creates `directory`. If `directory` is "", every call fails with
  // BACKUPS_DISABLED. Calls `on_made` after each backup that succeeds, on the thread that made it.
  // `engine` must outlive this.
  Backups(Engine& engine, std::string directory, std::function<void()> on_made)
      : engine_(engine), directory_(std::move(directory)), on_made_(std::move(on_made)) {}
  // Waits until a backup in progress has ended.
  ~Backups();

  // Makes a backup on a thread of its own. Admin.CreateBackup (admin.proto) describes the backup
  // and its errors. An empty `name` stands for the current time in UTC, such as 20240229T130500Z.
  // `callback` runs once: on the backup's thread, or on the caller's if the backup cannot begin. It
  // must be quick, because the next Create() waits for it. For the same reason it must not call
  // Create().
  void Create(const std::string& name, Callback callback);

  // Returns the backups that are complete, oldest first.
  absl::StatusOr<std::vector<admin::v1::Backup>> List() const;

 private:
  absl::Status CheckEnabled() const;
  // Calls MakeAlone() and logs how that ended. Returns the backup.
  absl::StatusOr<admin::v1::Backup> Make(const std::string& name, absl::Time begin) const;
  // Locks the directory and makes the backup in it. Removes the partial backup if that fails.
  // BACKUP_IN_PROGRESS if another process has the lock. BACKUP_EXISTS if the name is taken.
  absl::Status MakeAlone(const std::string& name, absl::Time begin) const;
  // Removes the partial backups. The directory must be locked.
  void RemoveLeftovers() const;

  Engine& engine_;
  const std::string directory_;
  const std::function<void()> on_made_;

  absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;   // Whether a backup is being made.
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // Makes, or has made, the last backup.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_BACKUPS_H_
