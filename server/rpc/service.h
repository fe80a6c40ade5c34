#ifndef SOFTLOOKUP_SERVER_RPC_SERVICE_H_
#define SOFTLOOKUP_SERVER_RPC_SERVICE_H_

#include <memory>

#include "server/admin/backups.h"
#include "server/rpc/call_tracker.h"
#include "server/rpc/health.h"
#include "server/rpc/rpc.h"
#include "softlookup/engine.h"

namespace softlookup::server {

class Call;

// Every method that the server has: lets a call in, and hands it to what serves its method.
// Thread-safe.
class Service {
 public:
  // All must outlive the service and its calls.
  Service(CallTracker& calls, Engine& engine, Backups& backups, Health& health)
      : calls_(calls), engine_(engine), backups_(backups), health_(health) {}

  // A call has come. UNKNOWN_METHOD, and what Call::Admit() refuses, end it at once.
  void Begin(Rpc& rpc);

 private:
  void Serve(std::unique_ptr<Call> call);

  CallTracker& calls_;
  Engine& engine_;
  Backups& backups_;
  Health& health_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_SERVICE_H_
