#include "server/admin_service.h"

#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "server/codec.h"
#include "server/status.h"
#include "server/unary_call.h"

namespace softlookup::server {

grpc::ServerUnaryReactor* AdminService::CreateBackup(grpc::CallbackServerContext* context,
                                                     const admin::v1::CreateBackupRequest* request,
                                                     admin::v1::Backup* response) {
  auto* call = new UnaryCall(calls_, {Method::kCreateBackup, *context});
  absl::Status status = CheckMessageBytes(*request, engine_.limits().message_bytes_max);
  if (status.ok() && calls_.is_draining()) status = ShuttingDown();
  if (!status.ok()) {
    call->Refuse(status);
    return call;
  }
  backups_.Create(request->name(), [call, response](absl::StatusOr<admin::v1::Backup> backup) {
    if (backup.ok()) *response = *std::move(backup);
    call->Answer(UnaryCall::Kind::kWrite, backup.status(), *response);
  });
  return call;
}

grpc::ServerUnaryReactor* AdminService::ListBackups(grpc::CallbackServerContext* context,
                                                    const admin::v1::ListBackupsRequest* request,
                                                    admin::v1::ListBackupsResponse* response) {
  return AnswerNow(UnaryCall::Kind::kRead, calls_, {Method::kListBackups, *context}, engine_,
                   *request, *response, [&]() -> absl::Status {
                     SOFTLOOKUP_ASSIGN_OR_RETURN(std::vector<admin::v1::Backup> backups,
                                                 backups_.List());
                     for (admin::v1::Backup& backup : backups)
                       *response->add_backups() = std::move(backup);
                     return CheckAnswerBytes(*response, engine_.limits().message_bytes_max);
                   });
}

}  // namespace softlookup::server
