#ifndef SOFTLOOKUP_SERVER_RPC_STORE_LIMITS_H_
#define SOFTLOOKUP_SERVER_RPC_STORE_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/security/authenticator.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// Check an identity's limits on the stores that its grants cover, no matter who made the stores.
// Thread-safe.

// IDENTITY_LIMIT if the caller's grants of at least `manage` already cover as many stores as it may
// have.
absl::Status CheckStoreCount(Engine& engine, const Caller& caller);

// IDENTITY_LIMIT if `growth` more bytes would exceed the caller's limit on the bytes of all stores
// that its grants of at least `write` cover. Reads the stores' sizes at most about once per second,
// and adds the growth of the calls in between.
absl::Status CheckStoreGrowth(Engine& engine, const Caller& caller, std::int64_t growth);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_STORE_LIMITS_H_
