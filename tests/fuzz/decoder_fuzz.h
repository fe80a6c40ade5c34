#ifndef SOFTLOOKUP_TESTS_FUZZ_DECODER_FUZZ_H_
#define SOFTLOOKUP_TESTS_FUZZ_DECODER_FUZZ_H_

#include <cstddef>
#include <cstdint>

namespace softlookup::fuzz {

// How far the inputs got since the process started.
struct Reached {
  std::int64_t parsed = 0;    // Some request message has these bytes,
  std::int64_t decoded = 0;   // ... its decoder takes it,
  std::int64_t answered = 0;  // ... and so does the engine.
};
const Reached& ReachedSoFar();

}  // namespace softlookup::fuzz

// Decodes the bytes as every request message and gives what decodes to an engine. Aborts if an
// answer or a refusal is not what the contract allows. The name is libFuzzer's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

#endif  // SOFTLOOKUP_TESTS_FUZZ_DECODER_FUZZ_H_
