// Sums of long doubles that lose nothing to cancellation.
#ifndef SOFTLOOKUP_TESTS_EXACTNESS_LONG_SUM_H_
#define SOFTLOOKUP_TESTS_EXACTNESS_LONG_SUM_H_

namespace softlookup::exactness {

// The sum of many terms, kept as a pair of numbers: what is rounded off the first is in the second.
class LongSum {
 public:
  void Add(long double term) {
    const long double sum = high_ + term;
    const long double term_part = sum - high_;
    low_ += (high_ - (sum - term_part)) + (term - term_part);
    high_ = sum;
  }
  void Multiply(long double factor) {
    // The low part is tiny, so only the rounding of the high part's product matters.
    const long double product = high_ * factor;
    low_ *= factor;
    high_ = product;
  }
  long double value() const { return high_ + low_; }

 private:
  long double high_ = 0;
  long double low_ = 0;
};

}  // namespace softlookup::exactness

#endif  // SOFTLOOKUP_TESTS_EXACTNESS_LONG_SUM_H_
