#ifndef SOFTLOOKUP_SERVER_RPC_MESSAGE_SCAN_H_
#define SOFTLOOKUP_SERVER_RPC_MESSAGE_SCAN_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/base/limits.h"

namespace softlookup::server {

// Walks messages of one type without parsing them. Finds an upper bound on the bytes that the
// parsed message takes, and checks the counts of its repeated fields. A few bytes on the wire, such
// as an empty submessage, can become a hundred when parsed. Immutable once made.
class MessageScan {
 public:
  // The most elements that a repeated field of a message may have, by the field's full name. A
  // field without an entry has no limit.
  using CountLimits = absl::flat_hash_map<std::string, std::int64_t>;

  MessageScan(const google::protobuf::Descriptor& type, const CountLimits& limits);
  ~MessageScan();
  MessageScan(const MessageScan&) = delete;
  MessageScan& operator=(const MessageScan&) = delete;

  // Returns an upper bound on the bytes that `message` takes once it is parsed.
  //
  // LIMIT_EXCEEDED, naming the field, if a repeated field has more elements than its limit.
  // LIMIT_EXCEEDED also if the message has more than kUnknownFieldsMax unknown fields.
  // MALFORMED_MESSAGE if the fields do not fill the message exactly, a tag is invalid, or
  // submessages or groups nest too deep. Does not check that strings are UTF-8, nor that packed
  // numbers are complete: the parser checks both.
  absl::StatusOr<std::int64_t> Measure(google::protobuf::io::ZeroCopyInputStream& message) const;

  // Maximum number of unknown fields in a message and its submessages. A field is unknown if the
  // type of its message lacks it, or declares another wire type for it. A newer client may send
  // unknown fields. They are bounded because the parser keeps them.
  static constexpr std::int64_t kUnknownFieldsMax = 1024;

 private:
  struct Type;
  struct Field;
  class Reader;

  // Returns the Type of `descriptor`. Makes it if it does not exist yet.
  const Type* TypeOf(const google::protobuf::Descriptor& descriptor, const CountLimits& limits);

  std::vector<std::unique_ptr<Type>> types_;
  const Type* root_;
};

// The count limits of the wire contract's repeated fields, in a server with `limits`.
MessageScan::CountLimits ContractCountLimits(const Limits& limits);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_MESSAGE_SCAN_H_
