#ifndef SOFTLOOKUP_SERVER_RPC_RANGE_CALLS_H_
#define SOFTLOOKUP_SERVER_RPC_RANGE_CALLS_H_

#include <memory>

#include "server/rpc/call.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// Start the calls of server/rpc/ranges/ranges.proto, which routers make. Each call deletes itself
// when it is over.
void StartBeginLookup(std::unique_ptr<Call> call, Engine& engine);
void StartAnswerPart(std::unique_ptr<Call> call, Engine& engine);
void StartAnswerFirstPart(std::unique_ptr<Call> call, Engine& engine);
void StartSumRows(std::unique_ptr<Call> call, Engine& engine);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_RANGE_CALLS_H_
