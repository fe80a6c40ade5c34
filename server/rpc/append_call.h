#ifndef SOFTLOOKUP_SERVER_RPC_APPEND_CALL_H_
#define SOFTLOOKUP_SERVER_RPC_APPEND_CALL_H_

#include <memory>

#include "server/rpc/call.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// Starts an Append call. The call deletes itself when it is over.
void StartAppend(std::unique_ptr<Call> call, Engine& engine);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_APPEND_CALL_H_
