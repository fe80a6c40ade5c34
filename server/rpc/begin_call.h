#ifndef SOFTLOOKUP_SERVER_RPC_BEGIN_CALL_H_
#define SOFTLOOKUP_SERVER_RPC_BEGIN_CALL_H_

#include <memory>

#include "server/rpc/call.h"
#include "server/rpc/routed_metadata.h"
#include "server/rpc/rpc.h"

namespace softlookup::server {

// Begins to serve a new call: returns it if its caller may make calls of its method. Otherwise ends
// `rpc`, with UNKNOWN_METHOD or the error of CallGate::Admit(), and returns null. `dependencies`
// must outlive the call.
std::unique_ptr<Call> BeginCall(const CallDependencies& dependencies, Rpc& rpc, CallOrigin origin);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_BEGIN_CALL_H_
