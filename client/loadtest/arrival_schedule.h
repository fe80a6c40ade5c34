#ifndef SOFTLOOKUP_CLIENT_LOADTEST_ARRIVAL_SCHEDULE_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_ARRIVAL_SCHEDULE_H_

#include <chrono>

#include "client/loadtest/load_options.h"
#include "client/loadtest/random.h"

namespace softlookup::loadtest {

// When the calls of an open loop are due: a function of the options alone, never of the answers.
//
// Several senders share a schedule as its parts: of constant arrivals part i has every n-th, of
// Poisson arrivals each part is a Poisson process of an n-th of the rate. Together they are the
// whole.
class ArrivalSchedule {
 public:
  // `part` in [0, options.senders). Takes the rate, the arrivals, the ramp and the seed.
  ArrivalSchedule(const LoadOptions& options, int part);

  // Since the start, ascending.
  std::chrono::nanoseconds Next();

 private:
  // When `arrivals`, of all parts, are expected to have come. The inverse of the rate's integral.
  double SecondsUntil(double arrivals) const;

  const double rate_;
  const double ramp_s_;
  const bool poisson_;
  const int part_count_;
  Random random_;
  double arrivals_;  // Expected, of all parts, until the last one that came.
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_ARRIVAL_SCHEDULE_H_
