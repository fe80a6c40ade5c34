#ifndef SOFTLOOKUP_SERVER_ROUTER_PART_READER_H_
#define SOFTLOOKUP_SERVER_ROUTER_PART_READER_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/cluster/shared_limit.h"
#include "server/router/ranged_stores.h"
#include "softlookup/partial_lookup.h"

namespace softlookup::server {

// Returns false if `bytes` are no such message.
bool ParseBytes(grpc::ByteBuffer bytes, google::protobuf::MessageLite& message);

// The error of a node that has answered with `what`.
absl::Status MalformedAnswer(absl::string_view what);

// Returns what `response`, to a BeginLookup, tells. Its ranges are empty if the store has none.
// INTERNAL if they are malformed.
absl::StatusOr<std::shared_ptr<const RangesAt>> ReadRanges(const grpc::ByteBuffer& response);

// Reads what ranges answer to a lookup. Takes the bytes of what is decoded from a limit.
// Thread-safe.
class PartReader {
 public:
  // An answer, with the bytes that it takes.
  template <typename Answer>
  struct Decoded {
    Answer answer;
    std::vector<SharedLimit::Share> bytes;
  };

  // `bytes` must outlive this object.
  explicit PartReader(SharedLimit& bytes) : bytes_(bytes) {}

  // QUEUE_FULL if too few bytes are left, and INTERNAL if the answer is malformed.
  absl::StatusOr<Decoded<PartialLookup>> ReadPart(const grpc::ByteBuffer& response) const;
  absl::StatusOr<Decoded<RowSums>> ReadSums(const grpc::ByteBuffer& response) const;

 private:
  absl::StatusOr<SharedLimit::Share> Take(std::uint64_t count) const;

  SharedLimit& bytes_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_PART_READER_H_
