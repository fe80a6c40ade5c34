#ifndef SOFTLOOKUP_TESTS_FAULTS_CYCLES_H_
#define SOFTLOOKUP_TESTS_FAULTS_CYCLES_H_

#include <cstdlib>

namespace softlookup::testing {

// How often a fault is tried: `count` times, or, with SOFTLOOKUP_LONG_TESTS in the environment,
// `long_count` times.
inline int Cycles(int count, int long_count) {
  return std::getenv("SOFTLOOKUP_LONG_TESTS") == nullptr ? count : long_count;
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_CYCLES_H_
