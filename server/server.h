#ifndef SOFTLOOKUP_SERVER_SERVER_H_
#define SOFTLOOKUP_SERVER_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admin/admin_pages.h"
#include "server/admin/backups.h"
#include "server/admin/http_server.h"
#include "server/cluster/stored_tenants.h"
#include "server/flags.h"
#include "server/front_end.h"
#include "server/limits/heap_trim.h"
#include "server/observability/disk_watch.h"
#include "server/observability/process_stats.h"
#include "server/open_engine.h"
#include "server/rpc/router_calls.h"
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

  ~Server() { front_end_->Close(); }  // Calls use the other members.

  // Returns true if this is a replica that can never serve again.
  bool has_failed() const;

  // The addresses that the server listens on, as HOST:PORT with the ports in use.
  const std::string& grpc_address() const { return front_end_->address(); }
  const std::string& http_address() const { return http_address_; }

  // As FrontEnd::Reload().
  void Reload() { front_end_->Reload(); }
  // As FrontEnd::Stop(), also for the calls of routers. Answers other nodes until their end.
  void Stop(absl::Duration grace);

 private:
  // `router_calls` are those of `opened`.
  Server(OpenedEngine opened, std::unique_ptr<RouterCalls> router_calls,
         std::unique_ptr<FrontEnd> front_end, const Flags& flags);

  // Members are destroyed in reverse order. The engine's last callbacks can use what front_end_
  // has, so opened_ comes after it.
  const std::unique_ptr<FrontEnd> front_end_;
  const OpenedEngine opened_;
  Engine& engine_ = *opened_.engine;
  std::unique_ptr<StoredTenants> stored_tenants_;  // Null: the server is no replica.
  DiskWatch disk_watch_;
  Backups backups_;
  Service service_;
  ProcessStats process_stats_;
  HeapTrim heap_trim_;
  AdminPages pages_;
  HttpServer http_{[this](const std::string& request) { return pages_.Answer(request); }};
  // Destroyed before the members above: its calls use them.
  const std::unique_ptr<RouterCalls> router_calls_;  // Null: no router can call.
  std::string http_address_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SERVER_H_
