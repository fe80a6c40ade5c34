#ifndef SOFTLOOKUP_CORE_STORE_STORE_BYTES_H_
#define SOFTLOOKUP_CORE_STORE_STORE_BYTES_H_

#include <cstdint>

#include "softlookup/store_config.h"

namespace softlookup {

// The functions below return heap bytes, counted as in
// docs/decisions/0007-memory-is-counted-as-allocated.md.

// Returns the bytes of an empty store and its entry in the engine's table, without its
// configuration.
std::int64_t FixedStoreBytes();

// Returns the bytes of a store's configuration, and of the parts of it that the store copies.
std::int64_t ConfigBytes(const StoreConfig& config);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_STORE_BYTES_H_
