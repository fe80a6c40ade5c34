#ifndef SOFTLOOKUP_TESTS_FUZZ_REQUIRE_H_
#define SOFTLOOKUP_TESTS_FUZZ_REQUIRE_H_

#include <cstdio>
#include <cstdlib>

// Aborts, which a fuzzer reports with the input, unless the condition holds.
#define REQUIRE(condition)                                                         \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)

#endif  // SOFTLOOKUP_TESTS_FUZZ_REQUIRE_H_
