#ifndef SOFTLOOKUP_SERVER_RPC_CODEC_H_
#define SOFTLOOKUP_SERVER_RPC_CODEC_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/rpc/matrix_codec.h"
#include "softlookup/engine.h"
#include "softlookup/v1/attention.pb.h"
#include "softlookup/v1/lookup.pb.h"
#include "softlookup/v1/memory.pb.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::server {

// Converts between the wire's messages about rows, lookups and memories and the core's structs.
// Decoding refuses only what the structs cannot hold:
// - malformed matrices, and float64 elements beyond float32's range,
// - projections whose matrices have different numbers of columns,
// - unknown enum values, and read masks that name an unknown field,
// - fields that exclude each other.
// The engine checks the rest.

// The `store` argument of the functions below for a request outside of a stream: such a request
// must name its store itself.
inline const std::string kNoStoreOfStream;

struct DecodedAppend {
  DecodedMatrix keys;
  DecodedMatrix values;
  DecodedMatrix inputs;
  std::vector<std::vector<std::string>> row_labels;
  // Its views point to the arguments of DecodeAppend() and to the members above.
  AppendRequest request;
};
// `store` is used if `request` names no store. The views in `decoded` are valid while `request`,
// `store` and `decoded` live.
absl::Status DecodeAppend(const v1::AppendRequest& request, const std::string& store,
                          DecodedAppend& decoded);
// `sequence` is that of the request that `result` answers.
void EncodeAppend(std::uint64_t sequence, const AppendResult& result, v1::AppendResponse& response);

struct DecodedLookup {
  DecodedMatrix queries;
  DecodedMatrix inputs;
  LookupRequest request;  // Its views point to the message or to the members above.
};
// Like DecodeAppend(), but `decoded` has its own copy of the store's name, so `store` need not live
// on.
absl::Status DecodeLookup(const v1::LookupRequest& request, const std::string& store,
                          DecodedLookup& decoded);
// ANSWER_TOO_LARGE if `response` has more than `bytes_max` bytes.
absl::Status EncodeLookup(const v1::LookupRequest& request, const LookupResult& result,
                          std::int64_t bytes_max, v1::LookupResponse& response);

struct DecodedAttend {
  DecodedMatrix queries;
  DecodedMatrix keys;
  DecodedMatrix values;
  DecodedMatrix inputs;
  AttendRequest request;  // Its views point to the message or to the members above.
};
// The views in `decoded` are valid while `request` and `decoded` live.
absl::Status DecodeAttend(const v1::AttendRequest& request, DecodedAttend& decoded);
// ANSWER_TOO_LARGE if `response` has more than `bytes_max` bytes.
absl::Status EncodeAttend(const v1::AttendRequest& request, const LookupResult& result,
                          std::int64_t bytes_max, v1::AttendResponse& response);

absl::StatusOr<RowFilter> DecodeFilter(const v1::RowFilter& filter);

// Which fields of a Row are sent.
struct RowFields {
  bool position = true;
  bool id = true;
  bool labels = true;
  bool key = true;
  bool value = true;
};
// An empty mask selects all fields.
absl::StatusOr<RowFields> DecodeReadMask(const google::protobuf::FieldMask& mask);
void EncodeRow(const Row& row, const RowFields& fields, v1::Row& message);

void EncodeMemory(const MemoryState& memory, v1::Memory& message);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CODEC_H_
