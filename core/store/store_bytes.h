#ifndef SOFTLOOKUP_CORE_STORE_STORE_BYTES_H_
#define SOFTLOOKUP_CORE_STORE_STORE_BYTES_H_

#include <cstdint>

#include "softlookup/store_config.h"

namespace softlookup {

// Bytes of the heap, as docs/decisions/0007-memory-is-counted-as-allocated.md counts them.

// What an empty store takes, without its configuration but with its entry in the engine's table.
std::int64_t FixedStoreBytes();

// What a configuration takes.
std::int64_t ConfigBytes(const StoreConfig& config);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_STORE_BYTES_H_
