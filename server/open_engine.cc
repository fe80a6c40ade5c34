#include "server/open_engine.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "server/cluster/seeding.h"
#include "server/open_replica.h"
#include "softlookup/kernel.h"

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

absl::Status AwaitReady(Replication& replication, const std::function<bool()>& should_stop) {
  absl::Time next_line = absl::Now() + kWaitingLineInterval;
  while (true) {
    absl::Status status = replication.AwaitReady(kStopInterval);
    if (!absl::IsDeadlineExceeded(status)) return status;
    if (should_stop()) {
      // A failure also sends the signal.
      const absl::Status failure = replication.failure();
      return failure.ok() ? absl::CancelledError("stopped before it was ready") : failure;
    }
    if (absl::Now() < next_line) continue;
    next_line = absl::Now() + kWaitingLineInterval;
    spdlog::info("waits for its group: {}", std::string(status.message()));
  }
}

}  // namespace

absl::StatusOr<OpenedEngine> OpenEngine(const Flags& flags,
                                        std::shared_ptr<EngineObserver> observer,
                                        const std::function<bool()>& should_stop) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const EngineOptions options, OptionsOf(flags, std::move(observer)));
  if (!flags.cluster_etcd.empty()) return OpenReplica(flags, options, should_stop);
  OpenedEngine opened;
  if (flags.data_dir.empty()) {
    opened.engine = Engine::Create(options);
    return opened;
  }
  if (HasUnfinishedSeed(flags.data_dir)) {
    return absl::FailedPreconditionError(
        absl::StrCat(flags.data_dir,
                     " is being filled with the records of another node of a cluster: start the "
                     "server with --cluster-etcd and the other flags of clusters"));
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(opened.engine, Engine::Open(options, flags.data_dir));
  return opened;
}

absl::Status LoadEngine(const OpenedEngine& opened, const std::function<bool()>& should_stop) {
  if (opened.replication != nullptr) {
    SOFTLOOKUP_RETURN_IF_ERROR(AwaitReady(*opened.replication, should_stop));
    const ReplicationStats stats = opened.replication->stats();
    spdlog::info("{}, in epoch {}, with entry {} applied",
                 stats.is_primary ? "is the primary of its group"
                                  : absl::StrCat("follows node ", stats.primary_node),
                 stats.epoch, stats.applied_entry);
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
