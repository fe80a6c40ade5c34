#include "server/open_engine.h"

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "server/base/read_file.h"
#include "server/cluster/replica_node.h"
#include "softlookup/kernel.h"
#include "softlookup/replicated_engine.h"

namespace softlookup::server {
namespace {

// How often a replica that waits to be the primary looks whether it is to stop, and how often it
// says what it waits for.
constexpr absl::Duration kStopInterval = absl::Milliseconds(200);
constexpr absl::Duration kWaitingLineInterval = absl::Seconds(5);

absl::StatusOr<EngineOptions> OptionsOf(const Flags& flags,
                                        std::shared_ptr<EngineObserver> observer) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const KernelChoice choice, ChooseKernel(flags.kernel));
  spdlog::info("scans with kernel {}: {}", std::string(NameOf(choice.kernel)), choice.why);
  return EngineOptions{.limits = flags.limits,
                       .compact_above = flags.compact_above,
                       .observer = std::move(observer),
                       .thread_count = flags.threads,
                       .queries_per_pass_max = flags.share_queries,
                       .pass_wait_max = absl::Microseconds(flags.share_wait_us),
                       .kernel = choice.kernel};
}

// Returns the contents of a file that a flag names; "" for no file.
absl::StatusOr<std::string> Contents(const std::string& path) {
  if (path.empty()) return std::string();
  return ReadFile(path);
}

// Returns what the replica shows to etcd's members, and what it checks them by.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> EtcdCredentials(const Flags& flags) {
  if (flags.cluster_etcd_ca.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  SOFTLOOKUP_ASSIGN_OR_RETURN(options.pem_root_certs, Contents(flags.cluster_etcd_ca));
  SOFTLOOKUP_ASSIGN_OR_RETURN(options.pem_cert_chain, Contents(flags.cluster_etcd_certificate));
  SOFTLOOKUP_ASSIGN_OR_RETURN(options.pem_private_key, Contents(flags.cluster_etcd_key));
  return grpc::SslCredentials(options);
}

// Logs the progress of Engine::Load() and each damaged store. Counts the stores and rows loaded.
class LoadReport final : public LoadObserver {
 public:
  void OnProgress(std::int64_t loaded, std::int64_t count) override {
    const absl::Time now = absl::Now();
    if (now - last_line_ < kInterval) return;
    last_line_ = now;
    spdlog::info("loaded {} of {} stores", loaded, count);
  }
  void OnStore(const StoreInfo& info) override {
    ++store_count_;
    row_count_ += info.row_count;
  }
  void OnDamage(const absl::Status& damage) override {
    spdlog::error("{}", std::string(damage.message()));
  }
  void OnDiskKept(const absl::Status& why) override {
    spdlog::warn("the disk of deleted stores is not freed: {}", std::string(why.message()));
  }
  std::int64_t store_count() const { return store_count_; }
  std::uint64_t row_count() const { return row_count_; }

 private:
  static constexpr absl::Duration kInterval = absl::Seconds(1);

  absl::Time last_line_ = absl::Now();
  std::int64_t store_count_ = 0;
  std::uint64_t row_count_ = 0;
};

absl::Status AwaitPrimary(Replication& replication, const std::function<bool()>& should_stop) {
  absl::Time next_line = absl::Now() + kWaitingLineInterval;
  while (true) {
    absl::Status status = replication.AwaitPrimary(kStopInterval);
    if (!absl::IsDeadlineExceeded(status)) return status;
    if (should_stop()) {
      // A failure also sends the signal.
      const absl::Status failure = replication.failure();
      return failure.ok() ? absl::CancelledError("stopped before it was the primary") : failure;
    }
    if (absl::Now() < next_line) continue;
    next_line = absl::Now() + kWaitingLineInterval;
    spdlog::info("waits to be the primary of its group: {}", std::string(status.message()));
  }
}

}  // namespace

absl::StatusOr<OpenedEngine> OpenEngine(const Flags& flags,
                                        std::shared_ptr<EngineObserver> observer) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const EngineOptions options, OptionsOf(flags, std::move(observer)));
  OpenedEngine opened;
  if (flags.data_dir.empty()) {
    opened.engine = Engine::Create(options);
    return opened;
  }
  if (flags.cluster_etcd.empty()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(opened.engine, Engine::Open(options, flags.data_dir));
    return opened;
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::shared_ptr<grpc::ChannelCredentials> credentials,
                              EtcdCredentials(flags));
  opened.replica_thread = std::make_unique<ReplicaNode>(
      EtcdOptions{.endpoints = absl::StrSplit(flags.cluster_etcd, ','),
                  .credentials = std::move(credentials)},
      [](const std::string& trouble) {
        if (trouble.empty()) return spdlog::info("etcd answers again");
        spdlog::warn("etcd does not answer: {}", trouble);
      });
  ReplicationOptions replication{
      .name = {.cluster = flags.cluster, .group = flags.group, .node = flags.node},
      .on_failure = [](const absl::Status& why) {
        spdlog::error("this node cannot go on as a replica: {}", std::string(why.message()));
        kill(getpid(), SIGTERM);
      }};
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      ReplicatedEngine replicated,
      OpenReplicated(options, flags.data_dir, std::move(replication), *opened.replica_thread));
  opened.engine = std::move(replicated.engine);
  opened.replication = replicated.replication;
  spdlog::info("is node {} of group {} of cluster {}; etcd: {}", flags.node, flags.group,
               flags.cluster, flags.cluster_etcd);
  return opened;
}

absl::Status LoadEngine(const OpenedEngine& opened, const std::function<bool()>& should_stop) {
  if (opened.replication != nullptr) {
    SOFTLOOKUP_RETURN_IF_ERROR(AwaitPrimary(*opened.replication, should_stop));
    spdlog::info("is the primary of its group, in epoch {}, with entry {} applied",
                 opened.replication->stats().epoch, opened.replication->stats().applied_entry);
  }
  const absl::Time begin = absl::Now();
  LoadReport report;
  Engine& engine = *opened.engine;
  SOFTLOOKUP_RETURN_IF_ERROR(engine.Load(report));
  spdlog::info("loaded {} stores with {} rows in {:.3f} s", report.store_count(),
               report.row_count(), absl::ToDoubleSeconds(absl::Now() - begin));
  if (engine.stats().log_failed) {
    spdlog::warn("writes are refused: the disk of the data directory is full or has failed");
  }
  return absl::OkStatus();
}

}  // namespace softlookup::server
