#ifndef SOFTLOOKUP_SERVER_ROUTER_ROUTER_SERVICE_H_
#define SOFTLOOKUP_SERVER_ROUTER_ROUTER_SERVICE_H_

#include "server/router/routed_call.h"
#include "server/rpc/call.h"
#include "server/rpc/health.h"
#include "server/rpc/rpc.h"

namespace softlookup::server {

// Takes the calls of a router's clients: identifies the callers, as Service does, and passes the
// calls on. The nodes decide what a caller may do. Thread-safe.
class RouterService {
 public:
  // What the arguments refer to must outlive the service and its calls, as must the service itself.
  RouterService(const CallDependencies& dependencies, const RouterParts& parts, Health& health)
      : dependencies_(dependencies), parts_(parts), health_(health) {}

  // As Service::Begin(), for a call of a client.
  void Begin(Rpc& rpc);

 private:
  const CallDependencies dependencies_;
  const RouterParts parts_;
  Health& health_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_ROUTER_SERVICE_H_
