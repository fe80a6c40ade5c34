#ifndef SOFTLOOKUP_CORE_BATCH_BATCHER_H_
#define SOFTLOOKUP_CORE_BATCH_BATCHER_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "core/batch/batch_queue.h"

namespace softlookup {

// Runs the scans that wait for the same store together. Thread-safe.
class Batcher {
 public:
  // Runs a task on some thread, later.
  using Executor = std::function<void(absl::AnyInvocable<void()>)>;
  // Calls `answers` with how many scans it answers from then on, before it does. Returns what part
  // of the batch's cost was done: 1, unless some of it was given up.
  using Answers = absl::FunctionRef<void(std::int64_t scan_count)>;
  using RunBatch = std::function<double(Batch, Answers answers)>;
  enum class Admission { kBounded, kAlways };

  // At most `running_max` batches are run at a time, each by one call of `run` on `executor`.
  Batcher(const BatchOptions& options, int running_max, Executor executor, RunBatch run);
  // Ends what was posted first.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // When to come back, and `scan` is left as it is, if too much waits already.
  std::optional<absl::Duration> Post(WaitingScan& scan, Admission admission);
  // What Post would return.
  std::optional<absl::Duration> Refusal(const WaitingScan& scan) const;

  // Other work for the executor: when to come back if it would be answered later than `answer_max`,
  // and than it may compared with what it takes alone. Else it waits; then it begins, and ends.
  std::optional<absl::Duration> AddTask(double cost, absl::Duration answer_max);
  WorkRate::Piece BeginTask(double cost);
  void EndTask(const WorkRate::Piece& task, double cost, double done_part);

  // Of all that waits, in multiply-adds.
  double waiting_cost() const;

 private:
  // Runs the next batch, once there is one.
  void RunNext();
  // Waits for it unless another thread does. None if there is nothing to wait for here.
  std::optional<Batch> AwaitNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether another call of RunNext would have something to do.
  bool NeedsRunner() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int running_max_;
  const Executor executor_;
  const RunBatch run_;

  mutable absl::Mutex mutex_;
  BatchQueue queue_ ABSL_GUARDED_BY(mutex_);
  int runner_count_ ABSL_GUARDED_BY(mutex_) = 0;     // Calls of RunNext that are posted or run.
  bool has_waiter_ ABSL_GUARDED_BY(mutex_) = false;  // A thread sleeps in AwaitNext.
  std::uint64_t change_count_ ABSL_GUARDED_BY(mutex_) = 0;  // Of the queue.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BATCH_BATCHER_H_
