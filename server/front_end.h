#ifndef SOFTLOOKUP_SERVER_FRONT_END_H_
#define SOFTLOOKUP_SERVER_FRONT_END_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/flags.h"
#include "server/observability/call_observer.h"
#include "server/observability/engine_log.h"
#include "server/observability/line_limiter.h"
#include "server/observability/security_stats.h"
#include "server/rpc/call.h"
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

namespace softlookup::server {

// The side of a server that its clients see, whoever answers their calls: the gRPC port with its
// certificates, the auth rules, the audit log, the health service, and the limits on all calls.
class FrontEnd {
 public:
  // Listens for gRPC. Clients can connect, but are not served before Serve(). Also leaves file
  // descriptors for `other_connections`.
  //
  // UNAVAILABLE: the server cannot listen. INVALID_ARGUMENT: the certificates or the auth rules are
  // unusable. FAILED_PRECONDITION: `flags.insecure` is not set, and other machines could connect
  // without TLS or without auth rules.
  static absl::StatusOr<std::unique_ptr<FrontEnd>> Listen(const Flags& flags,
                                                          std::size_t other_connections = 0);
  // As Close().
  ~FrontEnd() { Close(); }
  FrontEnd(const FrontEnd&) = delete;
  FrontEnd& operator=(const FrontEnd&) = delete;

  // Opens the audit log, if `flags` name one. Call this before Serve().
  absl::Status OpenAuditLog(const Flags& flags);
  // Loads the certificates and the auth rules, watches them for changes, and passes each call to
  // `accept` (RpcServer::Accept). Call this once. INTERNAL if gRPC does not start; also the errors
  // of GrpcPort::Start().
  absl::Status Serve(const Flags& flags, RpcServer::Accept accept);

  // What the calls use. Valid once the audit log is open, as long as this.
  CallDependencies dependencies();
  // The observer of an engine whose stores the calls are about.
  const std::shared_ptr<EngineLog>& engine_log() const { return engine_log_; }
  Health& health() { return health_; }
  const CallMetrics& metrics() const { return observer_.metrics(); }
  SecurityStats security_stats() const;
  // HOST:PORT, with the port in use.
  const std::string& address() const { return address_; }

  // Reads the certificates and the auth file again, applies them if they have changed, and reopens
  // the audit log.
  void Reload();

  // Refuses new connections, and new calls except health checks. Ends the streams, except ReadRows:
  // each answers the messages that it has read, then ends. Ends lookups that wait for a revision,
  // calls whose first message has not come, and the compaction and the restore in progress. Lets
  // the other calls in progress end for up to `grace`, then cancels the rest. Returns once all
  // calls are over. A call that makes a backup is over only when the backup has ended.
  void Stop(absl::Duration grace);
  // Cancels the calls in progress, and returns once they are over. Does nothing after Stop().
  void Close() { rpcs_.reset(); }

 private:
  FrontEnd(const Flags& flags, std::unique_ptr<GrpcPort> grpc_port);

  absl::Status LoadSecurity(const Flags& flags);

  std::unique_ptr<AuditLog> audit_;  // Null: there is none.
  const std::shared_ptr<EngineLog> engine_log_ = std::make_shared<EngineLog>();
  LineLimiter refusals_{kRefusalLinesPerSecondMax};
  Authenticator authenticator_;
  std::shared_ptr<TlsCredentials> tls_;  // Null: plaintext.
  ReloadCounter tls_reloads_;
  ReloadCounter auth_reloads_;
  CallObserver observer_;
  CallCounter calls_;
  StreamRegistry streams_;
  // The last tasks of limiters_.workers can use the members above.
  CallLimiters limiters_;
  Health health_;
  FileWatcher files_;
  const std::unique_ptr<GrpcPort> grpc_port_;
  std::unique_ptr<RpcServer> rpcs_;  // Null before Serve() and after Close().
  std::string address_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_FRONT_END_H_
