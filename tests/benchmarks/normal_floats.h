#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_NORMAL_FLOATS_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_NORMAL_FLOATS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "core/parallel/fork_join_pool.h"

namespace softlookup::testing {

// `count` normally distributed numbers, made on all threads: a pair is a function of the seed and
// of its index alone, so they are the same on any number of threads.
inline std::vector<float> NormalFloats(std::int64_t count, std::uint64_t seed, ForkJoinPool& pool) {
  constexpr std::int64_t kPairsPerTask = 1 << 14;
  // splitmix64 (Steele, Lea, Flood 2014).
  const auto mix = [](std::uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  };
  const std::uint64_t start = mix(seed);
  const std::int64_t pair_count = (count + 1) / 2;
  std::vector<float> floats(static_cast<std::size_t>(2 * pair_count));
  pool.ForkJoin((pair_count + kPairsPerTask - 1) / kPairsPerTask, [&](std::int64_t task) {
    const std::int64_t end = std::min((task + 1) * kPairsPerTask, pair_count);
    for (std::int64_t pair = task * kPairsPerTask; pair < end; ++pair) {
      const std::uint64_t bits =
          mix(start + (static_cast<std::uint64_t>(pair) + 1) * 0x9e3779b97f4a7c15);
      // Box and Muller (1958). The first is never 0.
      const float radius_uniform = (static_cast<float>(bits >> 32) + 1) * 0x1p-32f;
      const float angle_uniform = static_cast<float>(bits & 0xffffffff) * 0x1p-32f;
      const float radius = std::sqrt(-2 * std::log(radius_uniform));
      const float angle = 2 * std::numbers::pi_v<float> * angle_uniform;
      floats[2 * pair] = radius * std::cos(angle);
      floats[2 * pair + 1] = radius * std::sin(angle);
    }
  });
  floats.resize(static_cast<std::size_t>(count));
  return floats;
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_NORMAL_FLOATS_H_
