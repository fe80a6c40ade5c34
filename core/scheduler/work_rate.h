#ifndef SOFTLOOKUP_CORE_SCHEDULER_WORK_RATE_H_
#define SOFTLOOKUP_CORE_SCHEDULER_WORK_RATE_H_

#include "absl/time/time.h"

namespace softlookup {

// Estimates from recent work how much work the process completes per second of busy time. Time is
// busy while at least one run is in progress. The caller passes the current time, which must not go
// back. Not thread-safe.
class WorkRate {
 public:
  // The start of one run of work, which the caller passes to End().
  struct Run {
    absl::Time begin;
    double share_before = 0;  // share_ at `begin`.
  };

  // Notes that a run of work begins. Several runs may be in progress at the same time.
  Run Begin(absl::Time now);
  // Notes that `run` has ended. `cost` is the estimated cost of all its work. Work of at least
  // `done`, in [0, `cost`], was done. `done` is less than `cost` if parts of the run failed or were
  // cancelled.
  void End(const Run& run, double cost, double done, absl::Time now);

  // Returns the time that work of `cost` is expected to take.
  absl::Duration TimeOf(double cost) const { return absl::Seconds(cost * seconds_ / cost_); }

 private:
  // Adds the busy time since the last call to `seconds_`. Adds the work that the rate so far
  // predicts for this time to `cost_`, and the share of one run in this work to `share_`.
  void CountUntil(absl::Time now);

  int running_ = 0;  // Runs in progress.
  absl::Time counted_until_ = absl::InfinitePast();
  // Estimated work of a run that has been in progress since `running_` was last 0. The growth of
  // `share_` during a run estimates that run's work. Assumes that all runs progress at the same
  // rate.
  double share_ = 0;
  // The estimate: work of `cost_` was done in `seconds_` of busy time. The initial values are a
  // guess. It weighs as much as 1 ms of busy time, so real work soon outweighs it.
  double cost_ = 1e7;
  double seconds_ = 1e-3;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_WORK_RATE_H_
