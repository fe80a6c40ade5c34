#include "server/rpc/rpc.h"

#include "core/base/check.h"

namespace softlookup::server {

void Rpc::Request(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue,
                  Owner& owner) {
  auto* rpc = new Rpc(queue, owner);
  rpc->context_.AsyncNotifyWhenDone(rpc->over_.tag());
  service.RequestCall(&rpc->context_, &rpc->stream_, &queue, &queue, rpc->accepted_.tag());
}

void Rpc::OnAccepted(bool ok) {
  if (!ok) {
    // The server stops, and no call came. No other event of this Rpc follows.
    Owner& owner = owner_;
    delete this;
    return owner.OnGone();
  }
  // The first call makes gRPC fill a map. After that, several threads may call it at once.
  context_.client_metadata();
  bool is_cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    // Copied now, since gRPC no longer knows the peer once the call is over.
    peer_ = context_.peer();
    came_ = std::chrono::steady_clock::now();
    is_cancelled = is_cancelled_;
  }
  if (is_cancelled) owner_.OnCancelled(*this);
  owner_.OnAccept(*this);
}

void Rpc::Attach(Handler& handler) {
  SOFTLOOKUP_CHECK(attached_ == nullptr) << path() << " has a handler";
  bool is_over = false;
  attached_ = &handler;
  {
    absl::MutexLock lock(&mutex_);
    handler_ = &handler;
    is_over = over_before_attach_;
  }
  if (!is_over) return;
  handler.OnCancel();
  Release();
}

void Rpc::StartRead(grpc::ByteBuffer* message) {
  SOFTLOOKUP_CHECK(!is_reading_.exchange(true)) << path() << " reads twice at once";
  pending_.fetch_add(1, std::memory_order_relaxed);
  stream_.Read(message, read_.tag());
}

void Rpc::StartWrite(const grpc::ByteBuffer& message) {
  SOFTLOOKUP_CHECK(!is_writing_.exchange(true)) << path() << " writes twice at once";
  SOFTLOOKUP_CHECK(!is_finishing_) << path() << " writes behind its end";
  pending_.fetch_add(1, std::memory_order_relaxed);
  stream_.Write(message, written_.tag());
}

void Rpc::WriteAndFinish(const grpc::ByteBuffer& message, const grpc::Status& status) {
  SOFTLOOKUP_CHECK(!is_finishing_.exchange(true)) << path() << " ends twice";
  SOFTLOOKUP_DCHECK(!is_writing_) << path() << " ends during a write";
  stream_.WriteAndFinish(message, grpc::WriteOptions(), status, finished_.tag());
}

void Rpc::Finish(const grpc::Status& status) {
  SOFTLOOKUP_CHECK(!is_finishing_.exchange(true)) << path() << " ends twice";
  SOFTLOOKUP_DCHECK(!is_writing_) << path() << " ends during a write";
  stream_.Finish(status, finished_.tag());
}

void Rpc::OnRead(bool ok) {
  is_reading_ = false;
  attached_->OnReadDone(ok);
  Release();
}

void Rpc::OnWritten(bool ok) {
  is_writing_ = false;
  attached_->OnWriteDone(ok);
  Release();
}

void Rpc::OnOver(bool) {
  const bool is_cancelled = context_.IsCancelled();
  bool is_accepted = false;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = is_cancelled;
    is_accepted = !peer_.empty();
  }
  if (is_cancelled && is_accepted) owner_.OnCancelled(*this);
  Handler* handler = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    handler = handler_;
    over_before_attach_ = handler == nullptr;
  }
  // Without a handler, Attach() calls Release() for this event later. It may do so on another
  // thread at any moment and delete the Rpc, so nothing here may touch the Rpc any more.
  if (handler == nullptr) return;
  if (is_cancelled) handler->OnCancel();
  Release();
}

void Rpc::Release() {
  const int pending = pending_.fetch_sub(1, std::memory_order_acq_rel);
  SOFTLOOKUP_CHECK(pending > 0) << path() << " has had its last event";
  if (pending > 1) return;
  Owner& owner = owner_;
  Handler* const handler = attached_;
  // OnDone() comes before the deletion, since the handler may own objects that refer to context_.
  handler->OnDone();
  delete this;
  owner.OnGone();
}

}  // namespace softlookup::server
