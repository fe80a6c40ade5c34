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
#include "client/cpp/servers.h"
#include "softlookup/client.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup::client_internal {

// An append stream with a writer. It outlives its connections.
//
// The caller's thread fills the queue. A worker thread makes the calls, one after another. A
// StreamAppend call sends the queue's requests. After it fails, a GetWriter call asks which of them
// the server has. In an outage, a timer thread ends a StreamAppend call that gets no answer. While
// the worker writes requests, a reader thread reads the acknowledgements.
class ResumingPipeline final : public AppendPipeline {
 public:
  // The servers, and what calls to them need.
  struct Peer {
    std::shared_ptr<Servers> servers;
    BearerToken token;
    std::string store;
    RetryOptions retry;            // attempts_max is ignored.
    absl::Duration call_deadline;  // For a GetWriter call.
    absl::Time deadline;           // For the whole stream.
  };

  ResumingPipeline(Peer peer, const AppendStreamOptions& options, v1::Writer resumed_from);
  ~ResumingPipeline() override;

  absl::Status Append(v1::AppendRequest request) override;
  absl::StatusOr<AppendSummary> Finish() override;
  void Cancel() override;
  AppendSummary acknowledged() const override;
  v1::Writer resumed_from() const override { return resumed_from_; }

 private:
  using ServerStream = grpc::ClientReaderWriter<v1::AppendRequest, v1::AppendResponse>;

  // A series of failures with no acknowledgement between them. Only the worker's thread changes it.
  struct Outage {
    int failures = 0;
    absl::Time begin = absl::InfiniteFuture();  // InfiniteFuture: there is no outage.
    std::uint64_t acknowledged_requests = 0;    // As of its begin.
  };

  // The worker's next call.
  enum class Step {
    kStream,    // StreamAppend: the queue stands where the server does.
    kAsk,       // GetWriter, which fails at once if the server cannot be reached, and says why.
    kAskAgain,  // GetWriter, which waits for a connection.
  };

  // Makes the calls and sets result_. Runs on the worker's thread.
  void Run();
  // Waits until the queue has a request. False if the queue is empty and Finish() was called, or if
  // the stream is cancelled. Ends the outage if the queue is empty.
  bool AwaitWork();
  // Makes one StreamAppend call at `server`. Returns its failure. Returns OK if Finish() was called
  // and all requests are acknowledged.
  absl::Status Stream(const Server& server, grpc::ClientContext* context);
  // Sends the requests in the queue, and waits for new ones. Returns when the call fails, or once
  // Finish() was called and all requests are sent.
  void Send(ServerStream* stream);
  // Reads acknowledgements until the call ends. Cancels the call if one of them is wrong. Runs on
  // the reader's thread.
  void Receive(grpc::ClientContext* context, ServerStream* stream);
  // Cancels the call of `context` once the outage has lasted for outage_max. Returns sooner if an
  // acknowledgement ends the outage, or if the call ends. Returns whether it cancelled the call.
  bool EndWithOutage(grpc::ClientContext* context);
  // Waits until one of several servers is connected, for as long as a GetWriter call may take. Ends
  // early if the stream is cancelled.
  void AwaitServer();
  // Asks `server` for the writer's last sequence and rewinds the queue to it. `step` is kAsk or
  // kAskAgain.
  absl::Status Reposition(Step step, const Server& server, grpc::ClientContext* context);
  // Returns when a GetWriter call that begins now must end.
  absl::Time AskDeadline() const;
  // Begins an outage now.
  void BeginOutage();
  // Tells the caller of an outage whose cause is `failure`, before the attempt that waits for its
  // end.
  void ReportOutage(const absl::Status& failure);
  // The error of a call that got no answer in time, with its cause.
  absl::Status Unanswered() const;
  // Returns `error` with the message of last_failure_ added, if there is one.
  absl::Status WithCause(const absl::Status& error) const;
  // Counts and reports a reconnection, then waits until the next attempt may be made. The call of
  // `context` ended with `failure`. False if no attempt may be made, then without a report, or if
  // the stream is cancelled. If it was cancelled before the call, reports nothing.
  bool AwaitRetry(const absl::Status& failure, const grpc::ClientContext& context);
  // Returns when the outage will have lasted for outage_max; InfiniteFuture if there is none.
  absl::Time OutageEnd() const;
  // Names the call that Cancel() must cancel: that of `context`, or none if `context` is null. If
  // the stream is already cancelled, cancels that call at once.
  void SetCall(grpc::ClientContext* context);

  const Peer peer_;
  const v1::Writer resumed_from_;
  Outage outage_;
  absl::Status last_failure_;  // The last one that tells a cause. Only the worker's thread uses it.

  mutable absl::Mutex mutex_;
  ResendQueue queue_ ABSL_GUARDED_BY(mutex_);
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;              // Finish() has been called.
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;              // Cancel() has been called.
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mutex_);  // Set once the stream is over.
  // The three members below are about the call in progress.
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;  // Null between calls.
  bool reading_ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status wrong_answer_ ABSL_GUARDED_BY(mutex_);  // OK until the server gives a wrong answer.

  std::thread worker_;  // Declared last: the thread uses all members above.
};

// Returns `answer`, the answer of GetWriter about the writer `name`. If it is the error
// WRITER_NOT_FOUND, returns a new writer of this name instead, which has sent nothing.
absl::StatusOr<v1::Writer> KnownOrNewWriter(const std::string& name,
                                            absl::StatusOr<v1::Writer> answer);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_RESUMING_PIPELINE_H_
