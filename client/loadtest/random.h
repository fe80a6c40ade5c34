#ifndef SOFTLOOKUP_CLIENT_LOADTEST_RANDOM_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_RANDOM_H_

#include <cstdint>

namespace softlookup::loadtest {

// Returns a hash of `bits`, the same on every machine. This is the finalizer of SplitMix64.
inline std::uint64_t Mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

// SplitMix64, a random number generator. It is so small that each thread or each row can have its
// own. Not thread-safe.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(Mix(seed + kStep)) {}

  std::uint64_t operator()() { return Mix(state_ += kStep); }

  // Returns a number in [0, 1).
  double Uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

  // Returns a number in [0, count), where count > 0. The probability of each number is 1 / count,
  // with a relative error of at most count / 2^32.
  std::uint32_t Below(std::uint32_t count) {
    return static_cast<std::uint32_t>(((*this)() >> 32) * count >> 32);
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

  std::uint64_t state_;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_RANDOM_H_
