#ifndef SOFTLOOKUP_CLIENT_LOADTEST_RATE_SEARCH_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_RATE_SEARCH_H_

#include <optional>

namespace softlookup::loadtest {

// Searches for the highest rate that holds. The caller tries each rate and tells whether it held.
// Doubles the first rate until a rate fails, or halves it until a rate holds. Then bisects between
// the highest rate that held and the lowest that did not.
class RateSearch {
 public:
  // The search ends once rates have held and failed, and failed() is at most (1 + `precision`) *
  // held(). A `precision` of 0.05 is 5 %. It also ends after `steps_max` tries, or when the next
  // rate would be below 0.1 calls per second.
  RateSearch(double first_rate, double precision, int steps_max)
      : next_(first_rate), precision_(precision), steps_left_(steps_max) {}

  // Returns the rate to try, unset if the search has ended.
  std::optional<double> Next() const;

  // Must be called after each try. `held` is whether the rate that Next() returned held.
  void Tried(bool held);

  // The highest rate that held; 0 if none did.
  double held() const { return held_; }
  // The lowest rate that did not hold; 0 if every rate held.
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
