#ifndef SOFTLOOKUP_SERVER_ROUTER_ROUTED_UNARY_H_
#define SOFTLOOKUP_SERVER_ROUTER_ROUTED_UNARY_H_

#include <memory>

#include "server/router/routed_call.h"
#include "server/rpc/call.h"

namespace softlookup::server {

// Returns who makes `call`, for the node that will answer it.
RoutedCaller CallerOf(const Call& call);

// Passes the one request of `call` to a node, and its answer back. `parts` must outlive the call.
// FAILED_PRECONDITION (SEVERAL_GROUPS) if the method is for a cluster of one group, and there are
// several.
void StartRoutedUnary(std::unique_ptr<Call> call, const RouterParts& parts);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_ROUTED_UNARY_H_
