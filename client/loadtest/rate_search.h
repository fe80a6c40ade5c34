#ifndef SOFTLOOKUP_CLIENT_LOADTEST_RATE_SEARCH_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_RATE_SEARCH_H_

#include <optional>

namespace softlookup::loadtest {

// Looks for the highest rate that holds: doubles while it does, halves until it does, then bisects.
class RateSearch {
 public:
  // Ends when it knows the rate to `precision` of itself (0.05: 5 %), or after `steps_max` tries.
  RateSearch(double first_rate, double precision, int steps_max)
      : next_(first_rate), precision_(precision), steps_left_(steps_max) {}

  // The rate to try, unset when the search has ended.
  std::optional<double> Next() const;

  // Whether the rate that Next() named held.
  void Tried(bool held);

  // The highest rate that held; 0 if none did.
  double held() const { return held_; }
  // The lowest rate above it that did not hold; 0 if none was tried.
  double failed() const { return failed_; }

 private:
  static constexpr double kRateMin = 0.1;

  double next_;
  double held_ = 0;
  double failed_ = 0;
  const double precision_;
  int steps_left_;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_RATE_SEARCH_H_
