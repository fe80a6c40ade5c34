#ifndef SOFTLOOKUP_SERVER_ROUTER_NODE_STREAM_H_
#define SOFTLOOKUP_SERVER_ROUTER_NODE_STREAM_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>

#include "server/base/queue_event.h"
#include "server/cluster/call_set.h"
#include "server/router/node.h"
#include "server/router/node_call.h"

namespace softlookup::server {

// A stream of messages to and from a node. At most one message is sent and one received at a time.
// Deletes itself after OnNodeDone(). Thread-safe within the rules below.
class NodeStream {
 public:
  // Is notified on the threads of the queue; OnNodeSent() and OnNodeRead() may come at once.
  class Handler {
   public:
    virtual ~Handler() = default;
    // The message of Open() or Send() has left. `ok` is false if the stream is over.
    virtual void OnNodeSent(bool ok) = 0;
    // received() has a message. `ok` is false if there is none, because the stream is over: Send(),
    // FinishSending() and Receive() must not be called any more.
    virtual void OnNodeRead(bool ok) = 0;
    // How the stream has ended. This is the last notification.
    virtual void OnNodeDone(const grpc::Status& status) = 0;
  };

  // Begins the stream of `request`, sends its bytes as the first message, and receives. Hold a lock
  // that `handler` waits for until this has returned. `calls` must outlive the stream.
  static NodeStream* Open(std::shared_ptr<CallSet> calls, std::shared_ptr<Node> node,
                          const RoutedRequest& request, std::shared_ptr<Handler> handler);
  NodeStream(const NodeStream&) = delete;
  NodeStream& operator=(const NodeStream&) = delete;

  // Sends a message. Call this after OnNodeSent().
  void Send(const grpc::ByteBuffer& message);
  // Tells the node that nothing more is sent. Call this at most once, as Send().
  void FinishSending();
  // Receives a message. Call this after OnNodeRead().
  void Receive();
  // What OnNodeRead() was about.
  grpc::ByteBuffer& received() { return received_; }
  // Ends the stream. Receive() must be called unless a message is being received.
  void Cancel() { context_.TryCancel(); }

 private:
  class Event final : public QueueEvent {
   public:
    Event(NodeStream* stream, void (NodeStream::*on_event)(bool ok))
        : stream_(stream), on_event_(on_event) {}
    // Counts the operation, and returns the tag to start it with.
    void* Begin();
    void OnEvent(bool ok) override;

   private:
    NodeStream* const stream_;
    void (NodeStream::*const on_event_)(bool ok);
  };

  NodeStream(std::shared_ptr<CallSet> calls, std::shared_ptr<Node> node,
             std::shared_ptr<Handler> handler);
  ~NodeStream();

  void OnStarted(bool ok);
  void OnSent(bool ok) { handler_->OnNodeSent(ok); }
  void OnFinishedSending(bool ok) {}
  void OnRead(bool ok);
  void OnFinished(bool ok) { Release(); }
  // Counts one less in pending_. After the last, tells handler_ and deletes this.
  void Release();

  const std::shared_ptr<CallSet> calls_;
  const CallSet::Life life_;
  const std::shared_ptr<Node> node_;
  const std::shared_ptr<Handler> handler_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer first_;
  grpc::ByteBuffer received_;
  grpc::Status status_;
  Event started_{this, &NodeStream::OnStarted};
  Event sent_{this, &NodeStream::OnSent};
  Event finished_sending_{this, &NodeStream::OnFinishedSending};
  Event read_{this, &NodeStream::OnRead};
  Event finished_{this, &NodeStream::OnFinished};
  // Operations in progress, and one until the stream has ended.
  std::atomic<int> pending_{1};
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_NODE_STREAM_H_
