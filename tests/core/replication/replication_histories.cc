// Runs simulated histories of a group of replicas, each on another seed, until one breaks an
// invariant:
//
//     replication_histories FIRST_SEED [COUNT [THREADS]]
//
// COUNT and THREADS are 1 by default. Exit 1 after a violation, with the seed that replays it. A
// check that fails within the code under test aborts, with the seed likewise.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/core/replication/simulation.h"

namespace softlookup::testing {
namespace {

constexpr std::chrono::seconds kReportInterval{10};

thread_local std::uint64_t running_seed = 0;  // Of the history that this thread runs.

// abort() calls this on its own thread.
void PrintRunningSeed(int) {
  std::array<char, 32> text{"\nseed "};
  const auto [end, error] = std::to_chars(text.data() + 6, text.data() + 30, running_seed);
  *end = '\n';
  static_cast<void>(!write(STDERR_FILENO, text.data(), end + 1 - text.data()));
}

class Run {
 public:
  Run(std::uint64_t first, std::uint64_t count) : next_(first), end_(first + count) {}

  // Returns whether no history broke an invariant.
  bool On(int threads) {
    {
      std::vector<std::jthread> workers;
      for (int i = 0; i < threads; ++i) workers.emplace_back([this] { Work(); });
    }
    Print();
    return sum_.violations.empty();
  }

 private:
  void Work() {
    while (!is_broken_) {
      const std::uint64_t seed = next_++;
      if (seed >= end_) return;
      running_seed = seed;
      const HistoryReport report = RunHistory(seed);
      const std::lock_guard lock(mutex_);
      sum_.Add(report);
      ++count_;
      if (!report.violations.empty()) {
        is_broken_ = true;
        std::cout << "seed " << seed << " breaks an invariant: replication_histories " << seed
                  << std::endl;
      } else if (std::chrono::steady_clock::now() >= printed_ + kReportInterval) {
        Print();
      }
    }
  }

  void Print() {
    printed_ = std::chrono::steady_clock::now();
    const std::chrono::duration<double> time = printed_ - begin_;
    std::cout << count_ << " histories, " << count_ / time.count() << " a second, the next seed is "
              << std::min(next_.load(), end_) << ": " << sum_ << std::endl;
  }

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> next_;
  const std::uint64_t end_;
  std::atomic<bool> is_broken_ = false;
  std::mutex mutex_;  // Guards all that follow, and the output.
  HistoryReport sum_;
  std::uint64_t count_ = 0;
  std::chrono::steady_clock::time_point printed_ = begin_;
};

bool Parse(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

int Main(int argc, char** argv) {
  std::uint64_t numbers[] = {0, 1, 1};
  bool is_well_formed = argc >= 2 && argc <= 4;
  for (int i = 1; is_well_formed && i < argc; ++i) is_well_formed = Parse(argv[i], numbers[i - 1]);
  if (!is_well_formed) {
    std::cerr << "Usage: replication_histories FIRST_SEED [COUNT [THREADS]]\n";
    return 2;
  }
  signal(SIGABRT, PrintRunningSeed);
  return Run(numbers[0], numbers[1]).On(static_cast<int>(numbers[2])) ? 0 : 1;
}

}  // namespace
}  // namespace softlookup::testing

int main(int argc, char** argv) { return softlookup::testing::Main(argc, argv); }
