#ifndef SOFTLOOKUP_SERVER_ADMIN_RESTORE_CALL_H_
#define SOFTLOOKUP_SERVER_ADMIN_RESTORE_CALL_H_

#include <memory>

#include "server/admin/backups.h"
#include "server/admin/cluster_methods.h"
#include "server/rpc/call.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// Starts a RestoreStore call. It deletes itself when it is over. The work runs on a thread of its
// own, for one call of the server at a time: another call is refused with RESTORE_IN_PROGRESS. The
// work ends early when the call is cancelled or its deadline passes, when the server stops, and
// when the caller loses its rights. Nothing is restored then. `engine`, `backups` and `member`, and
// what that refers to, must outlive the call.
void StartRestoreStore(std::unique_ptr<Call> call, Engine& engine, const Backups& backups,
                       const GroupMember& member);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_RESTORE_CALL_H_
