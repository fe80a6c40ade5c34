#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_METRICS_PAGE_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_METRICS_PAGE_H_

#include <string>

#include "server/observability/call_metrics.h"
#include "server/observability/disk_watch.h"
#include "server/observability/process_stats.h"
#include "server/observability/routed_nodes.h"
#include "server/observability/security_stats.h"
#include "softlookup/engine.h"
#include "softlookup/replication.h"

namespace softlookup::server {

// Returns all metrics in Prometheus' text format. docs/metrics.md lists them. `replication` is that
// of the engine, and `name` the replica's. Null: it is no replica.
std::string MetricsPage(const Engine& engine, const Replication* replication,
                        const ReplicaName& name, const CallMetrics& calls,
                        const ProcessStats& process, const DiskStats& disks,
                        const SecurityStats& security, bool ready);

// As above, of a router.
std::string RouterMetricsPage(const RoutedNodes& nodes, const CallMetrics& calls,
                              const ProcessStats& process, const SecurityStats& security,
                              bool ready);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_METRICS_PAGE_H_
