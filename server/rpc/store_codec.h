#ifndef SOFTLOOKUP_SERVER_RPC_STORE_CODEC_H_
#define SOFTLOOKUP_SERVER_RPC_STORE_CODEC_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "softlookup/store_config.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::server {

// Converts between the wire's messages about stores and the core's structs. Decoding refuses only
// what the structs cannot express. The engine checks the rest.

absl::StatusOr<StoreConfig> DecodeStore(const v1::Store& store);
// Decodes the fields of request.store() that the mask names.
absl::StatusOr<StoreUpdate> DecodeUpdate(const v1::UpdateStoreRequest& request);
// Leaves the fields unset that are not known of a damaged store.
v1::Store EncodeStore(const StoreInfo& info);
// Sets all fields of `response`.
void EncodeStoreRenamed(const StoreRenamed& renamed, v1::RenameStoreResponse& response);

// Copies the matrices, since a store outlives the request.
absl::StatusOr<std::shared_ptr<const Projection>> DecodeProjection(
    const std::string& field, const v1::Projection& projection);

// RESOURCE_EXHAUSTED if a ListStoresResponse with only a store of this config could have more bytes
// than `bytes_max`, now or once the store has grown. ListStores could not list such a store.
absl::Status CheckStoreBytes(const StoreConfig& config, std::int64_t bytes_max);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_STORE_CODEC_H_
