#ifndef SOFTLOOKUP_TESTS_TESTING_SANITIZED_H_
#define SOFTLOOKUP_TESTS_TESTING_SANITIZED_H_

#include <cstdint>

#include "absl/base/config.h"

namespace softlookup::testing {

// Whether a sanitizer slows this program down. Bounds on time then say nothing, and tests that draw
// random cases draw fewer: the release build runs them all.
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Returns how many random cases of a test to draw: `all`, or a third of them under a sanitizer.
constexpr std::uint64_t RandomCases(std::uint64_t all) { return kSanitized ? (all + 2) / 3 : all; }

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_SANITIZED_H_
