#ifndef SOFTLOOKUP_SERVER_ADMIN_SERVICE_H_
#define SOFTLOOKUP_SERVER_ADMIN_SERVICE_H_

#include "server/backups.h"
#include "server/call.h"
#include "softlookup/admin/v1/admin.grpc.pb.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// The operator's methods. Thread-safe.
class AdminService final : public admin::v1::Admin::CallbackService {
 public:
  // All must outlive the service; `calls` as for SoftLookupService.
  AdminService(CallTracker& calls, const Engine& engine, Backups& backups)
      : calls_(calls), engine_(engine), backups_(backups) {}

  grpc::ServerUnaryReactor* CreateBackup(grpc::CallbackServerContext* context,
                                         const admin::v1::CreateBackupRequest* request,
                                         admin::v1::Backup* response) override;
  grpc::ServerUnaryReactor* ListBackups(grpc::CallbackServerContext* context,
                                        const admin::v1::ListBackupsRequest* request,
                                        admin::v1::ListBackupsResponse* response) override;

 private:
  CallTracker& calls_;
  const Engine& engine_;
  Backups& backups_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_SERVICE_H_
