#include "server/admin/admin_methods.h"

#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/unary_call.h"
#include "softlookup/admin/v1/admin.pb.h"

namespace softlookup::server {
namespace {

class CreateBackupCall final
    : public MessageCall<admin::v1::CreateBackupRequest, admin::v1::Backup> {
 public:
  CreateBackupCall(std::unique_ptr<Call> call, Backups& backups)
      : MessageCall(std::move(call), RunOn::kWorker), backups_(backups) {}

 private:
  void Run() override {
    backups_.Create(request_.name(), [this](absl::StatusOr<admin::v1::Backup> backup) {
      absl::Status status = backup.status();
      if (status.ok()) response_ = *std::move(backup);
      Answer(std::move(status), response_);
    });
  }

  Backups& backups_;
};

}  // namespace

void StartCreateBackup(std::unique_ptr<Call> call, Backups& backups) {
  (new CreateBackupCall(std::move(call), backups))->Start();
}

void StartListBackups(std::unique_ptr<Call> call, Backups& backups, const Limits& limits) {
  StartCall<admin::v1::ListBackupsRequest, admin::v1::ListBackupsResponse>(
      std::move(call), UnaryCall::RunOn::kWorker,
      [&backups, &limits](Call&, const admin::v1::ListBackupsRequest&,
                          admin::v1::ListBackupsResponse& response) -> absl::Status {
        SOFTLOOKUP_ASSIGN_OR_RETURN(std::vector<admin::v1::Backup> list, backups.List());
        for (admin::v1::Backup& backup : list) *response.add_backups() = std::move(backup);
        return CheckAnswerBytes(response, limits.message_bytes_max);
      });
}

}  // namespace softlookup::server
