#include "server/router/relay_stream.h"

#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/router/routed_unary.h"
#include "server/router/routes.h"
#include "server/rpc/status.h"

namespace softlookup::server {

RelayStream::RelayStream(std::unique_ptr<Call> call, const RouterParts& parts)
    : StreamCall(std::move(call)),
      parts_(parts),
      is_append_(this->call().spec().method == Method::kStreamAppend) {}

void RelayStream::Start(std::unique_ptr<Call> call, const RouterParts& parts) {
  const std::shared_ptr<RelayStream> stream(new RelayStream(std::move(call), parts));
  stream->Begin();
}

void RelayStream::ReadFirst() {
  absl::MutexLock lock(&mutex_);
  if (!has_ended_) StartRead();  // The call can be over already.
}

void RelayStream::OnRead(bool ok) {
  std::string store;
  {
    absl::MutexLock lock(&mutex_);
    if (!ok || !cut_.ok()) {
      client_is_done_ = true;
      if (!was_opened_ && !is_append_) Cut(MalformedMessage());
      PassOn();
      return EndIfOver();
    }
    if (const absl::Status status = Take(); !status.ok()) {
      client_is_done_ = true;
      Cut(status);
      PassOn();
      return EndIfOver();
    }
    if (was_opened_) return PassOn();
    was_opened_ = true;
    is_waiting_ = true;
    store_ = StoreOf(call().spec().method, *message_);
    store = store_;
  }
  call().gate().KeepNames(store, "");
  const std::shared_ptr<PrimaryWait> wait =
      PrimaryWait::Start(parts_, store, call().deadline(),
                         [self = shared_from_this()](absl::StatusOr<std::shared_ptr<Node>> node) {
                           self->Open(std::move(node));
                         });
  absl::Status cut;
  {
    absl::MutexLock lock(&mutex_);
    wait_ = wait;
    cut = cut_;
  }
  if (!cut.ok()) wait->End(cut);
}

absl::Status RelayStream::Take() {
  if (is_append_) SOFTLOOKUP_RETURN_IF_ERROR(call().gate().AdmitNext());
  SOFTLOOKUP_RETURN_IF_ERROR(call().Hold(bytes(), charge_));
  message_.emplace().Swap(&bytes());
  if (is_append_) taken_.push_back(std::chrono::steady_clock::now());
  return absl::OkStatus();
}

void RelayStream::Open(absl::StatusOr<std::shared_ptr<Node>> node) {
  absl::MutexLock lock(&mutex_);
  is_waiting_ = false;
  if (!node.ok() || !cut_.ok()) {
    Cut(node.status());
    node_end_ = cut_;
    return EndIfOver();
  }
  is_sending_ = true;
  node_ = NodeStream::Open(parts_.calls, *std::move(node),
                           {.queue = &call().rpc().queue(),
                            .method = std::string(call().spec().path),
                            .bytes = *message_,
                            .deadline = call().deadline(),
                            .caller = CallerOf(call())},
                           shared_from_this());
}

void RelayStream::PassOn() {
  if (node_ == nullptr || is_sending_ || node_knows_) return;
  if (message_.has_value() && cut_.ok()) {
    is_sending_ = true;
    return node_->Send(*message_);
  }
  if (!client_is_done_ && cut_.ok()) return;
  node_knows_ = true;
  node_->FinishSending();
}

void RelayStream::OnNodeSent(bool ok) {
  absl::MutexLock lock(&mutex_);
  is_sending_ = false;
  message_.reset();
  charge_ = {};
  if (!ok) return;  // The node has ended the stream: OnNodeDone() tells why.
  if (!is_append_) client_is_done_ = true;  // It has sent its one message.
  if (!client_is_done_ && cut_.ok()) return StartRead();
  PassOn();
}

void RelayStream::OnNodeRead(bool ok) {
  absl::MutexLock lock(&mutex_);
  if (!ok) {
    node_knows_ = true;  // Nothing is sent to it any more.
    return;
  }
  grpc::ByteBuffer& message = node_->received();
  const Method method = call().spec().method;
  NoteAnswer(method, store_, "", message, parts_.revisions);
  if (is_append_ && !taken_.empty()) {
    call().reporter().AnswerMessage(taken_.front(), absl::OkStatus());
    call().auditor().CountChange(ChangedRows(method, message).value_or(0));
    taken_.pop_front();
  }
  is_writing_ = true;
  StartWrite(message);
}

void RelayStream::OnWritten(bool ok) {
  absl::MutexLock lock(&mutex_);
  is_writing_ = false;
  if (node_ == nullptr) return EndIfOver();
  if (ok) return node_->Receive();
  node_->Cancel();
  node_->Receive();  // Ends with the stream.
}

void RelayStream::OnNodeDone(const grpc::Status& status) {
  absl::MutexLock lock(&mutex_);
  node_ = nullptr;
  node_end_ = FromGrpcStatus(status);
  if (!status.ok() && !IsFromNode(status)) parts_.watch.Wake();
  EndIfOver();
}

void RelayStream::EndIfOver() {
  const bool has_end = node_end_.has_value() || (!was_opened_ && (client_is_done_ || !cut_.ok()));
  if (has_ended_ || is_waiting_ || node_ != nullptr || is_writing_ || !has_end) return;
  has_ended_ = true;
  const absl::Status end = node_end_.value_or(cut_);
  if (!is_append_) {
    call().rpc().Finish(call().reporter().Answer(cut_.ok() ? end : cut_));
  } else if (end.ok() && !cut_.ok()) {
    call().rpc().Finish(call().reporter().CutStream(cut_));
  } else {
    if (!end.ok() && !taken_.empty()) call().reporter().AnswerMessage(taken_.front(), end);
    call().rpc().Finish(call().reporter().EndStream(end));
  }
}

void RelayStream::CutAndEndWait(const absl::Status& status) {
  std::shared_ptr<PrimaryWait> wait;
  {
    absl::MutexLock lock(&mutex_);
    Cut(status);
    wait = wait_;
    if (node_ != nullptr && !is_append_) node_->Cancel();
    PassOn();
    EndIfOver();
  }
  if (wait != nullptr) wait->End(status);
}

void RelayStream::OnCancel() {
  {
    absl::MutexLock lock(&mutex_);
    client_is_done_ = true;
    if (node_ != nullptr) node_->Cancel();
  }
  CutAndEndWait(MakeError(reasons::kCancelled, "The caller is gone"));
}

void RelayStream::Drain() {
  if (call().spec().method != Method::kReadRows) CutAndEndWait(ShuttingDown());
}

void RelayStream::Recheck() {
  const absl::Status status = call().gate().Recheck();
  if (!status.ok()) CutAndEndWait(status);
}

}  // namespace softlookup::server
