#ifndef SOFTLOOKUP_CLIENT_LOADTEST_ARRIVAL_SCHEDULE_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_ARRIVAL_SCHEDULE_H_

#include <chrono>

#include "client/loadtest/load_options.h"
#include "client/loadtest/random.h"

namespace softlookup::loadtest {

// Computes when the calls of an open loop are due. The times depend on the options alone, never on
// the answers.
//
// There are n senders. Each has one part of the calls, and a schedule of its own. With constant
// arrivals, a part is every n-th call. With Poisson arrivals, a part is a Poisson process of 1 / n
// of the rate. Together, the parts have the whole rate.
class ArrivalSchedule {
 public:
  // `options.rate` must be set, and `part` must be in [0, options.senders). Uses only the members
  // rate, arrivals, senders, ramp and seed.
  ArrivalSchedule(const LoadOptions& options, int part);

  // Returns when the next call of the part is due, as time since the start of the run. The times
  // ascend.
  std::chrono::nanoseconds Next();

 private:
  // Returns the time, in seconds since the start, by which `arrivals` calls of all parts together
  // are expected. This is the inverse of the rate's integral over time.
  double SecondsUntil(double arrivals) const;

  const double rate_;
  const double ramp_s_;
  const bool poisson_;
  const int part_count_;
  Random random_;
  double arrivals_;  // Expected calls of all parts up to the time that Next() last returned.
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_ARRIVAL_SCHEDULE_H_
