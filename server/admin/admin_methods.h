#ifndef SOFTLOOKUP_SERVER_ADMIN_ADMIN_METHODS_H_
#define SOFTLOOKUP_SERVER_ADMIN_ADMIN_METHODS_H_

#include <memory>

#include "core/base/limits.h"
#include "server/admin/backups.h"
#include "server/rpc/call.h"

namespace softlookup::server {

// Each starts a call of a method of the Admin service. The call deletes itself when it is over.
// `backups` and `limits` must outlive it.
void StartCreateBackup(std::unique_ptr<Call> call, Backups& backups);
void StartListBackups(std::unique_ptr<Call> call, Backups& backups, const Limits& limits);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_ADMIN_METHODS_H_
