#ifndef SOFTLOOKUP_CORE_BATCH_WORK_RATE_H_
#define SOFTLOOKUP_CORE_BATCH_WORK_RATE_H_

#include "absl/time/time.h"

namespace softlookup {

// How much work gets done in a second while there is any, by what was done lately. Knows no clock:
// times are told, and must not go back. Not thread-safe.
class WorkRate {
 public:
  // A piece of work begins; one of `cost` has ended. Several may be under way at a time.
  void Begin(absl::Time now);
  void End(double cost, absl::Time now);

  // What work of `cost` takes.
  absl::Duration TimeOf(double cost) const { return absl::Seconds(cost * seconds_ / cost_); }

 private:
  // Counts the time since the last call if work was under way.
  void CountUntil(absl::Time now);

  int running_ = 0;
  absl::Time counted_until_ = absl::InfinitePast();
  // Done within these seconds. A guess to begin with, which the first real work outweighs.
  double cost_ = 1e7;
  double seconds_ = 1e-3;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BATCH_WORK_RATE_H_
