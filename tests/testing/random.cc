#include "tests/testing/random.h"

namespace softlookup::testing {

std::vector<float> NormalFloats(std::int64_t count, std::uint64_t seed, double deviation) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<float> floats(count);
  for (float& component : floats) component = static_cast<float>(normal(generator));
  return floats;
}

}  // namespace softlookup::testing
