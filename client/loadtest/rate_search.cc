#include "client/loadtest/rate_search.h"

namespace softlookup::loadtest {

std::optional<double> RateSearch::Next() const {
  if (steps_left_ == 0 || next_ < kRateMin) return std::nullopt;
  if (held_ > 0 && failed_ > 0 && failed_ - held_ <= precision_ * held_) return std::nullopt;
  return next_;
}

void RateSearch::Tried(bool held) {
  --steps_left_;
  (held ? held_ : failed_) = next_;
  if (failed_ == 0) {
    next_ = 2 * held_;
  } else if (held_ == 0) {
    next_ = failed_ / 2;
  } else {
    next_ = (held_ + failed_) / 2;
  }
}

}  // namespace softlookup::loadtest
