#ifndef SOFTLOOKUP_SERVER_RPC_STORE_CODEC_H_
#define SOFTLOOKUP_SERVER_RPC_STORE_CODEC_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "softlookup/engine.h"
#include "softlookup/store_config.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::server {

// Converts between the wire's messages about stores and the core's structs. Decoding refuses only
// what the structs cannot express. The engine checks the rest.

absl::StatusOr<StoreConfig> DecodeStore(const v1::Store& store);
// Decodes the fields of request.store() that the mask names. INVALID_OPTION if it names no field,
// or one that cannot change.
absl::StatusOr<StoreUpdate> DecodeUpdate(const v1::UpdateStoreRequest& request);
// Leaves the fields unset that are not known of a damaged store.
v1::Store EncodeStore(const StoreInfo& info);
// Clears the elements of the store's matrices. Their shapes stay.
void LeaveNumbersOut(v1::Store& store);
// The next two functions leave out the elements of the store's matrices: a request of a few bytes
// must not have an answer of many megabytes.
void EncodeCompaction(const CompactionResult& compaction, v1::CompactStoreResponse& response);
// Sets `response.replaced` only if another store was replaced.
void EncodeStoreRenamed(const StoreRenamed& renamed, v1::RenameStoreResponse& response);

// Copies the matrices, since a store outlives the request. SHAPE_MISMATCH if they have different
// numbers of columns. `field` is the name of the projection in errors.
absl::StatusOr<std::shared_ptr<const Projection>> DecodeProjection(
    const std::string& field, const v1::Projection& projection);

// ANSWER_TOO_LARGE if a ListStoresResponse with only a store of this config could have more bytes
// than `bytes_max`, now or once the store has grown. ListStores could not list such a store with
// the elements of its matrices.
absl::Status CheckStoreBytes(const StoreConfig& config, std::int64_t bytes_max);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_STORE_CODEC_H_
