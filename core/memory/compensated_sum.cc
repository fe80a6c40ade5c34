#include "core/memory/compensated_sum.h"

namespace softlookup {

void CompensatedSum::Add(const float* vector, std::int64_t stride) {
  const std::int64_t count = dim();
  double* high = high_.data();
  double* low = low_.data();
  for (std::int64_t i = 0; i < count; ++i) {
    const double addend = vector[i * stride];
    const double sum = high[i] + addend;
    const double added = sum - high[i];
    low[i] += (high[i] - (sum - added)) + (addend - added);
    high[i] = sum;
  }
}

std::vector<double> CompensatedSum::Minus(const CompensatedSum& earlier) const {
  std::vector<double> difference(high_.size());
  for (std::size_t i = 0; i < difference.size(); ++i) {
    // `high` is the rounded difference of the high parts. `lost` is the rounding error of `high`,
    // by the theorem that the class comment names.
    const double high = high_[i] - earlier.high_[i];
    const double subtracted = high_[i] - high;
    const double lost = (high_[i] - (high + subtracted)) + (subtracted - earlier.high_[i]);
    difference[i] = high + (lost + (low_[i] - earlier.low_[i]));
  }
  return difference;
}

}  // namespace softlookup
