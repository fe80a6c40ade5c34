#ifndef SOFTLOOKUP_CORE_MEMORY_COMPENSATED_SUM_H_
#define SOFTLOOKUP_CORE_MEMORY_COMPENSATED_SUM_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/memory/heap_bytes.h"

namespace softlookup {

// A sum of float32 vectors with about twice the precision of float64. So the difference of two long
// sums still has float64's precision. A component of the sum is high_[i] + low_[i]. Add() computes
// the exact rounding error of each addition to high_. It adds the error to low_ (Knuth, The Art of
// Computer Programming 2, 4.2.2, theorem B).
class CompensatedSum {
 public:
  explicit CompensatedSum(std::int64_t dim) : high_(dim, 0.0), low_(dim, 0.0) {}

  std::int64_t dim() const { return static_cast<std::int64_t>(high_.size()); }

  // Adds the vector whose component i is vector[i * stride].
  void Add(const float* vector, std::int64_t stride = 1);

  // Returns this sum minus `earlier`, which must be a former state of this sum.
  std::vector<double> Minus(const CompensatedSum& earlier) const;

  absl::Span<double> high() { return absl::MakeSpan(high_); }
  absl::Span<double> low() { return absl::MakeSpan(low_); }

  // Returns the bytes allocated besides the object itself.
  std::int64_t heap_bytes() const { return HeapBytes(high_) + HeapBytes(low_); }

 private:
  std::vector<double> high_;
  std::vector<double> low_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_MEMORY_COMPENSATED_SUM_H_
