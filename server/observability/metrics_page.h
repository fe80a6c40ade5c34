#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_METRICS_PAGE_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_METRICS_PAGE_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "server/observability/call_observer.h"
#include "server/observability/process_stats.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// What a server writes to.
struct DiskUse {
  std::string data_dir;    // "": everything is kept in memory.
  std::string backup_dir;  // "": backups are refused.
  // When the newest backup in backup_dir was made. Empty: there is none, or it cannot be read.
  std::optional<absl::Time> newest_backup;
};

// Returns all metrics in Prometheus' text format. docs/metrics.md lists them.
std::string MetricsPage(const Engine& engine, const CallObserver& calls,
                        const ProcessStats& process, const DiskUse& disk, bool ready);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_METRICS_PAGE_H_
