#ifndef SOFTLOOKUP_TESTS_FAULTS_CYCLES_H_
#define SOFTLOOKUP_TESTS_FAULTS_CYCLES_H_

#include <algorithm>
#include <cstdlib>

#include "tests/testing/sanitized.h"

namespace softlookup::testing {

// How often a fault is tried: `count` times, or, with SOFTLOOKUP_LONG_TESTS in the environment,
// `long_count` times. Under a sanitizer, a third of it, but at least 8 times: the release build
// runs the rest.
inline int Cycles(int count, int long_count) {
  const int all = std::getenv("SOFTLOOKUP_LONG_TESTS") == nullptr ? count : long_count;
  return kSanitized ? std::max(all / 3, std::min(all, 8)) : all;
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_CYCLES_H_
