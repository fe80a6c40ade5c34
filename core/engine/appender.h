#ifndef SOFTLOOKUP_CORE_ENGINE_APPENDER_H_
#define SOFTLOOKUP_CORE_ENGINE_APPENDER_H_

#include <functional>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/limits.h"
#include "core/engine/committer.h"
#include "core/engine/counted_stores.h"
#include "core/engine/projection_budget.h"
#include "core/engine/writes.h"
#include "core/scheduler/scheduler.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// Returns the error QUEUE_FULL, with a retry delay, of a write that is refused because too many
// bytes of appends wait.
absl::Status WriteQueueFull();

// Turns append requests into writes of the committer: checks the rows, and projects inputs to keys
// and values. ProjectionBudget bounds the inputs that wait. Thread-safe.
class Appender {
 public:
  // All arguments must outlive the appender. The destructor waits for appends whose inputs wait to
  // be projected or are being projected.
  Appender(const Limits& limits, CountedStores& stores, Scheduler& scheduler, Committer& committer)
      : limits_(limits),
        stores_(stores),
        scheduler_(scheduler),
        committer_(committer),
        projections_(limits.waiting_append_bytes_max) {}

  // Does the same as Engine::Append. If `store` is an error, the append is refused with that error,
  // in its turn.
  void Append(const AppendRequest& request, absl::StatusOr<std::shared_ptr<Store>> store,
              Engine::AppendCallback callback, absl::AnyInvocable<void()> on_turn);

 private:
  class ProjectionJob;
  // Copyable, because the write gets one copy, and Post() calls another if the committer refuses
  // the write.
  using Answer = std::function<void(absl::StatusOr<AppendResult>)>;

  // Checks `request` and returns its rows. Keys and values are empty if they must be projected.
  absl::StatusOr<RowsToAppend> RowsOf(const AppendRequest& request,
                                      const StoreConfig& config) const;
  // Projects the inputs in a job of the scheduler, then posts the write. If the scheduler or
  // projections_ has no room, refuses the append with QUEUE_FULL before this returns.
  void ProjectLater(std::unique_ptr<ProjectionJob> job);
  // Posts the append to the committer. Appends have their turns in the order in which they are
  // posted. If `rows` is an error, the append is refused with that error, in its turn. If too many
  // bytes wait, the append is refused with QUEUE_FULL before this returns, and its chain ends.
  void Post(std::shared_ptr<Store> store, absl::StatusOr<RowsToAppend> rows,
            const std::shared_ptr<AppendChain>& chain, const Answer& answer,
            Committer::MayBlock may_block);

  const Limits& limits_;
  CountedStores& stores_;
  Scheduler& scheduler_;
  Committer& committer_;
  ProjectionBudget projections_;  // Appends whose inputs the scheduler is to project.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_APPENDER_H_
