#ifndef SOFTLOOKUP_SERVER_RPC_MESSAGE_BUFFER_H_
#define SOFTLOOKUP_SERVER_RPC_MESSAGE_BUFFER_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>

namespace softlookup::server {

// Serializes `message`. Copies of the buffer share its bytes.
grpc::ByteBuffer BytesOf(const google::protobuf::MessageLite& message);

// The most bytes of a request that UnaryCall and StreamCall parse on a network thread. They have a
// worker parse larger requests, since to parse and copy one takes milliseconds.
inline constexpr std::size_t kNetworkThreadParseBytesMax = std::size_t{1} << 20;

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_MESSAGE_BUFFER_H_
