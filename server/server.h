#ifndef SOFTLOOKUP_SERVER_SERVER_H_
#define SOFTLOOKUP_SERVER_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admin_http.h"
#include "server/admin_service.h"
#include "server/backups.h"
#include "server/call.h"
#include "server/call_observer.h"
#include "server/connection_listener.h"
#include "server/flags.h"
#include "server/process_stats.h"
#include "server/service.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// A running server: the engine, gRPC with health and reflection, and the operator's HTTP port.
class Server {
 public:
  // Listens, then loads the stores: until it returns, the health service says NOT_SERVING, /readyz
  // 503, and calls about stores are answered LOADING. UNAVAILABLE if an address cannot be listened
  // on, and the errors of Engine::Open and Load.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Flags& flags);

  // Where it listens, as HOST:PORT with the real ports.
  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& http_address() const { return http_address_; }

  // Refuses new calls, lets running ones end for up to `grace`, then cancels them. Blocks, also
  // until a backup that is being made is whole.
  void Stop(absl::Duration grace);

 private:
  Server(std::unique_ptr<Engine> engine, const Flags& flags);
  // What the health service and /readyz say.
  void SetServing(bool serving);

  CallObserver observer_;
  CallTracker calls_;  // Before the engine, whose last callbacks may still use it.
  const std::unique_ptr<Engine> engine_;
  Backups backups_;
  SoftLookupService service_;
  AdminService admin_service_;
  ProcessStats process_stats_;
  AdminHttp http_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  ConnectionListener listener_;         // Hands connections to the acceptor.
  std::unique_ptr<grpc::Server> grpc_;  // Before the rest in destruction: calls use it.
  std::string grpc_address_;
  std::string http_address_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SERVER_H_
