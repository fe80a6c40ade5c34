#include "server/rpc/unary_call.h"

#include <grpcpp/support/proto_buffer_writer.h>

#include "core/base/status_macros.h"
#include "server/rpc/status.h"

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

void UnaryCall::Start() {
  Rpc& rpc = call_->rpc();
  rpc.Attach(*this);
  arrival_.OnStart();
  rpc.StartRead(&bytes_);
}

void UnaryCall::OnReadDone(bool ok) {
  arrival_.OnDone();
  if (!ok) return Refuse(MalformedMessage());
  const bool is_small = bytes_.Length() <= kNetworkThreadParseBytesMax;
  if (run_on_ == RunOn::kNetworkThread && is_small) return Proceed();
  const absl::Status status = call_->limiters().workers.Post(call_->turn(), [this] { Proceed(); });
  if (!status.ok()) Refuse(status);
}

void UnaryCall::Proceed() {
  if (const absl::Status status = Receive(bytes_); !status.ok()) return Refuse(status);
  Run();
}

void UnaryCall::Answer(absl::Status status, const google::protobuf::MessageLite& response) {
  AnswerAs(std::move(status), response, [this](const absl::Status& final_status) {
    return call_->reporter().Answer(final_status);
  });
}

absl::Status UnaryCall::Hold(const google::protobuf::MessageLite& response,
                             grpc::ByteBuffer& bytes) {
  const bool may_refuse = !call_->spec().is_audited;
  const std::size_t size = response.ByteSizeLong();
  SOFTLOOKUP_RETURN_IF_ERROR(unsent_.Hold(size, may_refuse, call_->rpc().peer()));
  if (unsent_.is_counted()) {
    write_.emplace(call_->limiters().stalls, call_->rpc().context());
    write_->OnStart(size);
  }
  bytes = BytesOf(response);
  return absl::OkStatus();
}

}  // namespace softlookup::server
