#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_READ_LIMIT_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_READ_LIMIT_H_

#include <cstdint>

namespace softlookup::testing {

// How fast this machine reads: what a scan of as many bytes cannot go below.
class ReadLimit {
 public:
  // Maps `bytes`, rounded up to whole pages, large ones where the kernel has them, and writes them.
  ReadLimit(std::int64_t bytes, int thread_count);
  ~ReadLimit();
  ReadLimit(const ReadLimit&) = delete;
  ReadLimit& operator=(const ReadLimit&) = delete;

  std::int64_t bytes() const { return bytes_; }

  // Reads every byte once, on all threads. Returns the seconds from when all threads stand ready
  // until the last one is done: starting them is not part of it.
  double Pass();

 private:
  const std::int64_t bytes_;
  const int thread_count_;
  void* memory_ = nullptr;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_READ_LIMIT_H_
