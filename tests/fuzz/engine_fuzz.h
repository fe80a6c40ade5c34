#ifndef SOFTLOOKUP_TESTS_FUZZ_ENGINE_FUZZ_H_
#define SOFTLOOKUP_TESTS_FUZZ_ENGINE_FUZZ_H_

#include <cstdint>

namespace softlookup::fuzz {

// How far the inputs of FuzzEngine() got since the process started.
struct Reached {
  std::int64_t parsed = 0;    // Some request message has these bytes,
  std::int64_t decoded = 0;   // ... its decoder takes it,
  std::int64_t answered = 0;  // ... and so does the engine.
};
const Reached& ReachedSoFar();

}  // namespace softlookup::fuzz

#endif  // SOFTLOOKUP_TESTS_FUZZ_ENGINE_FUZZ_H_
