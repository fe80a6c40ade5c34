#ifndef SOFTLOOKUP_SERVER_SERVER_H_
#define SOFTLOOKUP_SERVER_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admin/admin_http.h"
#include "server/admin/backups.h"
#include "server/flags.h"
#include "server/limits/heap_trim.h"
#include "server/observability/call_observer.h"
#include "server/observability/log_limiter.h"
#include "server/observability/process_stats.h"
#include "server/rpc/call_tracker.h"
#include "server/rpc/connection_listener.h"
#include "server/rpc/health.h"
#include "server/rpc/rpc_server.h"
#include "server/rpc/service.h"
#include "server/security/audit_log.h"
#include "server/security/authenticator.h"
#include "server/security/file_watcher.h"
#include "server/security/tls_credentials.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// A running server: the engine, gRPC with health and reflection, and the operator's HTTP port.
class Server {
 public:
  // Listens, then loads the stores: until it returns, the health service says NOT_SERVING, /readyz
  // 503, and calls about stores are answered LOADING. UNAVAILABLE if an address cannot be listened
  // on, INVALID_ARGUMENT for certificates or rules that cannot be used, FAILED_PRECONDITION for an
  // address that strangers may reach without both, and the errors of Engine::Open and Load.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Flags& flags);

  // Where it listens, as HOST:PORT with the real ports.
  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& http_address() const { return http_address_; }

  // Reads certificates and rules again, if they have changed, and opens the audit log anew.
  void Reload();

  // Refuses new calls, lets running ones end for up to `grace`, then cancels them. Blocks, also
  // until a backup that is being made is whole.
  void Stop(absl::Duration grace);

 private:
  Server(std::unique_ptr<Engine> engine, std::unique_ptr<AuditLog> audit, const Flags& flags);

  // Loads certificates and rules for the first time, and watches them from now on.
  absl::Status LoadSecurity(const Flags& flags);
  absl::Status Listen(const Flags& flags);
  absl::Status ServeGrpc(const Flags& flags, std::size_t connections_max);
  // Ends the connection of `peer`, as gRPC names it, and says so in the log.
  void CutConnection(const std::string& peer, absl::string_view why);
  // What the health service and /readyz say.
  void SetServing(bool serving);

  const std::unique_ptr<AuditLog> audit_;
  Authenticator authenticator_;
  std::shared_ptr<TlsCredentials> tls_;  // Null: plaintext.
  CallObserver observer_;
  // Before the engine, whose last callbacks may still use it.
  CallTracker calls_;
  const std::unique_ptr<Engine> engine_;
  Backups backups_;
  Health health_;
  Service service_;
  ProcessStats process_stats_;
  HeapTrim heap_trim_;
  AdminHttp http_;
  FileWatcher files_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  ConnectionListener listener_;  // Hands connections to the acceptor.
  LogLimiter cut_lines_{1};
  RpcServer rpcs_;  // Before the rest in destruction: calls use it.
  std::string grpc_address_;
  std::string http_address_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SERVER_H_
