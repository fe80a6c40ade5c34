#ifndef SOFTLOOKUP_SERVER_ROUTER_NODE_CALL_H_
#define SOFTLOOKUP_SERVER_ROUTER_NODE_CALL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/queue_event.h"
#include "server/cluster/call_set.h"
#include "server/router/node.h"

namespace softlookup::server {

// Who makes a call, as a router tells a node.
struct RoutedCaller {
  std::string identity;     // Its name in the auth rules; empty if there are none.
  std::string client;       // The client's address, as gRPC names it.
  std::string traceparent;  // The header of this name; empty: none.
};

// What a router passes on. Nothing of it depends on the node.
struct RoutedRequest {
  grpc::CompletionQueue* queue = nullptr;  // Of the client's call: Rpc::queue().
  std::string method;                      // `/package.Service/Method`.
  grpc::ByteBuffer bytes;
  absl::Time deadline = absl::InfiniteFuture();
  RoutedCaller caller;
  bool knows_ranges = false;  // The router can go on after STORE_HAS_RANGES.
};

// Adds to `context`, of a call of a node, what the node must know of `request`.
void PrepareNodeCall(const RoutedRequest& request, grpc::ClientContext& context);

// Counts at `node` the end of a call of it with `status`, and notes if the node stops.
void NoteEnd(const grpc::Status& status, Node& node);

// Whether `status`, with which a call of a node ended, is what the node has answered. False: it was
// not reached, or the connection broke, or the call's time was over.
bool IsFromNode(const grpc::Status& status);

// A unary call of a node. Thread-safe.
class NodeCall final : private QueueEvent {
 public:
  // Called once, on a thread of the queue. `response` is empty after an error.
  using Done = absl::AnyInvocable<void(const grpc::Status&, grpc::ByteBuffer& response)>;

  // Sends `bytes` instead of those of `request`. The node lets a
  // lookup wait for its revision no longer than `revision_wait`, if it is set. `calls` and `node`
  // must outlive the call, as must the reference to `node` that their owner has.
  static std::shared_ptr<NodeCall> Start(std::shared_ptr<CallSet> calls, std::shared_ptr<Node> node,
                                         const RoutedRequest& request,
                                         const grpc::ByteBuffer& bytes,
                                         std::optional<absl::Duration> revision_wait, Done done);
  ~NodeCall() { calls_->Remove(context_); }
  NodeCall(const NodeCall&) = delete;
  NodeCall& operator=(const NodeCall&) = delete;

  const std::shared_ptr<Node>& node() const { return node_; }
  // Ends the call with CANCELLED, if it is not over.
  void Cancel() { context_.TryCancel(); }

 private:
  NodeCall(std::shared_ptr<CallSet> calls, std::shared_ptr<Node> node,
           const grpc::ByteBuffer& bytes, Done done)
      : calls_(std::move(calls)),
        life_(calls_),
        node_(std::move(node)),
        bytes_(bytes),
        done_(std::move(done)) {}

  void OnEvent(bool ok) override;

  const std::shared_ptr<CallSet> calls_;
  const CallSet::Life life_;
  const std::shared_ptr<Node> node_;
  grpc::ClientContext context_;
  grpc::ByteBuffer bytes_;
  Done done_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  std::shared_ptr<NodeCall> self_;  // Null once the call is over.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_NODE_CALL_H_
