#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_MEASURING_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_MEASURING_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace softlookup::testing {

// What flags allow: CLI11 prints these, where it would print the ends of a double.
inline constexpr std::int64_t kRowCountMax = 1'000'000'000;
inline constexpr double kSecondsMin = 0.01, kSecondsMax = 3600;

inline double Seconds(absl::FunctionRef<void()> work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <typename T>
T OrDie(absl::StatusOr<T> result) {
  if (!result.ok()) {
    std::cerr << result.status() << "\n";
    std::exit(1);
  }
  return *std::move(result);
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_MEASURING_H_
