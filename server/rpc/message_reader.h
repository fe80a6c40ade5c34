#ifndef SOFTLOOKUP_SERVER_RPC_MESSAGE_READER_H_
#define SOFTLOOKUP_SERVER_RPC_MESSAGE_READER_H_

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <optional>

namespace softlookup::server {

// Reads the bytes of a message. If they are in one slice, as in small messages, reads that slice as
// an array. Otherwise uses gRPC's reader. `bytes` must outlive this.
class MessageReader {
 public:
  explicit MessageReader(grpc::ByteBuffer& bytes) {
    if (bytes.TrySingleSlice(&slice_).ok()) {
      one_.emplace(slice_.begin(), static_cast<int>(slice_.size()));
    } else {
      many_.emplace(&bytes);
    }
  }
  google::protobuf::io::ZeroCopyInputStream& stream() {
    return one_.has_value() ? static_cast<google::protobuf::io::ZeroCopyInputStream&>(*one_)
                            : *many_;
  }
  bool ok() const { return !many_.has_value() || many_->status().ok(); }

 private:
  grpc::Slice slice_;
  std::optional<google::protobuf::io::ArrayInputStream> one_;
  std::optional<grpc::ProtoBufferReader> many_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_MESSAGE_READER_H_
