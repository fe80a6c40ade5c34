#include "server/rpc/unary_call.h"

#include "core/base/status_macros.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/status.h"

namespace softlookup::server {

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

void UnaryCall::AnswerBytes(absl::Status status, const grpc::ByteBuffer& response) {
  if (status.ok()) status = Hold(response.Length());
  const grpc::Status grpc_status = call_->reporter().Answer(status);
  if (!status.ok()) return call_->rpc().Finish(grpc_status);
  call_->rpc().WriteAndFinish(response, grpc_status);
}

absl::Status UnaryCall::Hold(std::size_t size) {
  const bool may_refuse = !call_->spec().makes_changes;
  SOFTLOOKUP_RETURN_IF_ERROR(unsent_.Hold(size, may_refuse, call_->gate().peer()));
  if (unsent_.is_counted()) {
    write_.emplace(call_->limiters().stalls, call_->rpc().context());
    write_->OnStart(size);
  }
  return absl::OkStatus();
}

absl::Status UnaryCall::Hold(const google::protobuf::MessageLite& response,
                             grpc::ByteBuffer& bytes) {
  SOFTLOOKUP_RETURN_IF_ERROR(Hold(response.ByteSizeLong()));
  bytes = BytesOf(response);
  return absl::OkStatus();
}

void DeniedCall::Start(std::unique_ptr<Call> call, absl::Status denial, KeepNames keep_names) {
  auto* denied = new DeniedCall(std::move(call), std::move(denial), keep_names);
  Rpc& rpc = denied->call_->rpc();
  rpc.Attach(*denied);
  denied->arrival_.OnStart();
  rpc.StartRead(&denied->bytes_);
}

void DeniedCall::OnReadDone(bool ok) {
  arrival_.OnDone();
  if (ok && bytes_.Length() <= kNetworkThreadParseBytesMax) keep_names_(*call_, bytes_);
  call_->rpc().Finish(call_->reporter().Answer(denial_));
}

}  // namespace softlookup::server
