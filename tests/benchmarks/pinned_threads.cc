#include "tests/benchmarks/pinned_threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace softlookup::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Keeps the calling thread on the `index`-th of the CPUs that it may use, counted round.
void PinToCpu(int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  int skip = index % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || skip-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    sched_setaffinity(0, sizeof(own), &own);
    return;
  }
}

}  // namespace

double SecondsOnPinnedThreads(int thread_count, absl::FunctionRef<void(int)> work) {
  std::atomic<int> missing{thread_count};
  std::vector<Clock::time_point> begins(static_cast<std::size_t>(thread_count));
  std::vector<Clock::time_point> ends(begins.size());
  const auto run = [&](int self) {
    // Left to itself, the kernel may have new threads share a core for longer than the work takes.
    PinToCpu(self);
    for (--missing; missing > 0;) std::this_thread::yield();
    begins[self] = Clock::now();
    work(self);
    ends[self] = Clock::now();
  };
  std::vector<std::thread> threads;
  threads.reserve(begins.size());
  for (int t = 0; t < thread_count; ++t) threads.emplace_back(run, t);
  for (std::thread& thread : threads) thread.join();
  return std::chrono::duration<double>(*std::max_element(ends.begin(), ends.end()) -
                                       *std::min_element(begins.begin(), begins.end()))
      .count();
}

}  // namespace softlookup::testing
