#include "server/observability/metrics_page.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/version.h"

namespace softlookup::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr double kPerNanosecond = 1e-9, kAsIs = 1;

// Collects the metrics of a page.
class Page {
 public:
  // Begins a family of metrics, to which Add() adds until the next Begin().
  void Begin(const char* name, MetricType type, const char* help) {
    families_.push_back({.name = name, .help = help, .type = type});
  }
  template <typename Number>
  void Add(Number value, Labels labels = {}) {
    ClientMetric& metric = NewMetric(std::move(labels));
    // The serializer writes the gauge or the counter, whichever the family's type names.
    metric.gauge.value = metric.counter.value = static_cast<double>(value);
  }
  // Adds a histogram. Multiplies its bounds and its sum by `unit` to get the metric's unit.
  void Add(const HistogramCounts& counts, double unit, Labels labels = {}) {
    ClientMetric::Histogram& histogram = NewMetric(std::move(labels)).histogram;
    for (std::size_t i = 0; i < counts.counts.size(); ++i) {
      histogram.sample_count += counts.counts[i];
      const double bound = i < counts.bounds.size() ? static_cast<double>(counts.bounds[i]) * unit
                                                    : std::numeric_limits<double>::infinity();
      histogram.bucket.push_back(
          {.cumulative_count = histogram.sample_count, .upper_bound = bound});
    }
    histogram.sample_sum = static_cast<double>(counts.sum) * unit;
  }

  template <typename Number>
  void Counter(const char* name, Number value, const char* help) {
    Begin(name, MetricType::Counter, help);
    Add(value);
  }
  template <typename Number>
  void Gauge(const char* name, Number value, const char* help) {
    Begin(name, MetricType::Gauge, help);
    Add(value);
  }
  void Histogram(const char* name, const HistogramCounts& counts, double unit, const char* help) {
    Begin(name, MetricType::Histogram, help);
    Add(counts, unit);
  }

  std::string Text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  ClientMetric& NewMetric(Labels labels) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = std::move(labels);
    return metric;
  }

  std::vector<MetricFamily> families_;
};

void AddCalls(const CallMetrics& calls, Page& page) {
  std::vector<std::pair<std::string, CallMetrics::MethodCounts>> methods;
  for (std::size_t i = 0; i < kMethodCount; ++i) {
    methods.emplace_back(NameOf(static_cast<Method>(i)), calls.CountsOf(static_cast<Method>(i)));
  }
  page.Begin("softlookup_calls_total", MetricType::Counter,
             "Answers to calls. Each message of StreamAppend or StreamLookup counts as a call.");
  for (const auto& [method, counts] : methods) {
    for (std::size_t code = 0; code < CallMetrics::kCodeCount; ++code) {
      const std::uint64_t count = counts.answers_by_code[code];
      // Code 0 (OK) is listed even with a count of 0, so that each method has a series.
      if (code > 0 && count == 0) continue;
      page.Add(count, {{"method", method},
                       {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}});
    }
  }
  page.Begin("softlookup_call_duration_seconds", MetricType::Histogram,
             "Time from a request to its answer.");
  for (const auto& [method, counts] : methods) {
    page.Add(counts.duration, kPerNanosecond, {{"method", method}});
  }
  page.Begin("softlookup_calls_in_progress", MetricType::Gauge, "Calls that are not over.");
  for (const auto& [method, counts] : methods) page.Add(counts.in_progress, {{"method", method}});
  page.Begin("softlookup_rejected_total", MetricType::Counter,
             "Answers and ends of streams with RESOURCE_EXHAUSTED or UNAVAILABLE.");
  for (const CallMetrics::ReasonCount& rejections : calls.RejectionCounts()) {
    page.Add(rejections.count, {{"reason", std::string(rejections.reason)}});
  }
  page.Begin("softlookup_store_restores_total", MetricType::Counter,
             "Restores of single stores from backups, by how they ended.");
  page.Add(calls.restore_count(/*is_ok=*/true), {{"result", "ok"}});
  page.Add(calls.restore_count(/*is_ok=*/false), {{"result", "failed"}});
  page.Counter("softlookup_slow_lookups_total", calls.slow_lookup_count(),
               "Lookups that took --slow-lookup-ms or longer, without the wait for a revision.");
}

void AddLookups(const EngineStats& stats, Page& page) {
  page.Histogram("softlookup_lookup_queue_seconds", stats.lookup_queue_time, kPerNanosecond,
                 "How long lookups waited for a thread, or to share a pass.");
  page.Histogram("softlookup_lookup_compute_seconds", stats.lookup_compute_time, kPerNanosecond,
                 "How long a lookup's selection of rows and its pass took.");
  page.Histogram("softlookup_pass_queries", stats.pass_queries, kAsIs,
                 "Number of queries in a pass.");
  page.Histogram("softlookup_pass_lookups", stats.pass_lookups, kAsIs,
                 "Number of lookups in a pass.");
  page.Counter("softlookup_scanned_rows_total", stats.scanned_rows, "Rows that passes scanned.");
  page.Counter("softlookup_scanned_bytes_total", stats.scanned_bytes,
               "Bytes of the rows that passes scanned.");
  page.Counter("softlookup_sketched_rows_total", stats.sketched_rows,
               "Rows that first looks bounded by sketches of their keys.");
  page.Counter("softlookup_skipped_blocks_total", stats.skipped_blocks,
               "Blocks that first looks skipped, by the balls around their keys.");
  page.Counter("softlookup_summed_rows_total", stats.summed_rows,
               "Rows whose values lookups added up, once per head query.");
  page.Gauge(
      "softlookup_waiting_lookups", stats.waiting_lookups,
      "Jobs that wait for a thread: lookups, Attends, long projections, selections of rows.");
  page.Gauge("softlookup_waiting_work", stats.waiting_work,
             "Multiply-adds of what waits for a thread or a pass.");
}

void AddWrites(const EngineStats& stats, Page& page) {
  page.Counter("softlookup_appended_rows_total", stats.appended_rows, "Rows that were appended.");
  page.Counter("softlookup_appended_bytes_total", stats.appended_bytes,
               "Bytes of the rows that were appended, in float32.");
  page.Counter("softlookup_compactions_total", stats.compactions,
               "Compactions of stores that dropped rows.");
  page.Counter("softlookup_failed_compactions_total", stats.failed_compactions,
               "Compactions that nobody asked for, and that an error ended.");
  page.Counter("softlookup_compacted_rows_total", stats.dropped_rows,
               "Deleted rows that compactions dropped.");
  page.Gauge("softlookup_deleted_bytes", stats.deleted_bytes,
             "Bytes of disk that deleted stores and dropped rows still take, about.");
  page.Histogram("softlookup_log_sync_seconds", stats.log_sync_time, kPerNanosecond,
                 "How long the log took to write and sync a group of changes.");
  page.Gauge("softlookup_log_failed", stats.log_failed,
             "1 while the log refuses writes because one failed.");
  page.Gauge("softlookup_damaged_stores", stats.damaged_stores,
             "Damaged stores, which answer DATA_LOSS.");
}

void AddStores(const EngineStats& stats, std::int64_t ram_bytes_max, Page& page) {
  page.Gauge("softlookup_stores", stats.stores, "Stores that are served.");
  page.Gauge("softlookup_rows", stats.rows, "Rows ever appended to the stores.");
  page.Gauge("softlookup_live_rows", stats.live_rows, "Rows of the stores that are not deleted.");
  page.Gauge("softlookup_store_bytes", stats.store_bytes, "Bytes that the stores take.");
  page.Gauge("softlookup_memory_used_bytes", stats.ram_used_bytes,
             "Bytes of the stores, of waiting appends and of top_k rows of running lookups.");
  page.Gauge("softlookup_memory_limit_bytes", ram_bytes_max, "--memory-limit; 0 is no limit.");
}

void AddDisks(const DiskStats& disks, Page& page) {
  page.Begin("softlookup_disk_free_bytes", MetricType::Gauge,
             "Bytes that the server may still write to the disk of a directory.");
  for (const DiskSpace& space : disks.spaces) {
    page.Add(space.free_bytes, {{"directory", space.directory}});
  }
  page.Begin("softlookup_disk_size_bytes", MetricType::Gauge, "Size of the disk of a directory.");
  for (const DiskSpace& space : disks.spaces) {
    page.Add(space.size_bytes, {{"directory", space.directory}});
  }
  page.Begin("softlookup_newest_backup_time_seconds", MetricType::Gauge,
             "When the newest backup began, in Unix time; 0 if there is none.");
  if (disks.newest_backup.has_value()) {
    page.Add(absl::ToDoubleSeconds(*disks.newest_backup - absl::UnixEpoch()));
  }
}

// A server that is no replica has no samples of these metrics. `replication` is then null.
void AddReplication(const Replication* replication, const ReplicaName& name, Page& page) {
  const ReplicationStats stats = replication == nullptr ? ReplicationStats() : replication->stats();
  const auto add = [&](const char* metric, auto value, const char* help) {
    page.Begin(metric, MetricType::Gauge, help);
    if (replication != nullptr) page.Add(value);
  };
  page.Begin("softlookup_replication_info", MetricType::Gauge,
             "Which node of which group this is.");
  if (replication != nullptr) {
    page.Add(1, {{"cluster", name.cluster}, {"group", name.group}, {"node", name.node}});
  }
  add("softlookup_replication_primary", stats.is_primary,
      "1 while this node is the primary of its group, which takes writes.");
  add("softlookup_replication_has_primary", stats.has_primary,
      "1 while the group of this node has a primary, as far as etcd answers this node.");
  add("softlookup_replication_behind_entries", stats.last_entry - stats.applied_entry,
      "Entries that the group has committed and this node has not applied.");
  add("softlookup_replication_epoch", stats.epoch,
      "The largest epoch that this node has seen; each new primary begins one.");
  add("softlookup_replication_applied_entry", stats.applied_entry,
      "Number of the last entry of the group that this node has applied.");
}

void AddSecurity(const SecurityStats& security, Page& page) {
  const std::pair<const char*, const ReloadCounts&> reloads[] = {{"tls", security.tls},
                                                                 {"auth", security.auth}};
  page.Begin("softlookup_reloads_total", MetricType::Counter,
             "Changes of the files of TLS and of the auth file, by what became of them.");
  for (const auto& [files, counts] : reloads) {
    page.Add(counts.applied, {{"files", files}, {"result", "applied"}});
    page.Add(counts.rejected, {{"files", files}, {"result", "rejected"}});
  }
  page.Begin("softlookup_reload_rejected", MetricType::Gauge,
             "1 while the server uses older contents, because it rejects those of the files.");
  for (const auto& [files, counts] : reloads) page.Add(counts.is_rejected, {{"files", files}});
  page.Begin("softlookup_tls_certificate_expiry_time_seconds", MetricType::Gauge,
             "When the server's certificate expires, in Unix time.");
  if (security.certificate_end.has_value()) {
    page.Add(absl::ToUnixSeconds(*security.certificate_end));
  }
}

void AddProcess(const ProcessStats& process, Page& page) {
  page.Gauge("process_resident_memory_bytes", process.resident_bytes(), "Resident bytes.");
  page.Gauge("process_open_fds", process.open_fds(), "Open file descriptors.");
  page.Gauge("process_max_fds", process.max_fds(), "Maximum number of open file descriptors.");
  page.Counter("process_cpu_seconds_total", absl::ToDoubleSeconds(process.cpu_time()),
               "Processor time, in user and system mode.");
  page.Gauge("process_start_time_seconds",
             absl::ToDoubleSeconds(process.start_time() - absl::UnixEpoch()),
             "When the process started, in Unix time.");
}

void AddRoutedNodes(const RoutedNodes& routed, Page& page) {
  const auto labels = [](const RoutedNode& node) -> Labels {
    return {{"group", node.group}, {"node", node.node}};
  };
  page.Begin("softlookup_router_calls_total", MetricType::Counter,
             "Calls of nodes: those that the node has answered, and those that it was not reached "
             "for, or did not answer.");
  for (const RoutedNode& node : routed.nodes) {
    for (const auto& [result, count] :
         {std::pair("answered", node.answered), {"failed", node.failed}}) {
      Labels all = labels(node);
      all.push_back({"result", result});
      page.Add(count, std::move(all));
    }
  }
  page.Begin("softlookup_router_calls_in_progress", MetricType::Gauge,
             "Calls of nodes that are not over.");
  for (const RoutedNode& node : routed.nodes) page.Add(node.in_progress, labels(node));
  page.Begin("softlookup_router_node_connected", MetricType::Gauge,
             "1 while the router has a connection to the node.");
  for (const RoutedNode& node : routed.nodes) page.Add(node.is_connected, labels(node));
  page.Begin("softlookup_router_node_primary", MetricType::Gauge,
             "1 while the node is the primary of its group, as far as the router knows.");
  for (const RoutedNode& node : routed.nodes) page.Add(node.is_primary, labels(node));
  page.Gauge("softlookup_router_etcd_answers", routed.has_etcd,
             "1 while etcd answers the router, within some seconds.");
}

void AddBuild(bool ready, Page& page) {
  page.Begin("softlookup_build_info", MetricType::Gauge, "Which version runs.");
  const auto [version, commit] = VersionAndCommit();
  page.Add(1, {{"version", version}, {"commit", commit}});
  page.Gauge("softlookup_ready", ready, "1 while the server takes calls.");
}

}  // namespace

std::string MetricsPage(const Engine& engine, const Replication* replication,
                        const ReplicaName& name, const CallMetrics& calls,
                        const ProcessStats& process, const DiskStats& disks,
                        const SecurityStats& security, bool ready) {
  const EngineStats stats = engine.stats();
  Page page;
  AddBuild(ready, page);
  AddCalls(calls, page);
  AddLookups(stats, page);
  AddWrites(stats, page);
  AddStores(stats, engine.limits().ram_bytes_max, page);
  AddReplication(replication, name, page);
  AddDisks(disks, page);
  AddSecurity(security, page);
  AddProcess(process, page);
  return page.Text();
}

std::string RouterMetricsPage(const RoutedNodes& nodes, const CallMetrics& calls,
                              const ProcessStats& process, const SecurityStats& security,
                              bool ready) {
  Page page;
  AddBuild(ready, page);
  AddCalls(calls, page);
  AddRoutedNodes(nodes, page);
  AddSecurity(security, page);
  AddProcess(process, page);
  return page.Text();
}

}  // namespace softlookup::server
