#ifndef SOFTLOOKUP_SERVER_ADMIN_ADMIN_METHODS_H_
#define SOFTLOOKUP_SERVER_ADMIN_ADMIN_METHODS_H_

#include <memory>

#include "core/base/limits.h"
#include "server/admin/backups.h"
#include "server/rpc/call.h"

namespace softlookup::server {

// Start a call of a method of the Admin service. Each call deletes itself when it is over.
void StartCreateBackup(std::unique_ptr<Call> call, Backups& backups);
void StartListBackups(std::unique_ptr<Call> call, Backups& backups, const Limits& limits);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_ADMIN_METHODS_H_
