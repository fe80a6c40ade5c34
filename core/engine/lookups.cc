#include "core/engine/lookups.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/cost.h"
#include "core/base/error.h"
#include "core/base/steady_time.h"
#include "core/engine/lookup_part.h"
#include "core/engine/lookup_task.h"
#include "core/engine/memories.h"
#include "core/engine/validate.h"
#include "core/store/snapshot.h"

namespace softlookup {
namespace {

// Selects the rows of a lookup on a thread of the engine's pool, then submits the lookup.
class SelectionJob final : public Job {
 public:
  // The lookup is submitted with `admission`. `part` and `snapshot` are those of a part of a
  // lookup. A whole lookup has neither.
  SelectionJob(Scheduler& scheduler, Scheduler::Admission admission,
               std::unique_ptr<LookupJob> lookup, LookupRequest request,
               std::optional<PositionRange> part, std::shared_ptr<const Snapshot> snapshot,
               std::shared_ptr<const Store> store)
      : scheduler_(scheduler),
        admission_(admission),
        lookup_(std::move(lookup)),
        request_(std::move(request)),
        part_(part),
        snapshot_(std::move(snapshot)),
        store_(std::move(store)) {}

  void Refuse(absl::Status status) override { lookup_->Refuse(std::move(status)); }
  // A whole lookup uses the newest snapshot. An older one would still have rows that were deleted
  // since.
  absl::Status Prepare() override {
    return lookup_->lookup_task().Select(
        request_, snapshot_ == nullptr ? store_->snapshot() : snapshot_, part_);
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
  const std::optional<PositionRange> part_;
  const std::shared_ptr<const Snapshot> snapshot_;
  const std::shared_ptr<const Store> store_;
};

// Returns the result of a whole lookup.
LookupResult ResultOf(const LookupTask& lookup, AttentionAnswer answer) {
  const AttentionTask& task = lookup.attention();
  const Snapshot& snapshot = *lookup.snapshot();
  SOFTLOOKUP_CHECK(static_cast<std::int64_t>(answer.values.size()) ==
                   task.query_count() * task.value_dim)
      << answer.values.size() << " components for " << task.query_count() << " queries of "
      << task.value_dim;
  LookupResult result{.values = std::move(answer.values),
                      .query_count = task.query_count(),
                      .value_dim = task.value_dim,
                      .stats = std::move(answer.stats),
                      .weights = std::move(answer.weights),
                      .revision = snapshot.revision(),
                      .row_count = snapshot.row_count()};
  // A running memory is listed like a row, but has no id. Its position is outside of the rows that
  // were scanned.
  for (QueryWeights& weights : result.weights) {
    for (WeightedRow& row : weights.rows) {
      if (row.position >= task.begin && row.position < task.end) {
        row.id = snapshot.IdAt(row.position);
      }
    }
  }
  return result;
}

std::optional<PositionRange> RangeOf(const std::optional<LookupPart>& part) {
  return part ? std::optional<PositionRange>(part->range) : std::nullopt;
}

absl::Status CheckPart(const LookupPart& part, const Store& store) {
  if (part.range.begin > part.range.end) {
    return InvalidOption(
        "range", absl::StrCat("it ends at ", part.range.end, ", before ", part.range.begin));
  }
  if (part.incarnation == 0 || part.incarnation == store.number()) return absl::OkStatus();
  return SnapshotGone(store, "The part is one of another store that has, or had, the name");
}

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
  StartCall(
      {.request = std::move(request),
       .store = std::move(store),
       .cancel = std::move(cancel),
       .callback = [callback = std::move(callback)](
                       const LookupTask& task, absl::StatusOr<AttentionAnswer> answer) mutable {
         if (!answer.ok()) return callback(answer.status());
         callback(ResultOf(task, *std::move(answer)));
       }});
}

void Lookups::StartPart(LookupRequest request, const LookupPart& part, std::shared_ptr<Store> store,
                        std::shared_ptr<CancelToken> cancel, Engine::PartCallback callback) {
  if (absl::Status status = CheckPart(part, *store); !status.ok()) {
    return callback(std::move(status));
  }
  kept_snapshots_.OnAsked(*store);
  if (part.revision > 0) request.min_revision = part.revision;
  const std::uint64_t number = store->number();
  StartCall(
      {.request = std::move(request),
       .part = part,
       .store = std::move(store),
       .cancel = std::move(cancel),
       .callback = [range = part.range, number, callback = std::move(callback)](
                       const LookupTask& task, absl::StatusOr<AttentionAnswer> answer) mutable {
         if (!answer.ok()) return callback(answer.status());
         PartialLookup partial = PartialLookupOf(task, range, *std::move(answer));
         partial.incarnation = number;
         callback(std::move(partial));
       }});
}

void Lookups::StartCall(Call call) {
  if (call.store->snapshot()->revision() < call.request.min_revision) {
    return StartAtRevision(std::move(call));
  }
  absl::StatusOr<std::shared_ptr<const Snapshot>> snapshot = SnapshotOf(call);
  if (!snapshot.ok()) return Refuse(std::move(call), snapshot.status());
  const Scheduler::Admission admission = call.part && call.part->is_further
                                             ? Scheduler::Admission::kAdmitted
                                             : Scheduler::Admission::kBounded;
  if (LookupTask::SelectCost(call.request, **snapshot, RangeOf(call.part)) > kInlineCostMax) {
    return SubmitSelection(std::move(call), *std::move(snapshot), admission);
  }
  std::unique_ptr<LookupJob> lookup = JobOf(call);
  if (absl::Status status =
          lookup->lookup_task().Select(call.request, *std::move(snapshot), RangeOf(call.part));
      !status.ok()) {
    return lookup->Refuse(std::move(status));
  }
  QueuedJob queued = LookupJob::Queued(std::move(lookup), call.store->number());
  // What takes hardly any time runs here, as kBounded lets it.
  const bool is_short = queued.cost <= kInlineCostMax;
  scheduler_.Submit(std::move(queued), is_short ? Scheduler::Admission::kBounded : admission);
}

void Lookups::StartAtRevision(Call call) {
  // A request that no later revision can make valid is refused at once.
  const LookupRequest& request = call.request;
  const std::shared_ptr<const Snapshot> snapshot = call.store->snapshot();
  absl::Status status = CheckLookupExceptProjection(request, snapshot->config(), context_.limits);
  if (status.ok() && request.source == Source::kMemory) {
    status = FindMemory(snapshot->config(), request.memory).status();
  }
  if (!status.ok()) return Refuse(std::move(call), std::move(status));
  Store& waited_for = *call.store;
  const std::uint64_t revision = request.min_revision;
  const std::shared_ptr<CancelToken> wait_cancel = call.cancel;
  waited_for.WhenRevision(
      revision, wait_cancel,
      [this, begin = SteadyNow(), call = std::move(call)](const absl::Status& status) mutable {
        const LookupRequest& request = call.request;
        if (request.report != nullptr) request.report->revision_wait += SteadyNow() - begin;
        if (!status.ok()) {
          absl::Status error = WaitError(status, request.min_revision, *call.store);
          return Refuse(std::move(call), std::move(error));
        }
        absl::StatusOr<std::shared_ptr<const Snapshot>> snapshot = SnapshotOf(call);
        if (!snapshot.ok()) return Refuse(std::move(call), snapshot.status());
        // A lookup that has waited for a revision is not refused. The job does not run here,
        // because this can be the one thread that all waiting lookups share.
        SubmitSelection(std::move(call), *std::move(snapshot), Scheduler::Admission::kAdmitted);
      });
}

absl::StatusOr<std::shared_ptr<const Snapshot>> Lookups::SnapshotOf(const Call& call) const {
  if (!call.part || call.part->revision == 0) return call.store->snapshot();
  if (call.part->must_be_newest) {
    std::shared_ptr<const Snapshot> newest = call.store->snapshot();
    if (newest->revision() == call.part->revision) return newest;
    return SnapshotGone(*call.store, absl::StrCat("The store is at revision ", newest->revision(),
                                                  ", and not at ", call.part->revision));
  }
  return kept_snapshots_.Find(*call.store, call.part->revision);
}

std::unique_ptr<LookupJob> Lookups::JobOf(Call& call) {
  return std::make_unique<LookupJob>(context_, counters_, std::move(call.cancel),
                                     call.request.report, std::move(call.callback));
}

void Lookups::Refuse(Call call, absl::Status status) {
  call.request.report = nullptr;
  JobOf(call)->Refuse(std::move(status));
}

void Lookups::SubmitSelection(Call call, std::shared_ptr<const Snapshot> snapshot,
                              Scheduler::Admission admission) {
  const double cost = LookupTask::SelectCost(call.request, *snapshot, RangeOf(call.part));
  QueuedJob selection{.store = cost <= kInlineCostMax ? kNoStoreShort : kNoStore, .cost = cost};
  if (admission == Scheduler::Admission::kBounded) {
    selection.answer_time_max = context_.limits.lookup_wait_max;
  }
  if (!call.part) snapshot = nullptr;
  std::unique_ptr<LookupJob> lookup = JobOf(call);
  selection.job = std::make_unique<SelectionJob>(scheduler_, admission, std::move(lookup),
                                                 std::move(call.request), RangeOf(call.part),
                                                 std::move(snapshot), std::move(call.store));
  scheduler_.Submit(std::move(selection), admission);
}

void Lookups::SumRows(LookupRequest request, const LookupPart& part, RowSumsRequest rows,
                      std::shared_ptr<Store> store, std::shared_ptr<CancelToken> cancel,
                      Engine::RowSumsCallback callback) {
  absl::Status status = CheckPart(part, *store);
  if (status.ok() && part.revision == 0) status = InvalidOption("revision", "must be set");
  if (!status.ok()) return callback(std::move(status));
  kept_snapshots_.OnAsked(*store);
  auto job = std::make_unique<RowSumsJob>(context_, counters_, std::move(request), part.range,
                                          std::move(rows), cancel, std::move(callback));
  if (store->snapshot()->revision() >= part.revision) {
    return SubmitSums(*store, part.revision, std::move(job), Scheduler::Admission::kBounded);
  }
  Store& waited_for = *store;
  waited_for.WhenRevision(part.revision, cancel,
                          [this, revision = part.revision, store = std::move(store),
                           job = std::move(job)](const absl::Status& status) mutable {
                            if (!status.ok())
                              return job->Refuse(WaitError(status, revision, *store));
                            SubmitSums(*store, revision, std::move(job),
                                       Scheduler::Admission::kAdmitted);
                          });
}

void Lookups::SubmitSums(const Store& store, std::uint64_t revision,
                         std::unique_ptr<RowSumsJob> job, Scheduler::Admission admission) {
  absl::StatusOr<std::shared_ptr<const Snapshot>> snapshot = kept_snapshots_.Find(store, revision);
  if (!snapshot.ok()) return job->Refuse(snapshot.status());
  QueuedJob queued = RowSumsJob::Queued(std::move(job), *std::move(snapshot));
  // The first phase was admitted, and most of the work is done.
  if (queued.cost > kInlineCostMax) admission = Scheduler::Admission::kAdmitted;
  scheduler_.Submit(std::move(queued), admission);
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
