#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_FMA_PEAK_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_FMA_PEAK_H_

#include <cstdint>

namespace softlookup::testing {

// How fast this machine computes: what a scan on vectors cannot exceed. Counts float32
// multiply-adds of the widest vectors that the CPU has. They read no memory.
class FmaPeak {
 public:
  explicit FmaPeak(int thread_count);

  // Floating-point operations of a pass: two for each multiply-add of a lane.
  double flop() const { return flop_; }

  // Runs for some milliseconds on all threads. Returns the seconds from when all threads stand
  // ready until the last one is done.
  double Pass();

 private:
  const int thread_count_;
  const double flop_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_FMA_PEAK_H_
