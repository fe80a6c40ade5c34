#include "server/admin/backups.h"

#include <spdlog/spdlog.h>

#include <optional>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace softlookup::server {
namespace {

std::string NameOf(absl::Time time) {
  return absl::FormatTime("%Y%m%dT%H%M%SZ", time, absl::UTCTimeZone());
}

}  // namespace

absl::Status Backups::CheckEnabled() const {
  if (!directory_.path().empty()) return absl::OkStatus();
  return MakeError(reasons::kBackupsDisabled,
                   "The server has no directory for backups; start it with --backup-dir DIR");
}

void Backups::Create(const std::string& name, Callback callback) {
  absl::Status status = CheckEnabled();
  if (status.ok() && !name.empty()) status = CheckBackupName("name", name);
  if (!status.ok()) return callback(status);
  if (!making_.Claim()) return callback(BackupInProgress());
  const absl::Time begin = absl::Now();
  making_.Run([this, begin, name = name.empty() ? NameOf(begin) : name,
               callback = std::move(callback)]() mutable -> SingleTask::Finish {
    absl::StatusOr<admin::v1::Backup> backup = Make(name, begin);
    return [this, backup = std::move(backup), callback = std::move(callback)]() mutable {
      if (backup.ok()) on_made_();
      callback(std::move(backup));
    };
  });
}

absl::StatusOr<admin::v1::Backup> Backups::Make(const std::string& name, absl::Time begin) const {
  absl::Status status = directory_.Make(name, begin, damaged_stores_(), copy_);
  std::optional<admin::v1::Backup> backup;
  if (status.ok()) backup = directory_.Find(name);
  if (status.ok() && !backup) status = absl::InternalError("it is gone again");
  if (!status.ok()) {
    spdlog::warn("backup {}: {}", name, std::string(status.message()));
    return status;
  }
  spdlog::info("backup {} of {} bytes made in {:.3f} s", name, backup->byte_size(),
               absl::ToDoubleSeconds(absl::Now() - begin));
  if (!backup->damaged_stores().empty()) {
    spdlog::warn(
        "backup {} has the damage of stores that could not be loaded: {}; keep an older backup "
        "that has them whole",
        name, absl::StrJoin(backup->damaged_stores(), ", "));
  }
  return *backup;
}

absl::StatusOr<admin::v1::Backup> Backups::Find(const std::string& name) const {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckEnabled());
  SOFTLOOKUP_RETURN_IF_ERROR(CheckBackupName("backup", name));
  return directory_.Get(name);
}

absl::StatusOr<std::vector<admin::v1::Backup>> Backups::List() const {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckEnabled());
  return directory_.List();
}

}  // namespace softlookup::server
