#ifndef SOFTLOOKUP_SERVER_RPC_COMPACT_CALL_H_
#define SOFTLOOKUP_SERVER_RPC_COMPACT_CALL_H_

#include <memory>

#include "server/rpc/call.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// Starts a CompactStore call. It deletes itself when it is over. The work runs on a thread of its
// own, for one call of the server at a time: another call is refused with COMPACTION_IN_PROGRESS.
// The work ends early when the call is cancelled or its deadline passes, when the server stops, and
// when the caller loses its rights.
void StartCompactStore(std::unique_ptr<Call> call, Engine& engine);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_COMPACT_CALL_H_
