#include "server/router.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "server/base/host_port.h"
#include "server/observability/metrics_page.h"
#include "server/rpc/time_slice.h"

namespace softlookup::server {
namespace {

constexpr absl::Duration kLookInterval = absl::Milliseconds(50);
constexpr absl::Duration kTellInterval = absl::Seconds(5);

void TellOfEtcd(const std::string& trouble) {
  if (trouble.empty()) return spdlog::info("etcd answers again");
  spdlog::warn("{}", trouble);
}

}  // namespace

Router::Router(std::unique_ptr<FrontEnd> front_end, const Flags& flags, EtcdOptions etcd,
               const PeerPem& pem)
    : front_end_(std::move(front_end)),
      watch_({.etcd = std::move(etcd),
              .cluster = flags.cluster,
              .node_credentials = PeerChannelCredentials(pem),
              .calls_only_loopback = pem.ca.empty() && !flags.insecure,
              .on_second = [this] { revisions_.Advance(); },
              .on_tick =
                  [this] {
                    KeepHealth();
                    silence_.Tick();
                  },
              .on_trouble = TellOfEtcd}),
      tenants_(watch_, flags.cluster),
      service_(front_end_->dependencies(),
               {.calls = calls_,
                .watch = watch_,
                .tenants = tenants_,
                .revisions = revisions_,
                .ranged_stores = ranged_stores_,
                .limited_identities = limited_identities_,
                .silence = silence_,
                .part_bytes = part_bytes_,
                .message_bytes_max = flags.limits.message_bytes_max},
               front_end_->health()),
      heap_trim_([stats = std::make_shared<ProcessStats>()] { return stats->resident_bytes(); }),
      pages_([this] { return front_end_->health().is_serving(); }, [this] { return metrics(); }) {}

Router::~Router() {
  front_end_->Close();
  calls_->CancelAll();
}

absl::StatusOr<std::unique_ptr<Router>> Router::Start(const Flags& flags,
                                                      const std::function<bool()>& should_stop) {
  // For all threads that this one starts, those of gRPC among them: each step is short, and a
  // client waits for it.
  AskForShortTimeSlices();
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::unique_ptr<FrontEnd> front_end, FrontEnd::Listen(flags));
  SOFTLOOKUP_ASSIGN_OR_RETURN(EtcdOptions etcd, EtcdOptionsOf(flags));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const PeerPem pem, PemOfPeers(flags));
  const HostPort http = *SplitHostPort(flags.http_listen);
  SOFTLOOKUP_ASSIGN_OR_RETURN(FileDescriptor http_listener, ListenForHttp(http.host, http.port));
  SOFTLOOKUP_RETURN_IF_ERROR(front_end->OpenAuditLog(flags));
  std::unique_ptr<Router> router(new Router(std::move(front_end), flags, std::move(etcd), pem));
  RouterService& service = router->service_;
  SOFTLOOKUP_RETURN_IF_ERROR(
      router->front_end_->Serve(flags, [&service](Rpc& rpc) { service.Begin(rpc); }));
  SOFTLOOKUP_RETURN_IF_ERROR(router->http_.Start(std::move(http_listener)));
  router->http_address_ = JoinHostPort(http.host, router->http_.port());

  absl::Time next_tell = absl::Now() + kTellInterval;
  while (!router->has_node()) {
    if (should_stop()) {
      router->Stop(absl::ZeroDuration());
      return absl::CancelledError("stopped before a node of the cluster could be called");
    }
    if (absl::Now() >= next_tell) {
      spdlog::info("waits for a node of cluster {} that can be called", flags.cluster);
      next_tell += kTellInterval;
    }
    absl::SleepFor(kLookInterval);
  }
  {
    absl::MutexLock lock(&router->health_mutex_);
    router->serves_ = true;
  }
  router->KeepHealth();
  return router;
}

void Router::Stop(absl::Duration grace) {
  {
    absl::MutexLock lock(&health_mutex_);
    serves_ = false;
  }
  front_end_->Stop(grace);
}

void Router::KeepHealth() {
  absl::MutexLock lock(&health_mutex_);
  if (serves_) front_end_->health().SetServing(has_node());
}

bool Router::has_node() const {
  const std::shared_ptr<const ClusterMap> map = watch_.map();
  return std::ranges::any_of(map->groups, [](const ClusterMap::Group& group) {
    return std::ranges::any_of(group.replicas,
                               [](const auto& replica) { return replica.node->is_connected(); });
  });
}

RoutedNodes Router::nodes() const {
  RoutedNodes nodes{.has_etcd = watch_.has_etcd()};
  const std::shared_ptr<const ClusterMap> map = watch_.map();
  for (const ClusterMap::Group& group : map->groups) {
    for (const auto& [node, is_current] : group.replicas) {
      nodes.nodes.push_back({.group = group.name,
                             .node = node->name(),
                             .is_connected = node->is_connected(),
                             .is_primary = node == group.primary,
                             .in_progress = node->in_progress(),
                             .answered = node->answered(),
                             .failed = node->failed()});
    }
  }
  return nodes;
}

std::string Router::metrics() const {
  return RouterMetricsPage(nodes(), front_end_->metrics(), process_stats_,
                           front_end_->security_stats(), front_end_->health().is_serving());
}

}  // namespace softlookup::server
