#ifndef SOFTLOOKUP_SERVER_RPC_STORE_LIMITS_H_
#define SOFTLOOKUP_SERVER_RPC_STORE_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/security/authenticator.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// What an identity's limits say of the stores that its grants cover, whoever made them.
// Thread-safe.

// IDENTITY_LIMIT if the `manage` grants cover as many stores as the caller may have.
absl::Status CheckStoreCount(Engine& engine, const Caller& caller);

// IDENTITY_LIMIT if the stores that the `write` grants cover take so many bytes that they may not
// take `growth` more. What stores take is asked for once a second; the growth of between is added.
absl::Status CheckStoreGrowth(Engine& engine, const Caller& caller, std::int64_t growth);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_STORE_LIMITS_H_
