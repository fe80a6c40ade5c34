#include "server/router/node_stream.h"

#include <utility>

namespace softlookup::server {

void* NodeStream::Event::Begin() {
  stream_->pending_.fetch_add(1, std::memory_order_relaxed);
  return tag();
}

void NodeStream::Event::OnEvent(bool ok) {
  (stream_->*on_event_)(ok);
  stream_->Release();
}

NodeStream::NodeStream(std::shared_ptr<CallSet> calls, std::shared_ptr<Node> node,
                       std::shared_ptr<Handler> handler)
    : calls_(std::move(calls)),
      life_(calls_),
      node_(std::move(node)),
      handler_(std::move(handler)) {}

NodeStream::~NodeStream() { calls_->Remove(context_); }

NodeStream* NodeStream::Open(std::shared_ptr<CallSet> calls, std::shared_ptr<Node> node,
                             const RoutedRequest& request, std::shared_ptr<Handler> handler) {
  auto* const opened = new NodeStream(std::move(calls), std::move(node), std::move(handler));
  opened->first_ = request.bytes;
  PrepareNodeCall(request, opened->context_);
  opened->calls_->Add(opened->context_);
  opened->node_->OnStart();
  opened->stream_ =
      opened->node_->stub().PrepareCall(&opened->context_, request.method, request.queue);
  opened->stream_->StartCall(opened->started_.Begin());
  return opened;
}

void NodeStream::Send(const grpc::ByteBuffer& message) { stream_->Write(message, sent_.Begin()); }

void NodeStream::FinishSending() { stream_->WritesDone(finished_sending_.Begin()); }

void NodeStream::Receive() { stream_->Read(&received_, read_.Begin()); }

void NodeStream::OnStarted(bool ok) {
  if (!ok) return OnRead(false);
  Send(first_);
  first_.Clear();
  Receive();  // Last, because Finish() follows a read, and no operation may be started after that.
}

void NodeStream::OnRead(bool ok) {
  handler_->OnNodeRead(ok);
  if (!ok) stream_->Finish(&status_, finished_.Begin());
}

void NodeStream::Release() {
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  NoteEnd(status_, *node_);
  handler_->OnNodeDone(status_);
  delete this;
}

}  // namespace softlookup::server
