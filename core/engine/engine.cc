#include "softlookup/engine.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/committer.h"
#include "core/engine/lookup.h"
#include "core/engine/project.h"
#include "core/engine/store_records.h"
#include "core/engine/store_table.h"
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

class EngineOfStores final : public Engine {
 public:
  // `log` may be null: then nothing outlives the process.
  EngineOfStores(const EngineOptions& options, std::unique_ptr<CommitLog> log)
      : limits_(options.limits),
        log_(std::move(log)),
        pool_(options.thread_count, options.limits.waiting_lookups_max),
        committer_(log_.get(), limits_.waiting_append_bytes_max) {}

  // Brings back the stores that the log has. Before anything else.
  absl::Status Load(absl::FunctionRef<void(const absl::Status&)> on_damage);

  const Limits& limits() const override { return limits_; }
  absl::StatusOr<StoreInfo> CreateStore(const StoreConfig& config) override;
  absl::StatusOr<StoreInfo> GetStore(absl::string_view name) override;
  ListResult ListStores(absl::string_view prefix, absl::string_view after,
                        std::int64_t count_max) override;
  absl::StatusOr<StoreInfo> UpdateStore(absl::string_view name, const StoreUpdate& update) override;
  absl::Status DeleteStore(absl::string_view name) override;
  void Append(const AppendRequest& request, AppendCallback callback) override;
  absl::StatusOr<WriterInfo> GetWriter(absl::string_view store, absl::string_view writer) override;
  absl::StatusOr<std::unique_ptr<RowReader>> ReadRows(absl::string_view store,
                                                      const RowFilter& filter) override;
  absl::StatusOr<DeleteRowsResult> DeleteRows(absl::string_view store,
                                              const RowFilter& filter) override;
  void Lookup(const LookupRequest& request, std::shared_ptr<CancelToken> cancel,
              LookupCallback callback) override;
  void Attend(const AttendRequest& request, std::shared_ptr<CancelToken> cancel,
              LookupCallback callback) override;
  absl::StatusOr<MemoryState> GetMemory(absl::string_view store, absl::string_view name,
                                        std::optional<std::uint64_t> begin,
                                        std::optional<std::uint64_t> end) override;
  void WhenRevision(absl::string_view store, std::uint64_t revision,
                    std::shared_ptr<CancelToken> cancel,
                    absl::AnyInvocable<void(absl::Status)> callback) override;

 private:
  using Work = absl::AnyInvocable<absl::StatusOr<LookupResult>()>;
  enum class Where { kAnywhere, kOnThePool };

  // What of a checked append goes into `store`.
  absl::StatusOr<RowsToAppend> TakeRows(const AppendRequest& request, const Store& store) const;
  // Takes the write that make(callback) returns through, and waits for what it answers.
  template <typename Result, typename Make>
  Result Commit(const Make& make);
  // Looks up in the store's newest snapshot.
  void LookUpNow(const LookupRequest& request, const Store& store,
                 std::shared_ptr<CancelToken> cancel, LookupCallback callback, Where where);
  // Answers with the result of `work`: here if it costs less than handing it over, else on the
  // pool, whose queue may be full.
  void Schedule(double cost, Work work, LookupCallback callback, Where where);

  const Limits limits_;
  const std::unique_ptr<CommitLog> log_;
  StoreTable stores_;
  std::atomic<std::uint64_t> last_store_number_{0};
  // These end what is in progress, which uses the rest; a write may wake a lookup.
  ForkJoinPool pool_;
  Committer committer_;
};

absl::Status EngineOfStores::Load(absl::FunctionRef<void(const absl::Status&)> on_damage) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> numbers, StoresIn(*log_));
  if (!numbers.empty()) last_store_number_ = numbers.back();
  absl::Mutex mutex;
  pool_.ForkJoin(static_cast<std::int64_t>(numbers.size()), [&](std::int64_t i) {
    LoadedStore loaded = LoadStore(numbers[i], *log_);
    absl::MutexLock lock(&mutex);
    if (!loaded.store.ok()) on_damage(loaded.store.status());
    if (!loaded.name.empty()) stores_.Add(loaded.name, std::move(loaded.store));
  });
  return absl::OkStatus();
}

template <typename Result, typename Make>
Result EngineOfStores::Commit(const Make& make) {
  std::optional<Result> result;
  absl::Notification answered;
  const bool posted = committer_.Post(make([&](Result r) {
    result = std::move(r);
    answered.Notify();
  }));
  if (!posted) return WriteQueueFull();
  answered.WaitForNotification();
  return *std::move(result);
}

absl::StatusOr<StoreInfo> EngineOfStores::CreateStore(const StoreConfig& config) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreConfig(config));
  return Commit<absl::StatusOr<StoreInfo>>([&](auto callback) {
    return MakeCreateStore(stores_, ++last_store_number_, config, limits_.store_count_max,
                           std::move(callback));
  });
}

absl::StatusOr<StoreInfo> EngineOfStores::GetStore(absl::string_view name) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> store, stores_.Find("name", name));
  return store->info();
}

ListResult EngineOfStores::ListStores(absl::string_view prefix, absl::string_view after,
                                      std::int64_t count_max) {
  return stores_.List(prefix, after, count_max);
}

absl::StatusOr<StoreInfo> EngineOfStores::UpdateStore(absl::string_view name,
                                                      const StoreUpdate& update) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::shared_ptr<Store> store, stores_.Find("store.name", name));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreUpdate(update, store->snapshot()->config()));
  return Commit<absl::StatusOr<StoreInfo>>([&](auto callback) {
    return MakeUpdate(stores_, std::move(store), update, std::move(callback));
  });
}

absl::Status EngineOfStores::DeleteStore(absl::string_view name) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName("name", name));
  return Commit<absl::Status>([&](auto callback) {
    return MakeDeleteStore(stores_, std::string(name), std::move(callback));
  });
}

void EngineOfStores::Append(const AppendRequest& request, AppendCallback callback) {
  // Whoever is turned away by a full queue still has to hear of it.
  const auto shared_callback = std::make_shared<AppendCallback>(std::move(callback));
  const auto answer = [shared_callback](absl::StatusOr<AppendResult> result) {
    (*shared_callback)(std::move(result));
  };
  absl::StatusOr<std::shared_ptr<Store>> store = stores_.Find("store", request.store);
  absl::StatusOr<RowsToAppend> rows =
      store.ok() ? TakeRows(request, **store) : absl::StatusOr<RowsToAppend>(store.status());
  std::unique_ptr<Write> write =
      rows.ok() ? MakeAppend(stores_, *std::move(store), *std::move(rows), answer)
                : MakeRefusedAppend(rows.status(), request.chain, answer);
  if (committer_.Post(std::move(write))) return;
  if (request.chain != nullptr) request.chain->failed = true;
  answer(WriteQueueFull());
}

absl::StatusOr<RowsToAppend> EngineOfStores::TakeRows(const AppendRequest& request,
                                                      const Store& store) const {
  const std::shared_ptr<const Snapshot> snapshot = store.snapshot();
  const StoreConfig& config = snapshot->config();
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
  if (request.inputs) {
    const CancelToken never;
    const Projection& projection = *config.projection;
    SOFTLOOKUP_ASSIGN_OR_RETURN(
        rows.keys, Project("inputs", projection.key, config.key_dim, *request.inputs, never));
    SOFTLOOKUP_ASSIGN_OR_RETURN(
        rows.values, Project("inputs", projection.value, config.value_dim, *request.inputs, never));
  } else {
    rows.keys.assign(request.keys.data, request.keys.data + request.keys.rows * config.key_dim);
    rows.values.assign(request.values.data,
                       request.values.data + request.values.rows * config.value_dim);
  }
  return rows;
}

absl::StatusOr<WriterInfo> EngineOfStores::GetWriter(absl::string_view store,
                                                     absl::string_view writer) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::shared_ptr<Store> found, stores_.Find("store", store));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckWriterName(writer));
  return Commit<absl::StatusOr<WriterInfo>>([&](auto callback) {
    return MakeGetWriter(stores_, std::move(found), std::string(writer), std::move(callback));
  });
}

absl::StatusOr<std::unique_ptr<RowReader>> EngineOfStores::ReadRows(absl::string_view store,
                                                                    const RowFilter& filter) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> found, stores_.Find("store", store));
  std::shared_ptr<const Snapshot> snapshot = found->snapshot();
  SOFTLOOKUP_ASSIGN_OR_RETURN(RowSelection selection,
                              RowSelection::Make(*snapshot, filter, "filter."));
  return std::make_unique<SnapshotReader>(std::move(snapshot), std::move(selection));
}

absl::StatusOr<DeleteRowsResult> EngineOfStores::DeleteRows(absl::string_view store,
                                                            const RowFilter& filter) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::shared_ptr<Store> found, stores_.Find("store", store));
  if (filter.empty()) {
    return InvalidOption("filter", "must not be empty; to delete every row, set its begin to 0");
  }
  return Commit<absl::StatusOr<DeleteRowsResult>>([&](auto callback) {
    return MakeDeleteRows(stores_, std::move(found), filter, std::move(callback));
  });
}

void EngineOfStores::Lookup(const LookupRequest& request, std::shared_ptr<CancelToken> cancel,
                            LookupCallback callback) {
  absl::StatusOr<std::shared_ptr<Store>> found = stores_.Find("store", request.store);
  if (!found.ok()) return callback(found.status());
  std::shared_ptr<Store> store = *std::move(found);
  const std::shared_ptr<const Snapshot> snapshot = store->snapshot();
  if (snapshot->revision() >= request.min_revision) {
    return LookUpNow(request, *store, std::move(cancel), std::move(callback), Where::kAnywhere);
  }
  // What is wrong now stays wrong, whatever is appended meanwhile.
  if (const absl::Status status = CheckLookup(request, snapshot->config(), limits_); !status.ok()) {
    return callback(status);
  }
  store->WhenRevision(
      request.min_revision, cancel,
      [this, request, store, cancel, callback = std::move(callback)](absl::Status status) mutable {
        if (!status.ok()) return callback(status);
        // This may be the thread of an append, which must not wait for lookups.
        LookUpNow(request, *store, std::move(cancel), std::move(callback), Where::kOnThePool);
      });
}

void EngineOfStores::LookUpNow(const LookupRequest& request, const Store& store,
                               std::shared_ptr<CancelToken> cancel, LookupCallback callback,
                               Where where) {
  auto lookup = PreparedLookup::Make(request, store.snapshot(), limits_);
  if (!lookup.ok()) return callback(lookup.status());
  const double cost = (*lookup)->cost();
  Schedule(
      cost,
      [this, lookup = *std::move(lookup), cancel = std::move(cancel)] {
        return lookup->Run(pool_, *cancel);
      },
      std::move(callback), where);
}

void EngineOfStores::Attend(const AttendRequest& request, std::shared_ptr<CancelToken> cancel,
                            LookupCallback callback) {
  const absl::StatusOr<double> cost = CheckAttend(request, limits_);
  if (!cost.ok()) return callback(cost.status());
  Schedule(
      *cost,
      [this, request, cancel = std::move(cancel)] {
        return AttendToRequest(request, limits_, pool_, *cancel);
      },
      std::move(callback), Where::kAnywhere);
}

void EngineOfStores::Schedule(double cost, Work work, LookupCallback callback, Where where) {
  if (where == Where::kAnywhere && cost <= kInlineCostMax) return callback(work());
  // Shared, because a queue that is full does not give the task back.
  const auto shared_callback = std::make_shared<LookupCallback>(std::move(callback));
  const bool queued = pool_.Post(
      [work = std::move(work), shared_callback]() mutable { (*shared_callback)(work()); });
  if (queued) return;
  (*shared_callback)(WithRetryAfter(
      MakeError(
          reasons::kQueueFull,
          absl::StrCat("The server's queue of ", limits_.waiting_lookups_max, " lookups is full"),
          {{"limit", absl::StrCat(limits_.waiting_lookups_max)}}),
      kRetryDelay));
}

absl::StatusOr<MemoryState> EngineOfStores::GetMemory(absl::string_view store,
                                                      absl::string_view name,
                                                      std::optional<std::uint64_t> begin,
                                                      std::optional<std::uint64_t> end) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> found, stores_.Find("store", store));
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

void EngineOfStores::WhenRevision(absl::string_view store, std::uint64_t revision,
                                  std::shared_ptr<CancelToken> cancel,
                                  absl::AnyInvocable<void(absl::Status)> callback) {
  const absl::StatusOr<std::shared_ptr<Store>> found = stores_.Find("store", store);
  if (!found.ok()) return callback(found.status());
  (*found)->WhenRevision(revision, std::move(cancel), std::move(callback));
}

}  // namespace

std::unique_ptr<Engine> Engine::Create(const EngineOptions& options) {
  return std::make_unique<EngineOfStores>(options, nullptr);
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Open(
    const EngineOptions& options, const std::string& directory,
    absl::FunctionRef<void(const absl::Status&)> on_damage) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::unique_ptr<CommitLog> log, OpenCommitLog(directory));
  auto engine = std::make_unique<EngineOfStores>(options, std::move(log));
  SOFTLOOKUP_RETURN_IF_ERROR(engine->Load(on_damage));
  return engine;
}

}  // namespace softlookup
