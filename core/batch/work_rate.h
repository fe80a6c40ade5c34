#ifndef SOFTLOOKUP_CORE_BATCH_WORK_RATE_H_
#define SOFTLOOKUP_CORE_BATCH_WORK_RATE_H_

#include "absl/time/time.h"

namespace softlookup {

// How much work gets done in a second while there is any, by what was done lately. Knows no clock:
// times are told, and must not go back. Not thread-safe.
class WorkRate {
 public:
  // A piece of work under way.
  struct Piece {
    absl::Time begin;
    double share_before = 0;
  };

  // A piece of work begins. Several may be under way at a time.
  Piece Begin(absl::Time now);
  // It has ended, and was of `cost`, of which at least `done` was done: all, unless parts of it
  // were given up.
  void End(const Piece& piece, double cost, double done, absl::Time now);

  // What work of `cost` takes.
  absl::Duration TimeOf(double cost) const { return absl::Seconds(cost * seconds_ / cost_); }

 private:
  // Goes on to `now`, at the rate so far.
  void CountUntil(absl::Time now);
  int running_ = 0;
  absl::Time counted_until_ = absl::InfinitePast();
  double share_ = 0;  // Of one piece that had been under way always, if all get on equally.
  // Done within these seconds. A guess to begin with, which the first real work outweighs.
  double cost_ = 1e7;
  double seconds_ = 1e-3;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BATCH_WORK_RATE_H_
