#ifndef SOFTLOOKUP_SERVER_ROUTER_WIRE_FIELDS_H_
#define SOFTLOOKUP_SERVER_ROUTER_WIRE_FIELDS_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"

// Reads and adds single fields of serialized messages, which need not be parsed for that. The time
// grows with the number of fields, but not with their bytes.
namespace softlookup::server {

// Returns the text of a field: the last one, as a parser does. `path` is the field's number, after
// those of the messages that it is in. "" if there is none. Cuts the text after kNameLengthMax + 1
// bytes, so that a name that is too long stays too long. If `message` is malformed, returns what
// comes before the mistake.
std::string TextField(grpc::ByteBuffer& message, std::initializer_list<int> path);

// As above, for an unsigned number of `message` itself. 0 if there is none.
std::uint64_t NumberField(grpc::ByteBuffer& message, std::initializer_list<int> path);

// Whether `message` has a message as the field of this number.
bool HasField(grpc::ByteBuffer& message, int field);

// Returns `message` with a field added. A parser then takes this value instead of an earlier one.
// Shares the bytes of `message`. A malformed message is returned as it is: if it ends within a
// field, what is added could complete this field.
grpc::ByteBuffer WithNumber(const grpc::ByteBuffer& message, int field, std::uint64_t value);
grpc::ByteBuffer WithText(const grpc::ByteBuffer& message, int field, absl::string_view value);
// Returns `message` with the message `value` as a field in front of its own. Shares the bytes of
// both. A malformed `value` stays within its field.
grpc::ByteBuffer WithMessage(const grpc::ByteBuffer& message, int field,
                             const grpc::ByteBuffer& value);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_WIRE_FIELDS_H_
