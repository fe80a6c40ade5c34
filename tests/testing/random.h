#ifndef SOFTLOOKUP_TESTS_TESTING_RANDOM_H_
#define SOFTLOOKUP_TESTS_TESTING_RANDOM_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

namespace softlookup::testing {

// Normally distributed components, the same ones for the same seed.
std::vector<float> NormalFloats(std::int64_t count, std::uint64_t seed, double deviation = 1);

// Where random cases start: SOFTLOOKUP_TEST_SEED, which a failing case prints, or always the same.
inline std::uint64_t FirstSeed() {
  const char* seed = std::getenv("SOFTLOOKUP_TEST_SEED");
  return seed == nullptr ? 20'260'101 : std::strtoull(seed, nullptr, 10);
}

// Random numbers of one case.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : generator_(seed) {}

  std::int64_t Int(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(generator_);
  }
  double Real(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(generator_);
  }
  bool Chance(double probability) { return Real(0, 1) < probability; }
  bool Coin() { return Int(0, 1) == 1; }
  std::vector<float> Normal(std::int64_t count, double deviation = 1) {
    return NormalFloats(count, generator_(), deviation);
  }
  // The numbers below `count` in some order.
  std::vector<std::int64_t> Permutation(std::int64_t count) {
    std::vector<std::int64_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), generator_);
    return order;
  }

 private:
  std::mt19937_64 generator_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_RANDOM_H_
