#include "core/engine/lookups.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/cost.h"
#include "core/base/error.h"
#include "core/base/steady_time.h"
#include "core/engine/lookup_job.h"
#include "core/engine/lookup_task.h"
#include "core/engine/memories.h"
#include "core/engine/validate.h"
#include "core/store/snapshot.h"

namespace softlookup {
namespace {

// Selects the rows of a lookup on a thread of the engine's pool, then submits the lookup.
class SelectionJob final : public Job {
 public:
  // The lookup is submitted with `admission`.
  SelectionJob(Scheduler& scheduler, Scheduler::Admission admission,
               std::unique_ptr<LookupJob> lookup, LookupRequest request,
               std::shared_ptr<const Store> store)
      : scheduler_(scheduler),
        admission_(admission),
        lookup_(std::move(lookup)),
        request_(std::move(request)),
        store_(std::move(store)) {}

  void Refuse(absl::Status status) override { lookup_->Refuse(std::move(status)); }
  // Uses the newest snapshot. An older one would still have rows that were deleted since.
  absl::Status Prepare() override {
    return lookup_->lookup_task().Select(request_, store_->snapshot());
  }
  const AttentionTask* task() const override { return nullptr; }
  const CancelToken& cancel() const override { return lookup_->cancel(); }
  void Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) override {
    lookup_->AddTimes(times);
    if (!answer.ok()) return lookup_->Refuse(answer.status());
    scheduler_.Submit(LookupJob::Queued(std::move(lookup_), store_->number()), admission_);
  }

 private:
  Scheduler& scheduler_;
  const Scheduler::Admission admission_;
  std::unique_ptr<LookupJob> lookup_;
  const LookupRequest request_;
  const std::shared_ptr<const Store> store_;
};

// Returns the error of a lookup whose wait for `min_revision` of `store` ended with the error
// `end`. If time ran out, it says which revision the store has.
absl::Status WaitError(const absl::Status& end, std::uint64_t min_revision, const Store& store) {
  const std::uint64_t revision = store.snapshot()->revision();
  if (!absl::IsDeadlineExceeded(end) || revision >= min_revision) return end;
  ErrorMetadata metadata = MetadataOf(end);
  metadata.emplace_back("field", "min_revision");
  return MakeError(reasons::kDeadlineExceeded,
                   absl::StrCat(end.message(), ": the store is at revision ", revision,
                                " and has not reached min_revision ", min_revision,
                                "; if that is a revision of another store that had the name, it "
                                "may never come"),
                   std::move(metadata));
}

}  // namespace

void Lookups::Start(LookupRequest request, std::shared_ptr<Store> store,
                    std::shared_ptr<CancelToken> cancel, Engine::LookupCallback callback) {
  std::shared_ptr<const Snapshot> snapshot = store->snapshot();
  if (snapshot->revision() < request.min_revision) {
    return StartAtRevision(std::move(request), std::move(store), std::move(cancel),
                           std::move(callback));
  }
  auto lookup = std::make_unique<LookupJob>(context_, counters_, std::move(cancel), request.report,
                                            std::move(callback));
  const double cost = LookupTask::SelectCost(request, *snapshot);
  if (cost > kInlineCostMax) {
    QueuedJob selection{.cost = cost, .answer_time_max = context_.limits.lookup_wait_max};
    selection.job =
        std::make_unique<SelectionJob>(scheduler_, Scheduler::Admission::kBounded,
                                       std::move(lookup), std::move(request), std::move(store));
    return scheduler_.Submit(std::move(selection), Scheduler::Admission::kBounded);
  }
  if (absl::Status status = lookup->lookup_task().Select(request, std::move(snapshot));
      !status.ok()) {
    return lookup->Refuse(std::move(status));
  }
  scheduler_.Submit(LookupJob::Queued(std::move(lookup), store->number()),
                    Scheduler::Admission::kBounded);
}

void Lookups::StartAtRevision(LookupRequest request, std::shared_ptr<Store> store,
                              std::shared_ptr<CancelToken> cancel,
                              Engine::LookupCallback callback) {
  // A request that no later revision can make valid is refused at once.
  const std::shared_ptr<const Snapshot> snapshot = store->snapshot();
  absl::Status status = CheckLookupExceptProjection(request, snapshot->config(), context_.limits);
  if (status.ok() && request.source == Source::kMemory) {
    status = FindMemory(snapshot->config(), request.memory).status();
  }
  if (!status.ok()) return callback(std::move(status));
  Store& waited_for = *store;
  const std::uint64_t revision = request.min_revision;
  const std::shared_ptr<CancelToken> wait_cancel = cancel;
  waited_for.WhenRevision(
      revision, wait_cancel,
      [this, begin = SteadyNow(), request = std::move(request), store = std::move(store),
       cancel = std::move(cancel),
       callback = std::move(callback)](const absl::Status& status) mutable {
        if (request.report != nullptr) request.report->revision_wait += SteadyNow() - begin;
        if (!status.ok()) return callback(WaitError(status, request.min_revision, *store));
        auto lookup = std::make_unique<LookupJob>(context_, counters_, std::move(cancel),
                                                  request.report, std::move(callback));
        const double cost = LookupTask::SelectCost(request, *store->snapshot());
        QueuedJob selection{.store = cost <= kInlineCostMax ? kNoStoreShort : kNoStore,
                            .cost = cost};
        // A lookup that has waited for a revision is not refused. The job does not run here,
        // because this can be the one thread that all waiting lookups share.
        selection.job =
            std::make_unique<SelectionJob>(scheduler_, Scheduler::Admission::kAdmitted,
                                           std::move(lookup), std::move(request), std::move(store));
        scheduler_.Submit(std::move(selection), Scheduler::Admission::kAdmitted);
      });
}

absl::Status Lookups::CheckRoom(const Store& store, std::int64_t query_count) const {
  const std::shared_ptr<const Snapshot> snapshot = store.snapshot();
  const StoreConfig& config = snapshot->config();
  const double cost = AttentionCost({.query_count = query_count,
                                     .num_heads = config.num_heads,
                                     .row_count = snapshot->live_row_count(),
                                     .dims = config.key_dim + config.value_dim});
  return scheduler_.CheckRoom({.store = store.number(),
                               .query_count = query_count,
                               .cost = cost,
                               .reading_cost = ReadingCost(cost, query_count),
                               .answer_time_max = context_.limits.lookup_wait_max});
}

}  // namespace softlookup
