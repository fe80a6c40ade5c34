#ifndef SOFTLOOKUP_TESTS_FUZZ_REFUSAL_H_
#define SOFTLOOKUP_TESTS_FUZZ_REFUSAL_H_

#include "absl/status/status.h"

namespace softlookup::fuzz {

// Aborts unless `status` blames the request, gives a reason and can be sent.
void CheckRefusal(const absl::Status& status);

}  // namespace softlookup::fuzz

#endif  // SOFTLOOKUP_TESTS_FUZZ_REFUSAL_H_
