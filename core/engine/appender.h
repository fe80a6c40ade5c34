#ifndef SOFTLOOKUP_CORE_ENGINE_APPENDER_H_
#define SOFTLOOKUP_CORE_ENGINE_APPENDER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/limits.h"
#include "core/engine/committer.h"
#include "core/engine/store_table.h"
#include "core/engine/writes.h"
#include "core/scheduler/scheduler.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

absl::Status WriteQueueFull();

// Engine::Append, once the store is found: checks the rows, projects inputs to keys and values, and
// posts the write. Thread-safe.
class Appender {
 public:
  // All must outlive it.
  Appender(const Limits& limits, StoreTable& stores, Scheduler& scheduler, Committer& committer)
      : limits_(limits), stores_(stores), scheduler_(scheduler), committer_(committer) {}
  // Waits for appends whose inputs are being projected.
  ~Appender();

  // `store` is the error if there is none: the append then takes its turn, and is refused.
  void Append(const AppendRequest& request, absl::StatusOr<std::shared_ptr<Store>> store,
              Engine::AppendCallback callback, absl::AnyInvocable<void()> on_turn);

 private:
  class ProjectionJob;
  // Copyable, so that a callback that the committer did not take can still be called.
  using Answer = std::function<void(absl::StatusOr<AppendResult>)>;

  // The rows of `request`, checked. Keys and values that are to be projected are still missing.
  absl::StatusOr<RowsToAppend> RowsOf(const AppendRequest& request,
                                      const StoreConfig& config) const;
  // Projects inputs that take long on the scheduler, then posts the write.
  void ProjectLater(std::unique_ptr<ProjectionJob> job);
  // Counts inputs that wait or are projected. False if there is no room for them.
  bool Reserve(std::int64_t bytes);
  void Release(std::int64_t bytes);
  // Gives the append its turn. `rows` may be the error that refuses it.
  void Post(std::shared_ptr<Store> store, absl::StatusOr<RowsToAppend> rows,
            std::shared_ptr<AppendChain> chain, const Answer& answer,
            Committer::MayBlock may_block);

  const Limits& limits_;
  StoreTable& stores_;
  Scheduler& scheduler_;
  Committer& committer_;

  absl::Mutex mutex_;
  // Of appends whose inputs are being projected, or wait for that.
  std::int64_t projecting_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t projecting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_APPENDER_H_
