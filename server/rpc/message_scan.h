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

// Reads the structure of messages of one type without parsing them, to tell what parsing will take.
// A few bytes on the wire can become a hundred in memory, such as an empty submessage. Immutable
// once made.
class MessageScan {
 public:
  // The most elements that a repeated field of a message may have, by the field's full name.
  using CountLimits = absl::flat_hash_map<std::string, std::int64_t>;

  MessageScan(const google::protobuf::Descriptor& type, const CountLimits& limits);
  ~MessageScan();
  MessageScan(const MessageScan&) = delete;
  MessageScan& operator=(const MessageScan&) = delete;

  // The bytes of memory that the message takes once it is parsed, at most.
  //
  // LIMIT_EXCEEDED, which names the field, if it has more elements than its limit, or the message
  // more than kUnknownFieldsMax fields that its type lacks. MALFORMED_MESSAGE if its fields do not
  // fill it exactly, or are of another kind than their type has; strings that are not UTF-8 and
  // packed numbers that are cut are left to the parser.
  absl::StatusOr<std::int64_t> Measure(google::protobuf::io::ZeroCopyInputStream& message) const;

  // A newer client may use fields that this server does not know. They are kept when parsed.
  static constexpr std::int64_t kUnknownFieldsMax = 1024;

 private:
  struct Type;
  struct Field;
  class Reader;

  // The one of `descriptor`, made if there is none yet.
  const Type* TypeOf(const google::protobuf::Descriptor& descriptor, const CountLimits& limits);

  std::vector<std::unique_ptr<Type>> types_;
  const Type* root_;
};

// What the contract's messages may hold, in a server with these limits.
MessageScan::CountLimits ContractCountLimits(const Limits& limits);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_MESSAGE_SCAN_H_
