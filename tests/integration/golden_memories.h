#ifndef SOFTLOOKUP_TESTS_INTEGRATION_GOLDEN_MEMORIES_H_
#define SOFTLOOKUP_TESTS_INTEGRATION_GOLDEN_MEMORIES_H_

#include <string>

#include "softlookup/v1/soft_lookup.pb.h"
#include "tests/testing/golden.h"

namespace softlookup::testing {

// Returns a store whose memory "m" is that of the case.
v1::Store StoreOf(const GoldenMemory& golden, const std::string& name);

// Expects what the case says of its memory: the sums within 1e-12, and which rows they cover.
void ExpectMemory(const v1::Memory& memory, const GoldenMemory& golden);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_INTEGRATION_GOLDEN_MEMORIES_H_
