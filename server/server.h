#ifndef SOFTLOOKUP_SERVER_SERVER_H_
#define SOFTLOOKUP_SERVER_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admin/admin_pages.h"
#include "server/admin/backups.h"
#include "server/admin/http_server.h"
#include "server/flags.h"
#include "server/limits/heap_trim.h"
#include "server/observability/call_observer.h"
#include "server/observability/disk_watch.h"
#include "server/observability/engine_log.h"
#include "server/observability/line_limiter.h"
#include "server/observability/process_stats.h"
#include "server/observability/security_stats.h"
#include "server/open_engine.h"
#include "server/rpc/call_auditor.h"
#include "server/rpc/call_counter.h"
#include "server/rpc/call_limiters.h"
#include "server/rpc/grpc_port.h"
#include "server/rpc/health.h"
#include "server/rpc/rpc_server.h"
#include "server/rpc/stream_registry.h"
#include "server/security/audit_log.h"
#include "server/security/authenticator.h"
#include "server/security/file_watcher.h"
#include "server/security/tls_credentials.h"
#include "server/service.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// A running server. Makes its parts, and starts and stops them in order. The parts are the engine,
// gRPC with health and reflection, and the operator's HTTP port.
class Server {
 public:
  // Listens, then loads the stores of the data directory. Until this returns, the health service
  // reports NOT_SERVING, /readyz answers 503, and calls that concern a store fail with LOADING.
  //
  // UNAVAILABLE: the server cannot listen, open the audit log, or make backups in their directory.
  // INVALID_ARGUMENT: the certificates or the auth rules are unusable.
  // FAILED_PRECONDITION: `flags.data_dir` is no data directory and cannot become one
  // (InspectDataDirectory), or `flags.insecure` is not set and other machines could connect without
  // TLS or without auth rules. INTERNAL: gRPC does not start. Also the errors of OpenEngine()
  // and LoadEngine().
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const Flags& flags, const std::function<bool()>& should_stop = [] { return false; });

  // Returns true if this is a replica that can never serve again.
  bool has_failed() const;

  // The addresses that the server listens on, as HOST:PORT with the ports in use.
  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& http_address() const { return http_address_; }

  // Reads the certificates and the auth file again, applies them if they have changed, and reopens
  // the audit log.
  void Reload();

  // Refuses new connections, and new calls except health checks. Ends the streams, except ReadRows:
  // each answers the messages that it has read, then ends. Ends lookups that wait for a revision,
  // calls whose first message has not come, and the compaction and the restore in progress. Lets
  // the other calls in progress end for up to `grace`, then cancels the rest. Returns once all
  // calls are over. A call that makes a backup is over only when the backup has ended.
  void Stop(absl::Duration grace);

 private:
  // `engine_log` is the observer of the engine. `grpc_port` must be bound.
  Server(OpenedEngine opened, std::shared_ptr<EngineLog> engine_log,
         std::unique_ptr<AuditLog> audit, std::unique_ptr<GrpcPort> grpc_port, const Flags& flags);

  // Loads the certificates and the auth file, and starts to watch them for changes.
  absl::Status LoadSecurity(const Flags& flags);
  absl::Status ServeGrpc(const Flags& flags);
  SecurityStats security_stats() const;

  const std::unique_ptr<AuditLog> audit_;  // Null: there is none.
  const std::shared_ptr<EngineLog> engine_log_;
  LineLimiter refusals_{kRefusalLinesPerSecondMax};
  Authenticator authenticator_;
  std::shared_ptr<TlsCredentials> tls_;  // Null: plaintext.
  ReloadCounter tls_reloads_;
  ReloadCounter auth_reloads_;
  CallObserver observer_;
  // Members are destroyed in reverse order. The engine's last callbacks can use calls_, streams_
  // and limiters_, so opened_ comes after these. The last tasks of limiters_.workers can use the
  // members above limiters_, so limiters_ comes after those.
  CallCounter calls_;
  StreamRegistry streams_;
  CallLimiters limiters_;
  const OpenedEngine opened_;
  Engine& engine_ = *opened_.engine;
  DiskWatch disk_watch_;
  Backups backups_;
  Health health_;
  Service service_;
  ProcessStats process_stats_;
  HeapTrim heap_trim_;
  AdminPages pages_;
  HttpServer http_{[this](const std::string& request) { return pages_.Answer(request); }};
  FileWatcher files_;
  const std::unique_ptr<GrpcPort> grpc_port_;
  RpcServer rpcs_;  // Destroyed before the members above: its calls use them.
  std::string grpc_address_;
  std::string http_address_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SERVER_H_
