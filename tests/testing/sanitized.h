#ifndef SOFTLOOKUP_TESTS_TESTING_SANITIZED_H_
#define SOFTLOOKUP_TESTS_TESTING_SANITIZED_H_

namespace softlookup::testing {

// Whether a sanitizer slows this program down, so that bounds on time say nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_SANITIZED_H_
