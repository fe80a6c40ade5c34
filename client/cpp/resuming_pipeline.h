#ifndef SOFTLOOKUP_CLIENT_CPP_RESUMING_PIPELINE_H_
#define SOFTLOOKUP_CLIENT_CPP_RESUMING_PIPELINE_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/append_pipeline.h"
#include "client/cpp/bearer_token.h"
#include "client/cpp/resend_queue.h"
#include "softlookup/client.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup::client_internal {

// An append stream of a writer, which outlives its connections.
//
// The caller's thread fills the queue. A worker thread makes the calls, one after another: the
// stream that empties the queue and, after a failure, the question how far the writer got. While it
// writes to a stream, a reader thread takes the acknowledgements.
class ResumingPipeline final : public AppendPipeline {
 public:
  // What the calls need to know.
  struct Peer {
    std::shared_ptr<v1::SoftLookup::Stub> stub;
    BearerToken token;
    std::string store;
    RetryOptions retry;            // But for attempts_max.
    absl::Duration call_deadline;  // Of a unary call.
    absl::Time deadline;           // Of everything.
  };

  ResumingPipeline(Peer peer, const AppendStreamOptions& options, v1::Writer resumed_from);
  ~ResumingPipeline() override;

  absl::Status Append(v1::AppendRequest request) override;
  absl::StatusOr<AppendSummary> Finish() override;
  AppendSummary acknowledged() const override;
  v1::Writer resumed_from() const override { return resumed_from_; }

 private:
  using ServerStream = grpc::ClientReaderWriter<v1::AppendRequest, v1::AppendResponse>;

  // What went wrong since something was acknowledged. Worker only.
  struct Outage {
    int failures = 0;
    absl::Time begin;
    std::uint64_t acknowledged_requests = 0;  // At the last failure.
  };

  // The worker's thread.
  void Run();
  // Waits for something to send; false if there will be none.
  bool AwaitWork();
  // One call of StreamAppend, from beginning to end.
  absl::Status Stream(grpc::ClientContext* context);
  // Sends what is in the queue and what joins it, until the caller is finished or reading ends.
  void Send(ServerStream* stream);
  // Takes acknowledgements until there are no more. Reader's thread.
  void Receive(grpc::ClientContext* context, ServerStream* stream);
  // Asks how far the writer got, and lets the queue go on from there.
  absl::Status Reposition(grpc::ClientContext* context);
  // After `failure` of the call of `context`: waits until the time has come to try again. False if
  // it never will.
  bool AwaitRetry(const absl::Status& failure, const grpc::ClientContext& context);
  // When the outage, if there is one, has lasted too long.
  absl::Time OutageEnd() const;
  // Ends the call of `context` when the stream is cancelled; null: there is no call.
  void SetCall(grpc::ClientContext* context);

  const Peer peer_;
  const v1::Writer resumed_from_;
  Outage outage_;

  mutable absl::Mutex mutex_;
  ResendQueue queue_ ABSL_GUARDED_BY(mutex_);
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;              // The caller has no more requests.
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;              // The caller has lost interest.
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mutex_);  // The stream is over.
  // Of the call in progress.
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool reading_ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status wrong_answer_ ABSL_GUARDED_BY(mutex_);

  std::thread worker_;  // Last: it uses all of the above.
};

// The answer to GetWriter about the writer `name`, but that one which the store does not know is
// one that has sent nothing.
absl::StatusOr<v1::Writer> KnownOrNewWriter(const std::string& name,
                                            absl::StatusOr<v1::Writer> answer);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_RESUMING_PIPELINE_H_
