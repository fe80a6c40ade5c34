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

// Between the wire's messages of stores and the core's structs. Decoding checks what the encoding
// itself can get wrong; the engine checks the rest.

absl::StatusOr<StoreConfig> DecodeStore(const v1::Store& store);
// The fields of request.store() that the mask names.
absl::StatusOr<StoreUpdate> DecodeUpdate(const v1::UpdateStoreRequest& request);
v1::Store EncodeStore(const StoreInfo& info);

// A copy of the matrices: a store outlives the request.
absl::StatusOr<std::shared_ptr<const Projection>> DecodeProjection(
    const std::string& field, const v1::Projection& projection);

// RESOURCE_EXHAUSTED if the message that describes a store of this config, alone in a list, would
// be larger than `bytes_max`, now or once the store has grown.
absl::Status CheckStoreBytes(const StoreConfig& config, std::int64_t bytes_max);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_STORE_CODEC_H_
