#ifndef SOFTLOOKUP_SERVER_ROUTER_H_
#define SOFTLOOKUP_SERVER_ROUTER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/admin/admin_pages.h"
#include "server/admin/http_server.h"
#include "server/cluster/call_set.h"
#include "server/cluster/shared_limit.h"
#include "server/cluster_files.h"
#include "server/flags.h"
#include "server/front_end.h"
#include "server/limits/heap_trim.h"
#include "server/observability/process_stats.h"
#include "server/observability/routed_nodes.h"
#include "server/router/cluster_watch.h"
#include "server/router/limited_identities.h"
#include "server/router/ranged_stores.h"
#include "server/router/router_service.h"
#include "server/router/seen_revisions.h"
#include "server/router/silence_watch.h"
#include "server/router/tenant_table.h"

namespace softlookup::server {

// A running router: takes calls as a server does, and passes them on to the nodes of a cluster.
// Keeps nothing.
class Router {
 public:
  // Listens, then waits until the cluster has a node that can be called. Meanwhile the health
  // service reports NOT_SERVING, /readyz answers 503, and calls fail with CLUSTER_UNAVAILABLE. The
  // errors are those of FrontEnd, INVALID_ARGUMENT if certificates are unusable, UNAVAILABLE if the
  // HTTP port cannot be listened on, and CANCELLED once should_stop() returns true.
  static absl::StatusOr<std::unique_ptr<Router>> Start(const Flags& flags,
                                                       const std::function<bool()>& should_stop);
  ~Router();

  const std::string& grpc_address() const { return front_end_->address(); }
  const std::string& http_address() const { return http_address_; }

  // As FrontEnd::Reload() and FrontEnd::Stop().
  void Reload() { front_end_->Reload(); }
  void Stop(absl::Duration grace);

 private:
  Router(std::unique_ptr<FrontEnd> front_end, const Flags& flags, EtcdOptions etcd,
         const PeerPem& pem);

  // Bytes of what ranges have answered to lookups that are in progress.
  static constexpr std::uint64_t kPartBytesMax = std::uint64_t{1} << 30;

  // Whether a node can be called.
  bool has_node() const;
  RoutedNodes nodes() const;
  std::string metrics() const;

  // Lets the health service report whether a node can be called, while this router serves.
  void KeepHealth();

  const std::unique_ptr<FrontEnd> front_end_;
  absl::Mutex health_mutex_;
  bool serves_ ABSL_GUARDED_BY(health_mutex_) = false;
  const std::shared_ptr<CallSet> calls_ = std::make_shared<CallSet>();  // Of nodes.
  SeenRevisions revisions_;
  RangedStores ranged_stores_;
  LimitedIdentities limited_identities_;
  SharedLimit part_bytes_{kPartBytesMax};
  SilenceWatch silence_;
  ClusterWatch watch_;
  TenantTable tenants_;
  RouterService service_;
  ProcessStats process_stats_;
  HeapTrim heap_trim_;
  AdminPages pages_;
  HttpServer http_{[this](const std::string& request) { return pages_.Answer(request); }};
  std::string http_address_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_H_
