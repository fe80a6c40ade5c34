#include "core/batch/batcher.h"

#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "core/base/steady_time.h"

namespace softlookup {

Batcher::Batcher(const BatchOptions& options, int running_max, Executor executor, RunBatch run)
    : running_max_(running_max),
      executor_(std::move(executor)),
      run_(std::move(run)),
      queue_(options) {}

Batcher::~Batcher() {
  // What waits has a runner that comes to it.
  const auto none_runs = [this]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return runner_count_ == 0; };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&none_runs));
}

std::optional<absl::Duration> Batcher::Post(WaitingScan& scan, Admission admission) {
  {
    absl::MutexLock lock(&mutex_);
    const auto refusal = queue_.Add(scan, SteadyNow(), admission == Admission::kAlways);
    if (refusal) return refusal;
    ++change_count_;
    if (!NeedsRunner()) return std::nullopt;
    ++runner_count_;
  }
  executor_([this] { RunNext(); });
  return std::nullopt;
}

std::optional<absl::Duration> Batcher::Refusal(const WaitingScan& scan) const {
  absl::MutexLock lock(&mutex_);
  return queue_.Refusal(scan);
}

std::optional<absl::Duration> Batcher::AddTask(double cost, absl::Duration answer_max) {
  absl::MutexLock lock(&mutex_);
  return queue_.AddTask(cost, answer_max);
}

WorkRate::Piece Batcher::BeginTask(double cost) {
  absl::MutexLock lock(&mutex_);
  return queue_.BeginTask(cost, SteadyNow());
}

void Batcher::EndTask(const WorkRate::Piece& task, double cost, double done_part) {
  absl::MutexLock lock(&mutex_);
  queue_.EndTask(task, cost, SteadyNow(), done_part);
}

double Batcher::waiting_cost() const {
  absl::MutexLock lock(&mutex_);
  return queue_.waiting_cost();
}

bool Batcher::NeedsRunner() const {
  // Who runs a store's batch comes back to it.
  const absl::Time next = queue_.NextTime();
  if (next == absl::InfiniteFuture() || runner_count_ == running_max_) return false;
  return !has_waiter_ || next <= SteadyNow();
}

void Batcher::RunNext() {
  std::optional<Batch> batch;
  bool needs_other = false;
  {
    absl::MutexLock lock(&mutex_);
    batch = AwaitNext();
    if (!batch) {
      --runner_count_;
      return;
    }
    needs_other = NeedsRunner();
    if (needs_other) ++runner_count_;
  }
  if (needs_other) executor_([this] { RunNext(); });
  const std::uint64_t store = batch->store;
  const double done_part = run_(*std::move(batch), [&](std::int64_t scan_count) {
    absl::MutexLock lock(&mutex_);
    queue_.Answers(store, scan_count, SteadyNow());
  });
  {
    absl::MutexLock lock(&mutex_);
    queue_.Done(store, SteadyNow(), done_part);
    ++change_count_;
    if (queue_.NextTime() == absl::InfiniteFuture()) {
      --runner_count_;
      return;
    }
  }
  // Behind the executor's other tasks.
  executor_([this] { RunNext(); });
}

std::optional<Batch> Batcher::AwaitNext() {
  for (;;) {
    const absl::Time now = SteadyNow();
    std::optional<Batch> batch = queue_.Take(now);
    const absl::Time next = queue_.NextTime();
    if (batch || next == absl::InfiniteFuture() || has_waiter_) return batch;
    const auto has_changed = [this, seen = change_count_]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return change_count_ != seen;
    };
    has_waiter_ = true;
    mutex_.AwaitWithTimeout(absl::Condition(&has_changed), next - now);
    has_waiter_ = false;
  }
}

}  // namespace softlookup
