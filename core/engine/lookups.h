#ifndef SOFTLOOKUP_CORE_ENGINE_LOOKUPS_H_
#define SOFTLOOKUP_CORE_ENGINE_LOOKUPS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/cancellation.h"
#include "core/engine/job_context.h"
#include "core/engine/kept_snapshots.h"
#include "core/engine/lookup_counters.h"
#include "core/engine/lookup_job.h"
#include "core/engine/row_sums_job.h"
#include "core/scheduler/scheduler.h"
#include "core/store/snapshot.h"
#include "core/store/store.h"
#include "softlookup/engine.h"
#include "softlookup/partial_lookup.h"

namespace softlookup {

// Makes a job of the scheduler from each lookup request, or part of one, once the store has the
// revision that the request asks for. Thread-safe.
class Lookups {
 public:
  // `context`, `kept_snapshots` and `scheduler` must outlive this object.
  Lookups(JobContext& context, KeptSnapshots& kept_snapshots, Scheduler& scheduler)
      : context_(context), kept_snapshots_(kept_snapshots), scheduler_(scheduler) {}

  const LookupCounters& counters() const { return counters_; }

  // These do the same as the Engine's functions, in a store that the caller has found:
  // Engine::Lookup,
  void Start(LookupRequest request, std::shared_ptr<Store> store,
             std::shared_ptr<CancelToken> cancel, Engine::LookupCallback callback);
  // Engine::AnswerPart,
  void StartPart(LookupRequest request, const LookupPart& part, std::shared_ptr<Store> store,
                 std::shared_ptr<CancelToken> cancel, Engine::PartCallback callback);
  // Engine::SumRowsOfPart,
  void SumRows(LookupRequest request, const LookupPart& part, RowSumsRequest rows,
               std::shared_ptr<Store> store, std::shared_ptr<CancelToken> cancel,
               Engine::RowSumsCallback callback);
  // and Engine::CheckRoom.
  absl::Status CheckRoom(const Store& store, std::int64_t query_count) const;

 private:
  // A lookup, or a part of one, whose rows are not selected yet.
  struct Call {
    LookupRequest request;
    std::optional<LookupPart> part;  // Empty: the whole lookup.
    std::shared_ptr<Store> store;
    std::shared_ptr<CancelToken> cancel;
    LookupJob::Callback callback;
  };

  // Submits the lookup, or refuses it.
  void StartCall(Call call);
  // Submits the lookup once the store has the request's min_revision. Does not block.
  void StartAtRevision(Call call);
  // Returns the snapshot to read. A whole lookup reads the newest.
  absl::StatusOr<std::shared_ptr<const Snapshot>> SnapshotOf(const Call& call) const;
  std::unique_ptr<LookupJob> JobOf(Call& call);
  // Ends a call that has no job yet.
  void Refuse(Call call, absl::Status status);
  // Submits a job that selects the rows of a lookup and then submits the lookup. `snapshot` is that
  // of SnapshotOf().
  void SubmitSelection(Call call, std::shared_ptr<const Snapshot> snapshot,
                       Scheduler::Admission admission);
  // Submits `job` once the store has the revision.
  void SubmitSums(const Store& store, std::uint64_t revision, std::unique_ptr<RowSumsJob> job,
                  Scheduler::Admission admission);

  JobContext& context_;
  KeptSnapshots& kept_snapshots_;
  LookupCounters counters_;
  Scheduler& scheduler_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_LOOKUPS_H_
