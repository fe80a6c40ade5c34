#include "softlookup/engine.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/batch/batcher.h"
#include "core/engine/committer.h"
#include "core/engine/engine_counters.h"
#include "core/engine/lookup.h"
#include "core/engine/open_on_log.h"
#include "core/engine/project.h"
#include "core/engine/store_records.h"
#include "core/engine/store_table.h"
#include "core/engine/tile_unit.h"
#include "core/engine/validate.h"
#include "core/engine/writes.h"
#include "core/parallel/fork_join_pool.h"
#include "core/storage/commit_log.h"
#include "core/store/row_selection.h"
#include "core/store/snapshot_reader.h"
#include "core/store/store.h"

namespace softlookup {
namespace {

// What a caller that was turned away should wait before the next attempt.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(50);

absl::Status LookupQueueFull(std::int64_t waiting_lookups_max) {
  return WithRetryAfter(
      MakeError(reasons::kQueueFull,
                absl::StrCat("The server's queue of ", waiting_lookups_max, " lookups is full"),
                {{"limit", absl::StrCat(waiting_lookups_max)}}),
      kRetryDelay);
}

absl::Status LookupWorkFull(absl::Duration retry_delay) {
  return WithRetryAfter(
      MakeError(reasons::kQueueFull, "More work waits than the server gets done soon"),
      retry_delay);
}

absl::Status WriteQueueFull() {
  return WithRetryAfter(MakeError(reasons::kQueueFull,
                                  "More bytes of appends wait to be written than the server holds"),
                        kRetryDelay);
}

// The memory over [begin, end), which are positions of the snapshot.
absl::StatusOr<MemoryState> ReadMemory(const Snapshot& snapshot, std::size_t index,
                                       std::uint64_t begin, std::uint64_t end) {
  const std::unique_ptr<RunningMemory> memory = snapshot.MemoryAsOf(end, index);
  MemoryState state{.name = std::string(MemoryNameOf(snapshot.config(), index)),
                    .begin = begin,
                    .end = end,
                    .revision = snapshot.revision()};
  if (begin == 0) {
    state.memory = memory->Read();
  } else if (memory->has_windows()) {
    state.memory = memory->ReadSince(*snapshot.MemoryAsOf(begin, index));
  } else {
    return InvalidOption("begin", absl::StrCat("only AVERAGE memories have windows; \"", state.name,
                                               "\" always begins at 0"));
  }
  return state;
}

// An append whose keys and values are still to be made.
struct InputsToAppend {
  std::shared_ptr<Store> store;
  RowsToAppend rows;
  std::shared_ptr<const Projection> projection;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  MatrixView inputs;  // The caller's, until OwnInputs.
  absl::Time deadline;
  std::vector<float> owned_inputs;

  void OwnInputs() {
    owned_inputs.assign(inputs.data, inputs.data + inputs.rows * inputs.cols);
    inputs.data = owned_inputs.data();
  }
  // As AttentionTask::cost().
  double cost() const { return ProjectionCost(inputs.cols * (key_dim + value_dim), inputs.rows); }
  // What it takes while it waits and is projected.
  std::int64_t bytes() const { return 4 * inputs.rows * (inputs.cols + key_dim + value_dim); }
  // The rows, whole.
  absl::StatusOr<RowsToAppend> Project();
};

absl::StatusOr<RowsToAppend> InputsToAppend::Project() {
  const CancelToken cancel(deadline);
  const auto project = [&](const std::vector<float>& weights, std::int64_t dim) {
    return softlookup::Project("inputs", weights, dim, inputs, cancel);
  };
  SOFTLOOKUP_ASSIGN_OR_RETURN(rows.keys, project(projection->key, key_dim));
  SOFTLOOKUP_ASSIGN_OR_RETURN(rows.values, project(projection->value, value_dim));
  return std::move(rows);
}

// Beyond it an append costs much more than what handing it to the committer's thread would.
constexpr std::int64_t kBytesWrittenHereMax = 64 << 10;

// Inputs that wait to be projected for an append hold nobody up but their writers, who can do
// nothing else.
constexpr absl::Duration kProjectionWaitMax = absl::Seconds(1);

// Reading a store's rows takes as long as computing so many queries that go over them.
constexpr double kReadingQueries = 8;

// A lookup as the batcher sees it.
WaitingScan ScanOf(std::uint64_t store, std::int64_t query_count, double cost) {
  return {.store = store,
          .query_count = query_count,
          .cost = cost,
          .reading_cost =
              kReadingQueries * cost / static_cast<double>(std::max<std::int64_t>(query_count, 1))};
}

using SteadyTime = std::chrono::steady_clock::time_point;

SteadyTime Now() { return std::chrono::steady_clock::now(); }

// A lookup that waits for others to share a pass over their store's rows with.
struct PendingLookup : Scan {
  PendingLookup(std::unique_ptr<PreparedLookup> lookup, RankingMemory::Taken ranking,
                LookupReport* report, std::shared_ptr<CancelToken> cancel,
                Engine::LookupCallback callback)
      : lookup(std::move(lookup)),
        ranking(std::move(ranking)),
        report(report),
        cancel(std::move(cancel)),
        callback(std::move(callback)) {}

  std::unique_ptr<PreparedLookup> lookup;
  RankingMemory::Taken ranking;
  LookupReport* report;  // May be null.
  std::shared_ptr<CancelToken> cancel;
  Engine::LookupCallback callback;
  SteadyTime waits_since;
  // So far.
  std::chrono::nanoseconds queue_time{0};
  std::chrono::nanoseconds compute_time{0};
};

class EngineOfStores final : public Engine {
 public:
  // `log` may be null: then nothing outlives the process.
  EngineOfStores(const EngineOptions& options, std::unique_ptr<CommitLog> log)
      : limits_(options.limits),
        tiles_(TileUnitOf(ChooseKernel(options.kernel).value_or(KernelChoice()).kernel)),
        log_(std::move(log)),
        loaded_(log_ == nullptr),
        stores_(limits_.memory_bytes_max),
        ranking_(limits_.ranking_bytes_max, stores_.budget()),
        batcher_(
            BatchOptions{.queries_max = options.queries_per_pass_max,
                         .wait_max = options.pass_wait_max,
                         .answer_max = options.limits.lookup_wait_max},
            options.thread_count, [this](Task task) { pool_.Post(std::move(task)); },
            [this](Batch batch, Batcher::Answers answers) {
              return RunBatch(std::move(batch), answers);
            }),
        pool_(options.thread_count, kUnlimited),
        waker_(1, kUnlimited),
        committer_(log_.get(), limits_.waiting_append_bytes_max, counters_.log_sync_time) {}
  ~EngineOfStores() override;

  const Limits& limits() const override { return limits_; }
  EngineStats stats() const override;
  absl::Status Load(LoadObserver& observer) override;
  absl::StatusOr<StoreInfo> CreateStore(const StoreConfig& config) override;
  absl::StatusOr<StoreInfo> GetStore(absl::string_view name) override;
  absl::StatusOr<ListResult> ListStores(absl::string_view prefix, absl::string_view after,
                                        std::int64_t count_max) override;
  absl::StatusOr<StoreInfo> UpdateStore(absl::string_view name, const StoreUpdate& update) override;
  absl::Status DeleteStore(absl::string_view name) override;
  void Append(const AppendRequest& request, AppendCallback callback,
              absl::AnyInvocable<void()> on_turn) override;
  absl::StatusOr<WriterInfo> GetWriter(absl::string_view store, absl::string_view writer) override;
  absl::StatusOr<std::unique_ptr<RowReader>> ReadRows(absl::string_view store,
                                                      const RowFilter& filter) override;
  absl::StatusOr<DeleteRowsResult> DeleteRows(absl::string_view store,
                                              const RowFilter& filter) override;
  void Lookup(LookupRequest request, std::shared_ptr<CancelToken> cancel,
              LookupCallback callback) override;
  absl::Status CheckRoom(absl::string_view store, std::int64_t query_count) override;
  void Attend(const AttendRequest& request, std::shared_ptr<CancelToken> cancel,
              LookupCallback callback) override;
  absl::StatusOr<MemoryState> GetMemory(absl::string_view store, absl::string_view name,
                                        std::optional<std::uint64_t> begin,
                                        std::optional<std::uint64_t> end) override;
  void WhenRevision(absl::string_view store, std::uint64_t incarnation, std::uint64_t revision,
                    std::shared_ptr<CancelToken> cancel,
                    absl::AnyInvocable<void(absl::Status)> callback) override;
  absl::Status CopyTo(const std::string& directory) override;

 private:
  using Task = absl::AnyInvocable<void()>;
  using Answer = absl::AnyInvocable<absl::StatusOr<LookupResult>()>;
  using MayBlock = Committer::MayBlock;
  // Can be copied: whoever is turned away by a full queue still has to hear of it.
  using AppendAnswer = std::function<void(absl::StatusOr<AppendResult>)>;

  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

  // LOADING until Load has returned.
  absl::Status CheckLoaded() const;
  absl::StatusOr<std::shared_ptr<Store>> Find(absl::string_view field,
                                              absl::string_view name) const;
  Store::Executor WakeUps() {
    return [this](Task task) { waker_.Post(std::move(task)); };
  }
  // What of an append goes into a store of this configuration; keys and values that are to be
  // projected are still missing.
  absl::StatusOr<RowsToAppend> TakeRows(const AppendRequest& request,
                                        const StoreConfig& config) const;
  // Projects what takes long on the pool, then posts it.
  void ProjectLater(InputsToAppend append, AppendAnswer answer, Task on_turn);
  // Gives the append, or what refuses it, its turn.
  void PostAppend(std::shared_ptr<Store> store, absl::StatusOr<RowsToAppend> rows,
                  std::shared_ptr<AppendChain> chain, const AppendAnswer& answer,
                  MayBlock may_block);
  // Takes the write that make(callback) returns through, and waits for what it answers.
  template <typename Result, typename Make>
  Result Commit(const Make& make);
  // Prepares a lookup in the store's newest snapshot: here, as a task of the pool that was posted
  // at `posted`. Returns what part of it was done.
  double LookUp(const LookupRequest& request, const Store& store, SteadyTime posted,
                std::shared_ptr<CancelToken> cancel, LookupCallback callback,
                Batcher::Admission admission);
  // Has it run with others in the same store. `admission` is into the queue for that.
  void Share(std::unique_ptr<PendingLookup> pending, std::uint64_t store_number,
             Batcher::Admission admission);
  double RunBatch(Batch batch, Batcher::Answers answers);
  // Answers lookups in one store, which take part in a pass since `begin`, here and on threads of
  // the pool. Calls `answers` before what the pass found goes out. Returns what part of their cost
  // was done: 1, unless some were given up.
  double RunLookups(absl::Span<PendingLookup* const> lookups, SteadyTime begin,
                    Batcher::Answers answers);
  // Counts where the time of a lookup went, and reports it.
  void Report(const PendingLookup& lookup);
  // Waits for the revision, then looks up.
  void LookUpLater(LookupRequest request, std::shared_ptr<Store> store,
                   std::shared_ptr<CancelToken> cancel, LookupCallback callback);
  // Answers with the result of `answer`: here if it costs less than handing it over, else on the
  // pool, whose queue may be full.
  void Schedule(double cost, Answer answer, LookupCallback callback);
  // QUEUE_FULL if as much as may already waits for a thread of the pool. Who takes a place posts.
  absl::Status TakePlace();
  absl::Status TakePlace(double cost, absl::Duration answer_max);
  // `cost` is what a place was taken for. The task returns what part of it was done.
  void PostToPool(double cost, absl::AnyInvocable<double()> task);

  const Limits limits_;
  const std::optional<kernels::TileUnit> tiles_;  // Of its kernel.
  EngineCounters counters_;
  const std::unique_ptr<CommitLog> log_;
  std::atomic<bool> loaded_;
  StoreTable stores_;
  RankingMemory ranking_;
  std::atomic<std::uint64_t> last_store_number_{0};
  std::atomic<std::int64_t> waiting_count_{0};  // For a thread of the pool.

  absl::Mutex mutex_;
  // Of appends whose inputs are projected on the pool.
  std::int64_t projecting_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t projecting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;

  // These end what is in progress, which uses the rest. A write hands those who waited for it to
  // the waker, whose one thread hands lookups to the pool.
  Batcher batcher_;  // Before the pool, whose last tasks may still post to it.
  ForkJoinPool pool_;
  ForkJoinPool waker_;
  Committer committer_;
};

EngineOfStores::~EngineOfStores() {
  // They are still to be written.
  const auto none_projects = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return projecting_count_ == 0;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&none_projects));
}

absl::Status EngineOfStores::Load(LoadObserver& observer) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<NamedStore> stores, StoresIn(*log_));
  if (!stores.empty()) last_store_number_ = stores.back().store;
  const bool have_names = stores.empty() || !stores[0].name.empty();
  const std::unique_ptr<LogBatch> names = log_->NewBatch();
  bool is_whole = have_names;
  SOFTLOOKUP_RETURN_IF_ERROR(
      LoadStores(stores, *log_, pool_, WakeUps(), observer, [&](LoadedStore loaded) {
        is_whole = is_whole && loaded.store.ok();
        LogName(loaded.number, loaded.name, *names);
        stores_.AddLoaded(loaded.name, std::move(loaded.store));
      }));
  // All of them, also one whose name is lost: what has no name is not looked for.
  if (!have_names) SOFTLOOKUP_RETURN_IF_ERROR(log_->Commit(*names, Sync::kYes));
  // Where there is damage, upkeep would come by it, and end the writes to all stores.
  if (is_whole) log_->BeginUpkeep();
  loaded_ = true;
  return absl::OkStatus();
}

EngineStats EngineOfStores::stats() const {
  const StoreTotals& totals = stores_.totals();
  return {.lookup_queue_time = counters_.lookup_queue_time.counts(),
          .lookup_compute_time = counters_.lookup_compute_time.counts(),
          .pass_queries = counters_.pass_queries.counts(),
          .pass_lookups = counters_.pass_lookups.counts(),
          .scanned_rows = counters_.scanned_rows,
          .scanned_bytes = counters_.scanned_bytes,
          .appended_rows = static_cast<std::uint64_t>(totals.appended_rows),
          .appended_bytes = static_cast<std::uint64_t>(totals.appended_bytes),
          .log_sync_time = counters_.log_sync_time.counts(),
          .log_failed = log_ != nullptr && log_->has_failed(),
          .damaged_stores = totals.damaged_stores,
          .stores = totals.stores,
          .rows = static_cast<std::uint64_t>(totals.rows),
          .live_rows = static_cast<std::uint64_t>(totals.live_rows),
          .store_bytes = stores_.budget().store_bytes(),
          .memory_used_bytes = stores_.budget().used_bytes(),
          .waiting_lookups = waiting_count_,
          .waiting_work = batcher_.waiting_cost()};
}

absl::Status EngineOfStores::CheckLoaded() const {
  if (loaded_) return absl::OkStatus();
  return WithRetryAfter(MakeError(reasons::kLoading, "The server is still loading its stores"),
                        absl::Seconds(1));
}

absl::StatusOr<std::shared_ptr<Store>> EngineOfStores::Find(absl::string_view field,
                                                            absl::string_view name) const {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLoaded());
  return stores_.Find(field, name);
}

template <typename Result, typename Make>
Result EngineOfStores::Commit(const Make& make) {
  std::optional<Result> result;
  absl::Notification answered;
  const bool posted = committer_.Post(make([&](Result r) {
                                        result = std::move(r);
                                        answered.Notify();
                                      }),
                                      MayBlock::kYes);
  if (!posted) return WriteQueueFull();
  answered.WaitForNotification();
  return *std::move(result);
}

absl::StatusOr<StoreInfo> EngineOfStores::CreateStore(const StoreConfig& config) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLoaded());
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreConfig(config));
  return Commit<absl::StatusOr<StoreInfo>>([&](auto callback) {
    return MakeCreateStore(stores_, ++last_store_number_, config, WakeUps(),
                           limits_.store_count_max, std::move(callback));
  });
}

absl::StatusOr<StoreInfo> EngineOfStores::GetStore(absl::string_view name) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> store, Find("name", name));
  return store->info();
}

absl::StatusOr<ListResult> EngineOfStores::ListStores(absl::string_view prefix,
                                                      absl::string_view after,
                                                      std::int64_t count_max) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLoaded());
  return stores_.List(prefix, after, count_max);
}

absl::StatusOr<StoreInfo> EngineOfStores::UpdateStore(absl::string_view name,
                                                      const StoreUpdate& update) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::shared_ptr<Store> store, Find("store.name", name));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreUpdate(update, store->snapshot()->config()));
  return Commit<absl::StatusOr<StoreInfo>>([&](auto callback) {
    return MakeUpdate(stores_, std::move(store), update, std::move(callback));
  });
}

absl::Status EngineOfStores::DeleteStore(absl::string_view name) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLoaded());
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName("name", name));
  return Commit<absl::Status>([&](auto callback) {
    return MakeDeleteStore(stores_, std::string(name), std::move(callback));
  });
}

void EngineOfStores::Append(const AppendRequest& request, AppendCallback callback, Task on_turn) {
  const auto shared_callback = std::make_shared<AppendCallback>(std::move(callback));
  const AppendAnswer answer = [shared_callback](absl::StatusOr<AppendResult> result) {
    (*shared_callback)(std::move(result));
  };
  const MayBlock may_block = request.may_block ? MayBlock::kYes : MayBlock::kNo;
  absl::StatusOr<std::shared_ptr<Store>> store = Find("store", request.store);
  if (!store.ok()) {
    PostAppend(nullptr, store.status(), request.chain, answer, may_block);
    return on_turn();
  }
  const std::shared_ptr<const Snapshot> snapshot = (*store)->snapshot();
  const StoreConfig& config = snapshot->config();
  absl::StatusOr<RowsToAppend> rows = TakeRows(request, config);
  if (rows.ok() && request.inputs) {
    InputsToAppend append{.store = *store,
                          .rows = *std::move(rows),
                          .projection = config.projection,
                          .key_dim = config.key_dim,
                          .value_dim = config.value_dim,
                          .inputs = *request.inputs,
                          .deadline = request.deadline};
    if (append.cost() > kInlineCostMax) {
      return ProjectLater(std::move(append), answer, std::move(on_turn));
    }
    rows = append.Project();
  }
  PostAppend(*std::move(store), std::move(rows), request.chain, answer, may_block);
  on_turn();
}

void EngineOfStores::PostAppend(std::shared_ptr<Store> store, absl::StatusOr<RowsToAppend> rows,
                                std::shared_ptr<AppendChain> chain, const AppendAnswer& answer,
                                MayBlock may_block) {
  std::unique_ptr<Write> write =
      rows.ok() ? MakeAppend(stores_, std::move(store), *std::move(rows), answer)
                : MakeRefusedAppend(rows.status(), chain, answer);
  const bool is_small = write->bytes() <= kBytesWrittenHereMax;
  if (committer_.Post(std::move(write), is_small ? may_block : MayBlock::kNo)) return;
  if (chain != nullptr) chain->failed = true;
  answer(WriteQueueFull());
}

void EngineOfStores::ProjectLater(InputsToAppend append, AppendAnswer answer, Task on_turn) {
  const std::int64_t bytes = append.bytes();
  absl::Status full;
  {
    absl::MutexLock lock(&mutex_);
    if (projecting_count_ > 0 && projecting_bytes_ + bytes > limits_.waiting_append_bytes_max) {
      full = WriteQueueFull();
    } else if (full = TakePlace(append.cost(), kProjectionWaitMax); full.ok()) {
      ++projecting_count_;
      projecting_bytes_ += bytes;
    }
  }
  if (!full.ok()) {
    if (append.rows.chain != nullptr) append.rows.chain->failed = true;
    answer(full);
    return on_turn();
  }
  append.OwnInputs();
  const double cost = append.cost();
  PostToPool(cost, [this, bytes, waiting = MemoryBudget::Waiting(stores_.budget(), bytes),
                    append = std::move(append), answer = std::move(answer),
                    on_turn = std::move(on_turn)]() mutable {
    const std::shared_ptr<AppendChain> chain = append.rows.chain;
    absl::StatusOr<RowsToAppend> rows = append.Project();
    PostAppend(std::move(append.store), std::move(rows), chain, answer, MayBlock::kNo);
    on_turn();
    absl::MutexLock lock(&mutex_);
    --projecting_count_;
    projecting_bytes_ -= bytes;
    return 1;
  });
}

absl::StatusOr<RowsToAppend> EngineOfStores::TakeRows(const AppendRequest& request,
                                                      const StoreConfig& config) const {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckAppend(request, config, limits_));
  RowsToAppend rows{.ids = {request.ids.begin(), request.ids.end()},
                    .row_labels = {request.row_labels.begin(), request.row_labels.end()},
                    .on_conflict = request.on_conflict,
                    .writer = request.writer,
                    .sequence = request.sequence,
                    .sync = request.durable ? Sync::kYes : Sync::kNo,
                    .chain = request.chain};
  for (const std::string& name : request.return_memories) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(rows.memories.emplace_back(), FindMemory(config, name));
  }
  if (!request.inputs) {
    rows.keys.assign(request.keys.data, request.keys.data + request.keys.rows * config.key_dim);
    rows.values.assign(request.values.data,
                       request.values.data + request.values.rows * config.value_dim);
  }
  return rows;
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
  return std::make_unique<SnapshotReader>(std::move(snapshot), std::move(selection));
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

void EngineOfStores::Lookup(LookupRequest request, std::shared_ptr<CancelToken> cancel,
                            LookupCallback callback) {
  const SteadyTime begin = Now();
  absl::StatusOr<std::shared_ptr<Store>> found = Find("store", request.store);
  if (!found.ok()) return callback(found.status());
  std::shared_ptr<Store> store = *std::move(found);
  std::shared_ptr<const Snapshot> snapshot = store->snapshot();
  if (snapshot->revision() < request.min_revision) {
    return LookUpLater(std::move(request), std::move(store), std::move(cancel),
                       std::move(callback));
  }
  if (const double cost = PreparationCost(request, *snapshot); cost > kInlineCostMax) {
    absl::Status full = TakePlace(cost, limits_.lookup_wait_max);
    if (!full.ok()) return callback(std::move(full));
    return PostToPool(cost, [this, begin, request = std::move(request), store = std::move(store),
                             cancel = std::move(cancel), callback = std::move(callback)]() mutable {
      return LookUp(request, *store, begin, std::move(cancel), std::move(callback),
                    Batcher::Admission::kBounded);
    });
  }
  auto lookup = PreparedLookup::Make(request, std::move(snapshot), limits_, tiles_);
  if (!lookup.ok()) return callback(lookup.status());
  absl::StatusOr<RankingMemory::Taken> ranking =
      ranking_.Take((*lookup)->task(), (*lookup)->query_count());
  if (!ranking.ok()) return callback(ranking.status());
  auto pending =
      std::make_unique<PendingLookup>(*std::move(lookup), *std::move(ranking), request.report,
                                      std::move(cancel), std::move(callback));
  if (pending->lookup->cost() <= kInlineCostMax) {
    PendingLookup* const alone = pending.get();
    RunLookups({&alone, 1}, begin, [](std::int64_t) {});
    return;
  }
  pending->waits_since = begin;
  Share(std::move(pending), store->number(), Batcher::Admission::kBounded);
}

void EngineOfStores::Share(std::unique_ptr<PendingLookup> pending, std::uint64_t store_number,
                           Batcher::Admission admission) {
  if (admission == Batcher::Admission::kAlways) {
    ++waiting_count_;
  } else if (absl::Status full = TakePlace(); !full.ok()) {
    return pending->callback(std::move(full));
  }
  // One that lists all weights takes too much memory to wait for others with what it found.
  const bool is_alone = pending->lookup->task().options.weights == WeightsMode::kAll;
  const PreparedLookup& lookup = *pending->lookup;
  WaitingScan scan = ScanOf(store_number, lookup.query_count(), lookup.cost());
  if (is_alone) scan.query_count = std::numeric_limits<std::int32_t>::max();
  scan.scan = std::move(pending);
  const auto retry_delay = batcher_.Post(scan, admission);
  if (!retry_delay) return;
  --waiting_count_;
  static_cast<PendingLookup&>(*scan.scan).callback(LookupWorkFull(*retry_delay));
}

absl::Status EngineOfStores::CheckRoom(absl::string_view store, std::int64_t query_count) {
  const absl::StatusOr<std::shared_ptr<Store>> found = Find("store", store);
  if (!found.ok()) return absl::OkStatus();
  const std::shared_ptr<const Snapshot> snapshot = (*found)->snapshot();
  const StoreConfig& config = snapshot->config();
  const double cost = static_cast<double>(query_count) *
                      static_cast<double>(snapshot->live_row_count()) *
                      static_cast<double>(config.key_dim + config.value_dim);
  if (cost <= kInlineCostMax) return absl::OkStatus();
  if (waiting_count_ >= limits_.waiting_lookups_max) {
    return LookupQueueFull(limits_.waiting_lookups_max);
  }
  const auto retry_delay = batcher_.Refusal(ScanOf((*found)->number(), query_count, cost));
  return retry_delay ? LookupWorkFull(*retry_delay) : absl::OkStatus();
}

double EngineOfStores::RunBatch(Batch batch, Batcher::Answers answers) {
  waiting_count_ -= static_cast<std::int64_t>(batch.scans.size());
  const SteadyTime begin = Now();
  std::vector<PendingLookup*> lookups;
  for (const std::unique_ptr<Scan>& scan : batch.scans) {
    lookups.push_back(static_cast<PendingLookup*>(scan.get()));
    lookups.back()->queue_time += begin - lookups.back()->waits_since;
  }
  return RunLookups(lookups, begin, answers);
}

double EngineOfStores::RunLookups(absl::Span<PendingLookup* const> lookups, SteadyTime begin,
                                  Batcher::Answers answers) {
  std::vector<absl::Status> statuses(lookups.size());
  pool_.ForkJoin(static_cast<std::int64_t>(lookups.size()), [&](std::int64_t i) {
    PendingLookup& pending = *lookups[static_cast<std::size_t>(i)];
    statuses[static_cast<std::size_t>(i)] = pending.lookup->Begin(*pending.cancel);
  });
  std::vector<PendingLookup*> begun;
  std::vector<SharedTask> tasks;
  for (std::size_t i = 0; i < lookups.size(); ++i) {
    PendingLookup* const pending = lookups[i];
    if (!statuses[i].ok()) {
      pending->compute_time += Now() - begin;
      Report(*pending);
      pending->callback(std::move(statuses[i]));
      continue;
    }
    begun.push_back(pending);
    tasks.push_back({.task = &pending->lookup->task(), .cancel = pending->cancel.get()});
  }
  const ScannedRows scanned = AttendTogether(absl::MakeSpan(tasks), pool_);
  const SteadyTime end = Now();
  std::int64_t query_count = 0;
  for (PendingLookup* const pending : begun) {
    pending->compute_time += end - begin;
    query_count += pending->lookup->query_count();
    Report(*pending);
  }
  if (!begun.empty()) {
    counters_.pass_queries.Observe(query_count);
    counters_.pass_lookups.Observe(static_cast<std::int64_t>(begun.size()));
  }
  counters_.scanned_rows += scanned.rows;
  counters_.scanned_bytes += scanned.bytes;
  double cost = 0, done_cost = 0;
  std::int64_t answered_count = 0;
  for (const PendingLookup* const pending : lookups) cost += pending->lookup->cost();
  for (std::size_t i = 0; i < begun.size(); ++i) {
    const absl::Status& status = tasks[i].answer.status();
    const bool is_cut = absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
    if (is_cut) continue;
    done_cost += begun[i]->lookup->cost();
    ++answered_count;
  }
  answers(answered_count);
  pool_.ForkJoin(static_cast<std::int64_t>(begun.size()), [&](std::int64_t i) {
    PendingLookup& pending = *begun[static_cast<std::size_t>(i)];
    absl::StatusOr<AttentionAnswer>& answer = tasks[static_cast<std::size_t>(i)].answer;
    if (!answer.ok()) return pending.callback(answer.status());
    pending.callback(pending.lookup->Finish(*std::move(answer)));
  });
  return cost > 0 ? done_cost / cost : 1;
}

void EngineOfStores::Report(const PendingLookup& lookup) {
  counters_.lookup_queue_time.Observe(lookup.queue_time);
  counters_.lookup_compute_time.Observe(lookup.compute_time);
  if (lookup.report == nullptr) return;
  lookup.report->queue_wait = absl::FromChrono(lookup.queue_time);
  lookup.report->compute = absl::FromChrono(lookup.compute_time);
  lookup.report->scanned_rows = lookup.lookup->task().row_count();
}

void EngineOfStores::LookUpLater(LookupRequest request, std::shared_ptr<Store> store,
                                 std::shared_ptr<CancelToken> cancel, LookupCallback callback) {
  // What is wrong for good is wrong at once.
  const std::shared_ptr<const Snapshot> snapshot = store->snapshot();
  absl::Status status = CheckLookupForGood(request, snapshot->config(), limits_);
  if (status.ok() && request.source == Source::kMemory) {
    status = FindMemory(snapshot->config(), request.memory).status();
  }
  if (!status.ok()) return callback(status);
  Store& waited_for = *store;
  const std::uint64_t revision = request.min_revision;
  std::shared_ptr<CancelToken> sleep = cancel;
  waited_for.WhenRevision(
      revision, std::move(sleep),
      [this, begin = Now(), request = std::move(request), store = std::move(store),
       cancel = std::move(cancel),
       callback = std::move(callback)](const absl::Status& status) mutable {
        const SteadyTime now = Now();
        if (request.report != nullptr)
          request.report->revision_wait = absl::FromChrono(now - begin);
        if (!status.ok()) return callback(status);
        // It was let in when it began to wait.
        ++waiting_count_;
        const double cost = PreparationCost(request, *store->snapshot());
        batcher_.AddTask(cost, absl::InfiniteDuration());
        PostToPool(cost, [this, now, request = std::move(request), store = std::move(store),
                          cancel = std::move(cancel), callback = std::move(callback)]() mutable {
          return LookUp(request, *store, now, std::move(cancel), std::move(callback),
                        Batcher::Admission::kAlways);
        });
      });
}

double EngineOfStores::LookUp(const LookupRequest& request, const Store& store, SteadyTime posted,
                              std::shared_ptr<CancelToken> cancel, LookupCallback callback,
                              Batcher::Admission admission) {
  const SteadyTime begin = Now();
  if (request.report != nullptr) request.report->queue_wait = absl::FromChrono(begin - posted);
  if (absl::Status status = cancel->Check(); !status.ok()) {
    callback(std::move(status));
    return 0;
  }
  auto lookup = PreparedLookup::Make(request, store.snapshot(), limits_, tiles_);
  if (!lookup.ok()) {
    callback(lookup.status());
    return 0;
  }
  absl::StatusOr<RankingMemory::Taken> ranking =
      ranking_.Take((*lookup)->task(), (*lookup)->query_count());
  if (!ranking.ok()) {
    callback(ranking.status());
    return 0;
  }
  auto pending =
      std::make_unique<PendingLookup>(*std::move(lookup), *std::move(ranking), request.report,
                                      std::move(cancel), std::move(callback));
  pending->waits_since = Now();
  pending->queue_time = begin - posted;
  pending->compute_time = pending->waits_since - begin;
  Share(std::move(pending), store.number(), admission);
  return 1;
}

void EngineOfStores::Attend(const AttendRequest& request, std::shared_ptr<CancelToken> cancel,
                            LookupCallback callback) {
  const absl::StatusOr<double> cost = CheckAttend(request, limits_);
  if (!cost.ok()) return callback(cost.status());
  Schedule(
      *cost,
      [this, request, cancel = std::move(cancel)] {
        return AttendToRequest(request, limits_, tiles_, ranking_, pool_, *cancel);
      },
      std::move(callback));
}

void EngineOfStores::Schedule(double cost, Answer answer, LookupCallback callback) {
  if (cost <= kInlineCostMax) return callback(answer());
  if (absl::Status full = TakePlace(cost, limits_.lookup_wait_max); !full.ok()) {
    return callback(std::move(full));
  }
  PostToPool(cost, [answer = std::move(answer), callback = std::move(callback)]() mutable {
    absl::StatusOr<LookupResult> result = answer();
    const double done_part = result.ok() ? 1 : 0;
    callback(std::move(result));
    return done_part;
  });
}

absl::Status EngineOfStores::TakePlace() {
  if (waiting_count_.fetch_add(1) < limits_.waiting_lookups_max) return absl::OkStatus();
  --waiting_count_;
  return LookupQueueFull(limits_.waiting_lookups_max);
}

absl::Status EngineOfStores::TakePlace(double cost, absl::Duration answer_max) {
  SOFTLOOKUP_RETURN_IF_ERROR(TakePlace());
  const auto retry_delay = batcher_.AddTask(cost, answer_max);
  if (!retry_delay) return absl::OkStatus();
  --waiting_count_;
  return LookupWorkFull(*retry_delay);
}

void EngineOfStores::PostToPool(double cost, absl::AnyInvocable<double()> task) {
  pool_.Post([this, cost, task = std::move(task)]() mutable {
    --waiting_count_;
    const WorkRate::Piece piece = batcher_.BeginTask(cost);
    batcher_.EndTask(piece, cost, task());
  });
}

absl::StatusOr<MemoryState> EngineOfStores::GetMemory(absl::string_view store,
                                                      absl::string_view name,
                                                      std::optional<std::uint64_t> begin,
                                                      std::optional<std::uint64_t> end) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> found, Find("store", store));
  const std::shared_ptr<const Snapshot> snapshot = found->snapshot();
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::size_t index, FindMemory(snapshot->config(), name));
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      const RowSelection range,
      RowSelection::Make(*snapshot, {.begin = begin, .end = end}, /*prefix=*/""));
  SOFTLOOKUP_ASSIGN_OR_RETURN(MemoryState state,
                              ReadMemory(*snapshot, index, range.begin(), range.end()));
  state.incarnation = found->number();
  return state;
}

void EngineOfStores::WhenRevision(absl::string_view store, std::uint64_t incarnation,
                                  std::uint64_t revision, std::shared_ptr<CancelToken> cancel,
                                  absl::AnyInvocable<void(absl::Status)> callback) {
  const absl::StatusOr<std::shared_ptr<Store>> found = Find("store", store);
  if (!found.ok()) return callback(found.status());
  if ((*found)->number() != incarnation) return callback(StoreNotFound(store));
  (*found)->WhenRevision(revision, std::move(cancel), std::move(callback));
}

absl::Status EngineOfStores::CopyTo(const std::string& directory) {
  // A write is acknowledged once the log has it, so the log's copy has all that it takes.
  if (log_ != nullptr) return log_->CopyTo(directory);
  return MakeError(reasons::kBackupsDisabled, "What is kept in memory only cannot be backed up");
}

}  // namespace

std::unique_ptr<Engine> Engine::Create(const EngineOptions& options) {
  return std::make_unique<EngineOfStores>(options, nullptr);
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Open(const EngineOptions& options,
                                                     const std::string& directory) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::unique_ptr<CommitLog> log, OpenCommitLog(directory));
  return std::make_unique<EngineOfStores>(options, std::move(log));
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Open(
    const EngineOptions& options, const std::string& directory,
    absl::FunctionRef<void(const absl::Status&)> on_damage) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::unique_ptr<CommitLog> log, OpenCommitLog(directory));
  return OpenOnLog(options, std::move(log), on_damage);
}

absl::StatusOr<std::unique_ptr<Engine>> OpenOnLog(
    const EngineOptions& options, std::unique_ptr<CommitLog> log,
    absl::FunctionRef<void(const absl::Status&)> on_damage) {
  class DamageObserver final : public LoadObserver {
   public:
    explicit DamageObserver(absl::FunctionRef<void(const absl::Status&)> on_damage)
        : on_damage_(on_damage) {}
    void OnDamage(const absl::Status& damage) override { on_damage_(damage); }

   private:
    const absl::FunctionRef<void(const absl::Status&)> on_damage_;
  } observer(on_damage);
  auto engine = std::make_unique<EngineOfStores>(options, std::move(log));
  SOFTLOOKUP_RETURN_IF_ERROR(engine->Load(observer));
  return engine;
}

absl::Status Engine::Verify(const std::string& directory, LoadObserver& observer) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::unique_ptr<const CommitLog> log,
                              OpenCommitLogToRead(directory));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<NamedStore> stores, StoresIn(*log));
  absl::Status damage;
  for (const NamedStore& store : stores) {
    // One by one: a directory may hold more than this machine's memory.
    const LoadedStore loaded = LoadStore(store, *log, /*executor=*/nullptr);
    Tell(observer, loaded);
    damage.Update(loaded.store.status());
  }
  const absl::Status checksums = log->VerifyChecksums();
  if (!checksums.ok()) observer.OnDamage(checksums);
  damage.Update(checksums);
  return damage;
}

}  // namespace softlookup
