#ifndef SOFTLOOKUP_SERVER_ROUTER_RELAY_STREAM_H_
#define SOFTLOOKUP_SERVER_ROUTER_RELAY_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/router/node_stream.h"
#include "server/router/primary_wait.h"
#include "server/router/routed_call.h"
#include "server/rpc/call.h"
#include "server/rpc/stream_call.h"

namespace softlookup::server {

// A StreamAppend, a ReadRows or a WatchMemory at a router: passes the messages of both sides on to
// the other one, one at a time in each direction, so that the slower side sets the pace. The node
// is the primary of the store that the first message names. The stream ends when either side does.
// A client resumes it as after any cut.
class RelayStream final : public StreamCall<RelayStream>, public NodeStream::Handler {
 public:
  // `parts` must outlive the call.
  static void Start(std::unique_ptr<Call> call, const RouterParts& parts);

  void OnCancel() override;
  void Drain() override;
  void Recheck() override;

 private:
  RelayStream(std::unique_ptr<Call> call, const RouterParts& parts);

  // What comes from the client.
  void ReadFirst() override;
  void OnRead(bool ok) override;
  void OnWritten(bool ok) override;
  // What comes from the node.
  void OnNodeSent(bool ok) override;
  void OnNodeRead(bool ok) override;
  void OnNodeDone(const grpc::Status& status) override;

  // Takes the message that was read last. Returns the error to end with if it is refused.
  absl::Status Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Passes on the message that was taken last, or that there is none any more.
  void PassOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Open(absl::StatusOr<std::shared_ptr<Node>> node);
  // Makes the stream end with `status`, the router's reason, once the node has answered what was
  // passed on. Only the first call counts.
  void Cut(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (cut_.ok()) cut_ = status;
  }
  // Ends the call if nothing is left to do.
  void EndIfOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls Cut(), and ends the wait for a node. A stream that the client does not send is cancelled.
  void CutAndEndWait(const absl::Status& status);

  const RouterParts& parts_;
  const bool is_append_;

  absl::Mutex mutex_;
  std::string store_ ABSL_GUARDED_BY(mutex_);        // That the first message names.
  bool is_waiting_ ABSL_GUARDED_BY(mutex_) = false;  // For the node.
  std::shared_ptr<PrimaryWait> wait_ ABSL_GUARDED_BY(mutex_);
  NodeStream* node_ ABSL_GUARDED_BY(mutex_) = nullptr;  // Null before Open() and once it is over.
  // The message from the client that the node has not got yet.
  std::optional<grpc::ByteBuffer> message_ ABSL_GUARDED_BY(mutex_);
  MessageCharge charge_ ABSL_GUARDED_BY(mutex_);         // For message_.
  bool client_is_done_ ABSL_GUARDED_BY(mutex_) = false;  // It sends no more.
  bool node_knows_ ABSL_GUARDED_BY(mutex_) = false;      // That the client sends no more.
  bool is_sending_ ABSL_GUARDED_BY(mutex_) = false;      // To the node.
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;      // To the client.
  bool was_opened_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> node_end_ ABSL_GUARDED_BY(mutex_);  // What the node ended with.
  absl::Status cut_ ABSL_GUARDED_BY(mutex_);                      // Not OK: what Cut() was told.
  // When the messages were taken that are not answered, of a StreamAppend.
  std::deque<SteadyTimePoint> taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_RELAY_STREAM_H_
