#include "softlookup/engine.h"

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/base/steady_time.h"
#include "core/engine/appender.h"
#include "core/engine/attend_job.h"
#include "core/engine/auto_compactor.h"
#include "core/engine/committer.h"
#include "core/engine/compactor.h"
#include "core/engine/counted_stores.h"
#include "core/engine/engine_stats.h"
#include "core/engine/entry_replay.h"
#include "core/engine/job_context.h"
#include "core/engine/load_stores.h"
#include "core/engine/lookups.h"
#include "core/engine/memories.h"
#include "core/engine/open_on_log.h"
#include "core/engine/range_residency.h"
#include "core/engine/range_rows.h"
#include "core/engine/read_blocks.h"
#include "core/engine/store_restorer.h"
#include "core/engine/table_writes.h"
#include "core/engine/tile_unit.h"
#include "core/engine/validate.h"
#include "core/engine/writes.h"
#include "core/parallel/fork_join_pool.h"
#include "core/scheduler/scheduler.h"
#include "core/storage/commit_log.h"
#include "core/store/revision_waiters.h"
#include "core/store/row_selection.h"
#include "core/store/snapshot_reader.h"
#include "core/store/store.h"
#include "softlookup/partial_lookup.h"
#include "softlookup/tenant.h"

namespace softlookup {
namespace {

// Hands each call to the part of the engine that does it, and owns these parts.
class EngineOfStores final : public Engine, private LogReplay {
 public:
  // If `log` is null, nothing outlives the process.
  EngineOfStores(const EngineOptions& options, std::unique_ptr<CommitLog> log)
      : limits_(options.limits),
        log_(std::move(log)),
        loaded_(log_ == nullptr),
        stores_(limits_.ram_bytes_max, options.node),
        jobs_{.limits = limits_,
              .tiles = TileUnitOf(ChooseKernel(options.kernel).value_or(KernelChoice()).kernel),
              .ranking = {limits_.ranking_bytes_max, stores_.budget}},
        pool_(options.thread_count, std::numeric_limits<std::int64_t>::max()),
        lookups_(jobs_, stores_.kept_snapshots, scheduler_),
        scheduler_(pool_, {.waiting_jobs_max = limits_.waiting_jobs_max,
                           .queue = {.queries_max = options.queries_per_pass_max,
                                     .wait_max = options.pass_wait_max}}),
        waker_(1, std::numeric_limits<std::int64_t>::max()),
        committer_(log_.get(), limits_.waiting_append_bytes_max, log_sync_time_, Clock::Steady(),
                   options.observer),
        appender_(limits_, stores_, scheduler_, committer_),
        compactor_(stores_, log_.get(), committer_),
        restorer_(limits_, stores_, log_.get(), committer_, lookups_.counters()) {
    if (log_ != nullptr && !options.node.empty()) {
      range_residency_.emplace(stores_, *log_, committer_, options.observer);
    }
    if (options.compact_above > 0) {
      auto_compactor_.emplace(options.compact_above, stores_, compactor_, options.observer);
    }
  }

  ~EngineOfStores() override {
    if (log_ != nullptr) log_->StartReplay(nullptr);
  }

  const Limits& limits() const override { return limits_; }
  EngineStats stats() const override;
  absl::Status Load(LoadObserver& observer) override;
  absl::StatusOr<StoreInfo> CreateStore(const StoreConfig& config) override;
  absl::StatusOr<StoreInfo> GetStore(absl::string_view name) override;
  absl::StatusOr<ListResult> ListStores(absl::string_view prefix, absl::string_view after,
                                        std::int64_t count_max) override;
  absl::StatusOr<StoreInfo> UpdateStore(absl::string_view name, const StoreUpdate& update) override;
  absl::StatusOr<StoreRenamed> RenameStore(const StoreRename& rename) override;
  absl::Status DeleteStore(absl::string_view name) override;
  absl::StatusOr<RangesInfo> SetRanges(absl::string_view name, RangesOf plan) override;
  absl::StatusOr<RangesInfo> PlanRanges(absl::string_view name, RangesOf plan) override;
  void Append(const AppendRequest& request, AppendCallback callback,
              absl::AnyInvocable<void()> on_turn) override;
  absl::StatusOr<WriterInfo> GetWriter(absl::string_view store, absl::string_view writer) override;
  absl::StatusOr<std::unique_ptr<RowReader>> ReadRows(absl::string_view store,
                                                      const RowFilter& filter) override;
  absl::StatusOr<DeleteRowsResult> DeleteRows(absl::string_view store,
                                              const RowFilter& filter) override;
  absl::StatusOr<CompactionResult> CompactStore(const CompactionRequest& request,
                                                const CancelToken& cancel) override;
  void Lookup(LookupRequest request, std::shared_ptr<CancelToken> cancel,
              LookupCallback callback) override;
  void AnswerPart(LookupRequest request, const LookupPart& part,
                  std::shared_ptr<CancelToken> cancel, PartCallback callback) override;
  void SumRowsOfPart(LookupRequest request, const LookupPart& part, RowSumsRequest rows,
                     std::shared_ptr<CancelToken> cancel, RowSumsCallback callback) override;
  bool asks_for_latest() const override { return log_ != nullptr && log_->is_replicated(); }
  absl::Status CheckRoom(absl::string_view store, std::int64_t query_count) override;
  void Attend(const AttendRequest& request, std::shared_ptr<CancelToken> cancel,
              LookupCallback callback) override;
  absl::StatusOr<MemoryState> GetMemory(absl::string_view store, absl::string_view name,
                                        std::optional<std::uint64_t> begin,
                                        std::optional<std::uint64_t> end) override;
  void WhenRevision(absl::string_view store, std::uint64_t incarnation, std::uint64_t revision,
                    std::shared_ptr<CancelToken> cancel,
                    absl::AnyInvocable<void(absl::Status)> callback) override;
  std::vector<std::string> DamagedStores() const override { return stores_.table.DamagedNames(); }
  absl::Status CopyTo(const std::string& directory) override;
  absl::StatusOr<StoreInfo> RestoreStore(const StoreRestore& restore,
                                         const CancelToken& cancel) override;

 private:
  // As LogReplay says.
  bool Replay(std::shared_ptr<const std::string> entry,
              absl::AnyInvocable<void(absl::Status)> done) override;
  void OnWritable() override { QueueCompactions(); }

  bool WaitsForLatest(const LookupRequest& request) const {
    return request.linearizable && asks_for_latest() && loaded_;
  }
  // Runs `then` once the stores have all that was committed before this call.
  void WhenLatest(LookupReport* report, const std::shared_ptr<CancelToken>& cancel,
                  absl::AnyInvocable<void(absl::Status)> then);
  // The next two look up in a store as it is now.
  void LookupNow(LookupRequest request, std::shared_ptr<CancelToken> cancel,
                 LookupCallback callback);
  void AnswerPartNow(LookupRequest request, const LookupPart& part,
                     std::shared_ptr<CancelToken> cancel, PartCallback callback);
  // Lets the auto compactor look at all stores.
  void QueueCompactions();
  // Returns LOADING until Load() has succeeded.
  absl::Status CheckLoaded() const;
  absl::StatusOr<std::shared_ptr<Store>> Find(absl::string_view field,
                                              absl::string_view name) const;
  // Returns `snapshot`, which is one of `store`, with the block of the row before `position`, so
  // that MemoryAsOf() can read it. Reads the block from the log if it is not resident.
  absl::StatusOr<std::shared_ptr<const Snapshot>> WithRowBefore(
      const Store& store, std::shared_ptr<const Snapshot> snapshot, std::uint64_t position) const;
  // Returns a store's executor, which runs callbacks that waited for a revision on waker_'s thread.
  Store::Executor WakeUps() {
    return [this](absl::AnyInvocable<void()> task) { waker_.Post(std::move(task)); };
  }
  // Call this before a write that gives a store the name `name`. As CommitLog::ClaimTenant() says.
  absl::Status ClaimTenantOf(absl::string_view name) {
    return log_ == nullptr ? absl::OkStatus() : log_->ClaimTenant(TenantOf(name));
  }
  // Posts the write that make(callback) returns, waits until it is answered, and returns the
  // answer. Returns QUEUE_FULL at once if the committer refuses the write.
  template <typename Result, typename Make>
  Result Commit(const Make& make);

  const Limits limits_;
  Histogram log_sync_time_{kTimeBounds};
  const std::unique_ptr<CommitLog> log_;
  std::atomic<bool> loaded_;
  CountedStores stores_;
  std::atomic<std::uint64_t> last_store_number_{0};
  JobContext jobs_;

  // The order of these members matters: the last is destroyed first, and each destructor ends the
  // member's work in progress, or waits for it. That work may use only members above. The auto
  // compactor's compactions and the appender's projections post to the committer. When the
  // committer publishes a revision, the waker's one thread submits the lookups that waited for it
  // to the scheduler. The scheduler runs jobs on the pool, and those of lookups count in lookups_.
  ForkJoinPool pool_;
  Lookups lookups_;  // Its destructor does not use the scheduler.
  Scheduler scheduler_;
  ForkJoinPool waker_;
  Committer committer_;
  Appender appender_;
  Compactor compactor_;
  StoreRestorer restorer_;
  std::optional<RangeResidency> range_residency_;  // Empty if the server is in no group.
  std::optional<AutoCompactor> auto_compactor_;  // Empty if the engine compacts no store by itself.
};

absl::Status EngineOfStores::Load(LoadObserver& observer) {
  log_->PauseReplay();
  SOFTLOOKUP_ASSIGN_OR_RETURN(last_store_number_,
                              LoadStores(*log_, pool_, WakeUps(), observer, stores_));
  loaded_ = true;
  log_->StartReplay(this);
  if (log_->is_writable()) QueueCompactions();
  return absl::OkStatus();
}

void EngineOfStores::QueueCompactions() {
  if (!auto_compactor_) return;
  for (const auto& store : stores_.table.Stores()) stores_.compaction_queue.Add(store);
}

bool EngineOfStores::Replay(std::shared_ptr<const std::string> entry,
                            absl::AnyInvocable<void(absl::Status)> done) {
  EntryReplay replay{.log = *log_,
                     .stores = stores_,
                     .executor = WakeUps(),
                     .last_store_number = last_store_number_};
  return committer_.Post(MakeReplay(std::move(replay), std::move(entry), std::move(done)),
                         Committer::MayBlock::kNo);
}

EngineStats EngineOfStores::stats() const {
  return StatsOf(stores_, lookups_.counters(), scheduler_, log_.get(), log_sync_time_);
}

absl::Status EngineOfStores::CheckLoaded() const {
  if (loaded_) return absl::OkStatus();
  return WithRetryAfter(MakeError(reasons::kLoading, "The server is still loading its stores"),
                        absl::Seconds(1));
}

absl::StatusOr<std::shared_ptr<Store>> EngineOfStores::Find(absl::string_view field,
                                                            absl::string_view name) const {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLoaded());
  return stores_.table.Find(field, name);
}

template <typename Result, typename Make>
Result EngineOfStores::Commit(const Make& make) {
  std::optional<Result> result;
  absl::Notification answered;
  const bool posted = committer_.Post(make([&](Result r) {
                                        result = std::move(r);
                                        answered.Notify();
                                      }),
                                      Committer::MayBlock::kYes);
  if (!posted) return WriteQueueFull();
  answered.WaitForNotification();
  return *std::move(result);
}

absl::StatusOr<StoreInfo> EngineOfStores::CreateStore(const StoreConfig& config) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLoaded());
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreConfig(config));
  SOFTLOOKUP_RETURN_IF_ERROR(ClaimTenantOf(config.name));
  const std::uint64_t replay_count = stores_.replay_count;
  return Commit<absl::StatusOr<StoreInfo>>([&](auto callback) {
    return MakeCreateStore(stores_, ++last_store_number_, replay_count, config, WakeUps(),
                           limits_.store_count_max, std::move(callback));
  });
}

absl::StatusOr<StoreInfo> EngineOfStores::GetStore(absl::string_view name) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLoaded());
  return stores_.table.Info("name", name);
}

absl::StatusOr<ListResult> EngineOfStores::ListStores(absl::string_view prefix,
                                                      absl::string_view after,
                                                      std::int64_t count_max) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLoaded());
  return stores_.table.List(prefix, after, count_max);
}

absl::StatusOr<StoreInfo> EngineOfStores::UpdateStore(absl::string_view name,
                                                      const StoreUpdate& update) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::shared_ptr<Store> store, Find("store.name", name));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreUpdate(update, store->snapshot()->config()));
  return Commit<absl::StatusOr<StoreInfo>>([&](auto callback) {
    return MakeUpdate(stores_, std::move(store), update, std::move(callback));
  });
}

absl::StatusOr<StoreRenamed> EngineOfStores::RenameStore(const StoreRename& rename) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLoaded());
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreRename(rename));
  if (TenantOf(rename.new_name) != TenantOf(rename.name)) {
    // A rename of a store that is not there claims nothing.
    SOFTLOOKUP_RETURN_IF_ERROR(Find("store", rename.name).status());
    SOFTLOOKUP_RETURN_IF_ERROR(ClaimTenantOf(rename.new_name));
  }
  return Commit<absl::StatusOr<StoreRenamed>>(
      [&](auto callback) { return MakeRenameStore(stores_, rename, std::move(callback)); });
}

absl::Status EngineOfStores::DeleteStore(absl::string_view name) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLoaded());
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName("name", name));
  return Commit<absl::Status>([&](auto callback) {
    return MakeDeleteStore(stores_, std::string(name), std::move(callback));
  });
}

absl::StatusOr<RangesInfo> EngineOfStores::SetRanges(absl::string_view name, RangesOf plan) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::shared_ptr<Store> store, Find("store", name));
  using Made = absl::StatusOr<std::shared_ptr<const Snapshot>>;
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      const std::shared_ptr<const Snapshot> made, Commit<Made>([&](auto callback) {
        return MakeSetRanges(stores_, std::move(store), plan, std::move(callback));
      }));
  return CountRows(*made, made->config().ranges);
}

absl::StatusOr<RangesInfo> EngineOfStores::PlanRanges(absl::string_view name, RangesOf plan) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> store, Find("store", name));
  const std::shared_ptr<const Snapshot> snapshot = store->snapshot();
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<StoreRange> ranges,
                              PlanOf(*snapshot, *store, plan));
  return CountRows(*snapshot, ranges);
}

void EngineOfStores::Append(const AppendRequest& request, AppendCallback callback,
                            absl::AnyInvocable<void()> on_turn) {
  appender_.Append(request, Find("store", request.store), std::move(callback), std::move(on_turn));
}

absl::StatusOr<WriterInfo> EngineOfStores::GetWriter(absl::string_view store,
                                                     absl::string_view writer) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::shared_ptr<Store> found, Find("store", store));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckWriterName(writer));
  return Commit<absl::StatusOr<WriterInfo>>([&](auto callback) {
    return MakeGetWriter(stores_, std::move(found), std::string(writer), std::move(callback));
  });
}

absl::StatusOr<std::unique_ptr<RowReader>> EngineOfStores::ReadRows(absl::string_view store,
                                                                    const RowFilter& filter) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> found, Find("store", store));
  std::shared_ptr<const Snapshot> snapshot = found->snapshot();
  SOFTLOOKUP_ASSIGN_OR_RETURN(RowSelection selection,
                              RowSelection::Make(*snapshot, filter, "filter."));
  const auto read_block = [log = log_.get(), number = found->number()](
                              const std::shared_ptr<const Snapshot>& shown, std::int64_t index) {
    return WithBlock(*log, number, shown, index);
  };
  return std::make_unique<SnapshotReader>(std::move(snapshot), std::move(selection), read_block);
}

absl::StatusOr<DeleteRowsResult> EngineOfStores::DeleteRows(absl::string_view store,
                                                            const RowFilter& filter) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::shared_ptr<Store> found, Find("store", store));
  if (filter.empty()) {
    return InvalidOption("filter", "must not be empty; to delete every row, set its begin to 0");
  }
  return Commit<absl::StatusOr<DeleteRowsResult>>([&](auto callback) {
    return MakeDeleteRows(stores_, std::move(found), filter, std::move(callback));
  });
}

absl::StatusOr<CompactionResult> EngineOfStores::CompactStore(const CompactionRequest& request,
                                                              const CancelToken& cancel) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> store, Find("name", request.store));
  return compactor_.Compact(store, request, cancel);
}

void EngineOfStores::Lookup(LookupRequest request, std::shared_ptr<CancelToken> cancel,
                            LookupCallback callback) {
  if (!WaitsForLatest(request)) {
    return LookupNow(std::move(request), std::move(cancel), std::move(callback));
  }
  LookupReport* const report = request.report;
  const std::shared_ptr<CancelToken> wait_cancel = cancel;
  WhenLatest(report, wait_cancel,
             [this, request = std::move(request), cancel = std::move(cancel),
              callback = std::move(callback)](const absl::Status& status) mutable {
               if (!status.ok()) return callback(status);
               LookupNow(std::move(request), std::move(cancel), std::move(callback));
             });
}

void EngineOfStores::AnswerPart(LookupRequest request, const LookupPart& part,
                                std::shared_ptr<CancelToken> cancel, PartCallback callback) {
  if (!WaitsForLatest(request)) {
    return AnswerPartNow(std::move(request), part, std::move(cancel), std::move(callback));
  }
  LookupReport* const report = request.report;
  const std::shared_ptr<CancelToken> wait_cancel = cancel;
  WhenLatest(report, wait_cancel,
             [this, request = std::move(request), part, cancel = std::move(cancel),
              callback = std::move(callback)](const absl::Status& status) mutable {
               if (!status.ok()) return callback(status);
               AnswerPartNow(std::move(request), part, std::move(cancel), std::move(callback));
             });
}

void EngineOfStores::WhenLatest(LookupReport* report, const std::shared_ptr<CancelToken>& cancel,
                                absl::AnyInvocable<void(absl::Status)> then) {
  // The store may be made only by what the lookup waits for, so it is looked for afterwards.
  const auto waiter = std::make_shared<RevisionWaiter>(
      /*revision=*/0,
      [report, begin = SteadyNow(), then = std::move(then)](const absl::Status& status) mutable {
        if (report != nullptr) report->revision_wait = SteadyNow() - begin;
        then(status);
      });
  cancel->wait().OnEnd([waiter](const absl::Status& end) { waiter->Finish(end); });
  log_->AwaitLatest([this, waiter](const absl::Status& status) {
    if (!status.ok()) return waiter->Finish(status);
    waker_.Post([waiter] { waiter->Finish(absl::OkStatus()); });
  });
}

void EngineOfStores::LookupNow(LookupRequest request, std::shared_ptr<CancelToken> cancel,
                               LookupCallback callback) {
  absl::StatusOr<std::shared_ptr<Store>> store = Find("store", request.store);
  if (!store.ok()) return callback(store.status());
  lookups_.Start(std::move(request), *std::move(store), std::move(cancel), std::move(callback));
}

void EngineOfStores::AnswerPartNow(LookupRequest request, const LookupPart& part,
                                   std::shared_ptr<CancelToken> cancel, PartCallback callback) {
  absl::StatusOr<std::shared_ptr<Store>> store = Find("store", request.store);
  if (!store.ok()) return callback(store.status());
  lookups_.StartPart(std::move(request), part, *std::move(store), std::move(cancel),
                     std::move(callback));
}

void EngineOfStores::SumRowsOfPart(LookupRequest request, const LookupPart& part,
                                   RowSumsRequest rows, std::shared_ptr<CancelToken> cancel,
                                   RowSumsCallback callback) {
  absl::StatusOr<std::shared_ptr<Store>> store = Find("store", request.store);
  if (!store.ok()) return callback(store.status());
  lookups_.SumRows(std::move(request), part, std::move(rows), *std::move(store), std::move(cancel),
                   std::move(callback));
}

absl::Status EngineOfStores::CheckRoom(absl::string_view store, std::int64_t query_count) {
  const absl::StatusOr<std::shared_ptr<Store>> found = Find("store", store);
  return found.ok() ? lookups_.CheckRoom(**found, query_count) : absl::OkStatus();
}

void EngineOfStores::Attend(const AttendRequest& request, std::shared_ptr<CancelToken> cancel,
                            LookupCallback callback) {
  const absl::StatusOr<double> cost = CheckAttend(request, limits_);
  if (!cost.ok()) return callback(cost.status());
  QueuedJob job{.cost = *cost, .answer_time_max = limits_.lookup_wait_max};
  job.job = std::make_unique<AttendJob>(jobs_, request, std::move(cancel), std::move(callback));
  scheduler_.Submit(std::move(job), Scheduler::Admission::kBounded);
}

absl::StatusOr<std::shared_ptr<const Snapshot>> EngineOfStores::WithRowBefore(
    const Store& store, std::shared_ptr<const Snapshot> snapshot, std::uint64_t position) const {
  if (position == 0 || position > snapshot->row_count()) return snapshot;
  const StoredBlocks& blocks = snapshot->stored_blocks();
  const auto index = static_cast<std::int64_t>(position - 1) / blocks.block_rows();
  if (blocks.IsResident(index) || blocks.IsCompacted(index)) return snapshot;
  return WithBlock(*log_, store.number(), snapshot, index);
}

absl::StatusOr<MemoryState> EngineOfStores::GetMemory(absl::string_view store,
                                                      absl::string_view name,
                                                      std::optional<std::uint64_t> begin,
                                                      std::optional<std::uint64_t> end) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> found, Find("store", store));
  std::shared_ptr<const Snapshot> snapshot = found->snapshot();
  for (const std::uint64_t position : {begin.value_or(0), end.value_or(snapshot->row_count())}) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(snapshot, WithRowBefore(*found, std::move(snapshot), position));
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(MemoryState state, ReadMemory(*snapshot, name, begin, end));
  state.incarnation = found->number();
  return state;
}

void EngineOfStores::WhenRevision(absl::string_view store, std::uint64_t incarnation,
                                  std::uint64_t revision, std::shared_ptr<CancelToken> cancel,
                                  absl::AnyInvocable<void(absl::Status)> callback) {
  const absl::StatusOr<std::shared_ptr<Store>> found = Find("store", store);
  if (!found.ok()) return callback(found.status());
  if ((*found)->number() != incarnation) return callback(StoreReplaced(store));
  (*found)->WhenRevision(revision, cancel, std::move(callback));
}

absl::Status EngineOfStores::CopyTo(const std::string& directory) {
  // A write is acknowledged only when the log has it, so a copy of the log has every such write.
  if (log_ != nullptr) return log_->CopyTo(directory);
  return MakeError(reasons::kBackupsDisabled,
                   "Stores that are not kept on disk cannot be backed up");
}

absl::StatusOr<StoreInfo> EngineOfStores::RestoreStore(const StoreRestore& restore,
                                                       const CancelToken& cancel) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLoaded());
  const std::uint64_t replay_count = stores_.replay_count;
  return restorer_.Restore(restore, ++last_store_number_, replay_count, WakeUps(), cancel);
}

}  // namespace

std::unique_ptr<Engine> Engine::Create(const EngineOptions& options) {
  return std::make_unique<EngineOfStores>(options, nullptr);
}

std::unique_ptr<Engine> MakeEngineOnLog(const EngineOptions& options,
                                        std::unique_ptr<CommitLog> log) {
  return std::make_unique<EngineOfStores>(options, std::move(log));
}

}  // namespace softlookup
