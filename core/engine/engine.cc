#include "softlookup/engine.h"

#include <memory>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/lookup.h"
#include "core/engine/project.h"
#include "core/engine/validate.h"
#include "core/parallel/fork_join_pool.h"
#include "core/store/row_selection.h"
#include "core/store/snapshot_reader.h"
#include "core/store/store.h"

namespace softlookup {
namespace {

// What a caller that was turned away should wait before the next attempt.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(50);

absl::Status StoreNotFound(absl::string_view name) {
  return MakeError(reasons::kStoreNotFound, absl::StrCat("There is no store \"", name, "\""),
                   {{"store", std::string(name)}});
}

// The memory over [begin, end), which are positions of the snapshot.
absl::StatusOr<MemoryState> ReadMemory(const Snapshot& snapshot, std::size_t index,
                                       std::uint64_t begin, std::uint64_t end) {
  const std::unique_ptr<RunningMemory> memory = snapshot.MemoryAsOf(end, index);
  MemoryState state{
      .name = index == 0 ? std::string(kAverageMemory) : snapshot.config().memories[index - 1].name,
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

class InMemoryEngine final : public Engine {
 public:
  explicit InMemoryEngine(const EngineOptions& options)
      : limits_(options.limits), pool_(options.thread_count, options.limits.waiting_lookups_max) {}

  const Limits& limits() const override { return limits_; }
  absl::StatusOr<StoreInfo> CreateStore(const StoreConfig& config) override;
  absl::StatusOr<StoreInfo> GetStore(absl::string_view name) override;
  ListResult ListStores(absl::string_view prefix, absl::string_view after,
                        std::int64_t count_max) override;
  absl::StatusOr<StoreInfo> UpdateStore(absl::string_view name, const StoreUpdate& update) override;
  absl::Status DeleteStore(absl::string_view name) override;
  void Append(const AppendRequest& request, AppendCallback callback) override;
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

  // `field` is where the name stands in the request.
  absl::StatusOr<std::shared_ptr<Store>> FindStore(absl::string_view field,
                                                   absl::string_view name) const;
  absl::StatusOr<AppendResult> ApplyAppend(const AppendRequest& request);
  // Looks up in the store's newest snapshot.
  void LookUpNow(const LookupRequest& request, const Store& store,
                 std::shared_ptr<CancelToken> cancel, LookupCallback callback, Where where);
  // Answers with the result of `work`: here if it costs less than handing it over, else on the
  // pool, whose queue may be full.
  void Schedule(double cost, Work work, LookupCallback callback, Where where);

  const Limits limits_;
  mutable absl::Mutex mutex_;
  absl::btree_map<std::string, std::shared_ptr<Store>> stores_ ABSL_GUARDED_BY(mutex_);
  ForkJoinPool pool_;  // Last: its destructor ends the tasks that use the rest.
};

absl::StatusOr<std::shared_ptr<Store>> InMemoryEngine::FindStore(absl::string_view field,
                                                                 absl::string_view name) const {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName(field, name));
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = stores_.find(name);
  if (found == stores_.end()) return StoreNotFound(name);
  return found->second;
}

absl::StatusOr<StoreInfo> InMemoryEngine::CreateStore(const StoreConfig& config) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreConfig(config));
  const auto store = std::make_shared<Store>(config, absl::Now());
  absl::MutexLock lock(&mutex_);
  if (static_cast<std::int64_t>(stores_.size()) >= limits_.store_count_max) {
    return MakeError(
        reasons::kTooManyStores,
        absl::StrCat("The server holds its limit of ", limits_.store_count_max, " stores"),
        {{"limit", absl::StrCat(limits_.store_count_max)}});
  }
  if (!stores_.emplace(config.name, store).second) {
    return MakeError(reasons::kStoreExists,
                     absl::StrCat("There already is a store \"", config.name, "\""),
                     {{"store", config.name}});
  }
  return store->info();
}

absl::StatusOr<StoreInfo> InMemoryEngine::GetStore(absl::string_view name) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> store, FindStore("name", name));
  return store->info();
}

ListResult InMemoryEngine::ListStores(absl::string_view prefix, absl::string_view after,
                                      std::int64_t count_max) {
  ListResult result;
  absl::ReaderMutexLock lock(&mutex_);
  auto it =
      after >= prefix && !after.empty() ? stores_.upper_bound(after) : stores_.lower_bound(prefix);
  for (; it != stores_.end() && absl::StartsWith(it->first, prefix); ++it) {
    if (static_cast<std::int64_t>(result.stores.size()) == count_max) {
      result.more = true;
      break;
    }
    result.stores.push_back(it->second->info());
  }
  return result;
}

absl::StatusOr<StoreInfo> InMemoryEngine::UpdateStore(absl::string_view name,
                                                      const StoreUpdate& update) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> store, FindStore("store.name", name));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreUpdate(update, store->snapshot()->config()));
  const std::shared_ptr<const Snapshot> snapshot = store->Update([&](StoreConfig& config) {
    if (update.score) {
      config.score = *update.score == Score::kUnspecified ? Score::kScaledDot : *update.score;
    }
    if (update.temperature) config.temperature = *update.temperature;
    if (update.projection) config.projection = *update.projection;
    if (update.labels) config.labels = *update.labels;
  });
  return store->InfoOf(*snapshot);
}

absl::Status InMemoryEngine::DeleteStore(absl::string_view name) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName("name", name));
  std::shared_ptr<Store> store;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = stores_.find(name);
    if (found == stores_.end()) return StoreNotFound(name);
    store = found->second;
    stores_.erase(found);
  }
  store->Close(StoreNotFound(name));
  return absl::OkStatus();
}

void InMemoryEngine::Append(const AppendRequest& request, AppendCallback callback) {
  callback(ApplyAppend(request));
}

absl::StatusOr<AppendResult> InMemoryEngine::ApplyAppend(const AppendRequest& request) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> store,
                              FindStore("store", request.store));
  const std::shared_ptr<const Snapshot> before = store->snapshot();
  const StoreConfig& config = before->config();
  SOFTLOOKUP_RETURN_IF_ERROR(CheckAppend(request, config, limits_));
  std::vector<std::size_t> memories;
  for (const std::string& name : request.return_memories) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(memories.emplace_back(), FindMemory(config, name));
  }
  RowBatch batch{.keys = request.keys,
                 .values = request.values,
                 .ids = request.ids,
                 .row_labels = request.row_labels,
                 .on_conflict = request.on_conflict};
  std::vector<float> keys, values;
  if (request.inputs) {
    const CancelToken never;
    const MatrixView& inputs = *request.inputs;
    SOFTLOOKUP_ASSIGN_OR_RETURN(
        keys, Project("inputs", config.projection->key, config.key_dim, inputs, never));
    SOFTLOOKUP_ASSIGN_OR_RETURN(
        values, Project("inputs", config.projection->value, config.value_dim, inputs, never));
    batch.keys = {.data = keys.data(), .rows = inputs.rows, .cols = config.key_dim};
    batch.values = {.data = values.data(), .rows = inputs.rows, .cols = config.value_dim};
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const AppendOutcome outcome, store->Append(batch));
  const Snapshot& snapshot = *outcome.snapshot;
  AppendResult result{.first_position = outcome.first_position,
                      .appended_count = outcome.appended_count,
                      .row_count = snapshot.row_count(),
                      .revision = snapshot.revision()};
  for (const std::size_t memory : memories) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(result.memories.emplace_back(),
                                ReadMemory(snapshot, memory, 0, snapshot.row_count()));
  }
  return result;
}

absl::StatusOr<std::unique_ptr<RowReader>> InMemoryEngine::ReadRows(absl::string_view store,
                                                                    const RowFilter& filter) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> found, FindStore("store", store));
  std::shared_ptr<const Snapshot> snapshot = found->snapshot();
  SOFTLOOKUP_ASSIGN_OR_RETURN(RowSelection selection,
                              RowSelection::Make(*snapshot, filter, "filter."));
  return std::make_unique<SnapshotReader>(std::move(snapshot), std::move(selection));
}

absl::StatusOr<DeleteRowsResult> InMemoryEngine::DeleteRows(absl::string_view store,
                                                            const RowFilter& filter) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> found, FindStore("store", store));
  if (filter.empty()) {
    return InvalidOption("filter", "must not be empty; to delete every row, set its begin to 0");
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const DeleteOutcome outcome, found->Delete(filter));
  return DeleteRowsResult{.deleted_count = outcome.deleted_count,
                          .revision = outcome.snapshot->revision()};
}

void InMemoryEngine::Lookup(const LookupRequest& request, std::shared_ptr<CancelToken> cancel,
                            LookupCallback callback) {
  absl::StatusOr<std::shared_ptr<Store>> found = FindStore("store", request.store);
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

void InMemoryEngine::LookUpNow(const LookupRequest& request, const Store& store,
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

void InMemoryEngine::Attend(const AttendRequest& request, std::shared_ptr<CancelToken> cancel,
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

void InMemoryEngine::Schedule(double cost, Work work, LookupCallback callback, Where where) {
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

absl::StatusOr<MemoryState> InMemoryEngine::GetMemory(absl::string_view store,
                                                      absl::string_view name,
                                                      std::optional<std::uint64_t> begin,
                                                      std::optional<std::uint64_t> end) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::shared_ptr<Store> found, FindStore("store", store));
  const std::shared_ptr<const Snapshot> snapshot = found->snapshot();
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::size_t index, FindMemory(snapshot->config(), name));
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      const RowSelection range,
      RowSelection::Make(*snapshot, {.begin = begin, .end = end}, /*prefix=*/""));
  SOFTLOOKUP_ASSIGN_OR_RETURN(MemoryState state,
                              ReadMemory(*snapshot, index, range.begin(), range.end()));
  state.incarnation = found->incarnation();
  return state;
}

void InMemoryEngine::WhenRevision(absl::string_view store, std::uint64_t revision,
                                  std::shared_ptr<CancelToken> cancel,
                                  absl::AnyInvocable<void(absl::Status)> callback) {
  const absl::StatusOr<std::shared_ptr<Store>> found = FindStore("store", store);
  if (!found.ok()) return callback(found.status());
  (*found)->WhenRevision(revision, std::move(cancel), std::move(callback));
}

}  // namespace

std::unique_ptr<Engine> Engine::Create(const EngineOptions& options) {
  return std::make_unique<InMemoryEngine>(options);
}

}  // namespace softlookup
