#ifndef SOFTLOOKUP_SERVER_SERVICE_H_
#define SOFTLOOKUP_SERVER_SERVICE_H_

#include <memory>
#include <utility>

#include "server/admin/backups.h"
#include "server/admin/cluster_methods.h"
#include "server/rpc/call.h"
#include "server/rpc/health.h"
#include "server/rpc/routed_metadata.h"
#include "server/rpc/rpc.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// Dispatches the calls of all methods: admits a call, and passes it to the code that serves its
// method. Thread-safe.
class Service {
 public:
  // Copies `dependencies` and `member`. What their members refer to, and the other arguments, must
  // outlive the service and its calls. The service must outlive its calls.
  Service(const CallDependencies& dependencies, Engine& engine, Backups& backups, Health& health,
          GroupMember member)
      : dependencies_(dependencies),
        engine_(engine),
        backups_(backups),
        health_(health),
        member_(std::move(member)) {}

  // Begins to serve a new call. Ends it at once, with UNKNOWN_METHOD or the error of
  // CallGate::Admit(), if it cannot be served.
  void Begin(Rpc& rpc, CallOrigin origin);

 private:
  void Serve(std::unique_ptr<Call> call);

  const CallDependencies dependencies_;
  Engine& engine_;
  Backups& backups_;
  Health& health_;
  const GroupMember member_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SERVICE_H_
