#ifndef SOFTLOOKUP_SERVER_ADMIN_BACKUPS_H_
#define SOFTLOOKUP_SERVER_ADMIN_BACKUPS_H_

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

// The backups of an engine, each a directory with a BACKUP.json in one directory for all. Where one
// is being made its name has a dot before it, so what a crash leaves is not taken for a backup; the
// next one to be made removes it. Thread-safe.
class Backups {
 public:
  using Callback = absl::AnyInvocable<void(absl::StatusOr<admin::v1::Backup>)>;

  // `directory` is made with the first backup. Empty: there are none, and every call says so.
  // `engine` must outlive this.
  Backups(Engine& engine, std::string directory)
      : engine_(engine), directory_(std::move(directory)) {}
  // Waits for the one that is being made.
  ~Backups();

  // Makes a backup on a thread of its own, as Admin.CreateBackup says. `callback` runs once, there,
  // or here if nothing is to be made; it must be quick.
  void Create(const std::string& name, Callback callback);

  // Those that are whole, oldest first.
  absl::StatusOr<std::vector<admin::v1::Backup>> List() const;

 private:
  absl::Status CheckEnabled() const;
  // Makes the backup, and leaves nothing if that fails.
  absl::StatusOr<admin::v1::Backup> Make(const std::string& name, absl::Time begin) const;
  // The same once no other process makes one.
  absl::Status MakeAlone(const std::string& name, absl::Time begin) const;
  void RemoveLeftovers() const;

  Engine& engine_;
  const std::string directory_;

  absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // Of the last one made.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_BACKUPS_H_
