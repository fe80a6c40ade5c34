// Makes random lookups.
#ifndef SOFTLOOKUP_TESTS_EXACTNESS_LOOKUP_MAKER_H_
#define SOFTLOOKUP_TESTS_EXACTNESS_LOOKUP_MAKER_H_

#include <vector>

#include "softlookup/v1/soft_lookup.pb.h"
#include "tests/exactness/kept_store.h"
#include "tests/exactness/store_maker.h"

namespace softlookup::exactness {

// A lookup of up to 20 queries, or of some hundred of few rows, in the store's newest snapshot.
v1::LookupRequest MakeLookup(StoreMaker& maker, const KeptStore& store);

}  // namespace softlookup::exactness

#endif  // SOFTLOOKUP_TESTS_EXACTNESS_LOOKUP_MAKER_H_
