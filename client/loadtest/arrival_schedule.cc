#include "client/loadtest/arrival_schedule.h"

#include <cmath>

namespace softlookup::loadtest {

ArrivalSchedule::ArrivalSchedule(const LoadOptions& options, int part)
    : rate_(options.rate.value()),
      ramp_s_(absl::ToDoubleSeconds(options.ramp)),
      poisson_(options.arrivals == Arrivals::kPoisson),
      part_count_(options.senders),
      random_(options.seed * 0x9e3779b1 + part),
      arrivals_(poisson_ ? 0 : part - part_count_) {}

std::chrono::nanoseconds ArrivalSchedule::Next() {
  arrivals_ += part_count_ * (poisson_ ? -std::log1p(-random_.Uniform()) : 1);
  return std::chrono::nanoseconds(std::llround(SecondsUntil(arrivals_) * 1e9));
}

double ArrivalSchedule::SecondsUntil(double arrivals) const {
  const double of_ramp = rate_ * ramp_s_ / 2;  // Calls in the ramp: the rate grows linearly.
  if (arrivals < of_ramp) return std::sqrt(2 * arrivals * ramp_s_ / rate_);
  return ramp_s_ + (arrivals - of_ramp) / rate_;
}

}  // namespace softlookup::loadtest
