#ifndef SOFTLOOKUP_SERVER_RPC_RANGES_CODEC_H_
#define SOFTLOOKUP_SERVER_RPC_RANGES_CODEC_H_

#include "absl/status/statusor.h"
#include "server/rpc/ranges/ranges.pb.h"
#include "softlookup/engine.h"
#include "softlookup/partial_lookup.h"

namespace softlookup::server {

// Convert between the messages of server/rpc/ranges/ranges.proto and the core's structs.
//
// Decoding refuses what a message does not promise of its own fields, with INVALID_ARGUMENT:
// numbers that are not finite, lists of different lengths, values out of their ranges. What is
// decoded takes a small multiple of the message's bytes, and some 300 bytes for each answer. An
// answer can take 2 bytes on the wire, so whoever receives a message bounds the number of answers
// before it is parsed.
// MergedLookup::Merge() and SumRows() check the rest: what fits the other partial answers, and what
// fits the store.
cluster::v1::LookupPart EncodeLookupPart(const LookupPart& part);
LookupPart DecodeLookupPart(const cluster::v1::LookupPart& message);

cluster::v1::PartialLookup EncodePartialLookup(const PartialLookup& lookup);
absl::StatusOr<PartialLookup> DecodePartialLookup(const cluster::v1::PartialLookup& message);

cluster::v1::RowSumsRequest EncodeRowSumsRequest(const RowSumsRequest& request);
absl::StatusOr<RowSumsRequest> DecodeRowSumsRequest(const cluster::v1::RowSumsRequest& message);

cluster::v1::RowSums EncodeRowSums(const RowSums& sums);
absl::StatusOr<RowSums> DecodeRowSums(const cluster::v1::RowSums& message);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_RANGES_CODEC_H_
