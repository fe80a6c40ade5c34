#include "client/loadtest/load_result.h"

namespace softlookup::loadtest {

double LoadResult::offered_rate() const {
  if (measured_s <= 0) return 0;
  const Tally::OfMethod sum = tally.sum();
  return (sum.finished() + sum.overflow) / measured_s;
}

}  // namespace softlookup::loadtest
