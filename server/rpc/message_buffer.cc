#include "server/rpc/message_buffer.h"

#include <grpcpp/support/proto_buffer_writer.h>

namespace softlookup::server {
namespace {

// Largest slice of a serialized message, in bytes.
constexpr int kSliceBytesMax = 1 << 20;

}  // namespace

grpc::ByteBuffer BytesOf(const google::protobuf::MessageLite& message) {
  grpc::ByteBuffer bytes;
  const std::size_t size = message.ByteSizeLong();
  if (size == 0) {
    const grpc::Slice empty;
    return grpc::ByteBuffer(&empty, 1);
  }
  grpc::ProtoBufferWriter output(&bytes, kSliceBytesMax, static_cast<int>(size));
  message.SerializeToZeroCopyStream(&output);
  return bytes;
}

}  // namespace softlookup::server
