#ifndef SOFTLOOKUP_TESTS_TESTING_RANDOM_H_
#define SOFTLOOKUP_TESTS_TESTING_RANDOM_H_

#include <cstdint>
#include <random>
#include <vector>

namespace softlookup::testing {

// Normally distributed components, the same ones for the same seed.
inline std::vector<float> NormalFloats(std::int64_t count, std::uint64_t seed,
                                       double deviation = 1) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<float> floats(count);
  for (float& component : floats) component = static_cast<float>(normal(generator));
  return floats;
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_RANDOM_H_
