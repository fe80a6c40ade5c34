#ifndef SOFTLOOKUP_SERVER_ROUTER_LIST_ALL_STORES_H_
#define SOFTLOOKUP_SERVER_ROUTER_LIST_ALL_STORES_H_

#include <memory>

#include "server/router/routed_call.h"
#include "server/rpc/call.h"

namespace softlookup::server {

// Answers a ListStores with the stores of all groups, by name. `parts` must outlive the call.
void StartListAllStores(std::unique_ptr<Call> call, const RouterParts& parts);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_LIST_ALL_STORES_H_
