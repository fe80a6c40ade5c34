#ifndef SOFTLOOKUP_SERVER_RPC_LOOKUP_CALL_H_
#define SOFTLOOKUP_SERVER_RPC_LOOKUP_CALL_H_

#include <memory>

#include "server/rpc/call.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// Start a Lookup call and an Attend call. Each call deletes itself when it is over.
void StartLookup(std::unique_ptr<Call> call, Engine& engine);
void StartAttend(std::unique_ptr<Call> call, Engine& engine);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_LOOKUP_CALL_H_
