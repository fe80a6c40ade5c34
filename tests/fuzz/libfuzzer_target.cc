// One target as a libFuzzer binary. SOFTLOOKUP_FUZZ_TARGET is its function.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  softlookup::fuzz::SOFTLOOKUP_FUZZ_TARGET(bytes, size);
  return 0;
}
