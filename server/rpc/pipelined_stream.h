#ifndef SOFTLOOKUP_SERVER_RPC_PIPELINED_STREAM_H_
#define SOFTLOOKUP_SERVER_RPC_PIPELINED_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/rpc/call.h"
#include "server/rpc/status.h"
#include "server/rpc/stream_call.h"
#include "server/rpc/stream_pipeline.h"

namespace softlookup::server {

// A stream of requests and of their responses, in the order of the requests. A request may be read
// before earlier ones are answered. StreamPipeline decides when a request is read, when a response
// is written, and when the stream ends. This class does what the pipeline decides. The class that
// derives from this class answers the requests.
class PipelinedStream : public StreamCall<PipelinedStream> {
 public:
  void Drain() final { Cut(ShuttingDown()); }
  void Recheck() final;

 protected:
  // `count_max` and `bytes_max` are the pipeline's.
  PipelinedStream(std::unique_ptr<Call> call, std::size_t count_max, std::size_t bytes_max)
      : StreamCall(std::move(call)), pipeline_(count_max, bytes_max) {}

  // Handles the request that was read last, which is in bytes(). `number` is the request's in the
  // pipeline. Must call pipeline_.OnHandled() once nothing uses bytes() any more: the next request
  // may then be read into them. Runs on a network thread, or on a worker if the request has more
  // than kNetworkThreadParseBytesMax bytes. mutex_ is not held.
  virtual void HandleRequest(std::uint64_t number) = 0;
  // Returns whether the work on earlier requests lets the stream read the next one. The class that
  // derives from this must call ProceedLocked() once the answer becomes true.
  virtual bool MayRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return true; }
  // Reports the status that the stream ends with, and returns the one to send to the client. Called
  // once, when the stream ends.
  virtual grpc::Status ReportEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Stops reading. Makes the stream end with `status`, the server's reason, once all requests that
  // were read are answered. Only the first call counts.
  virtual void Cut(const absl::Status& status);

  // Does what the pipeline says is next. Call one of the two after each change of the pipeline.
  void Proceed();
  void ProceedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For ReportEnd(): reports the status of Cut(), or `status` if Cut() was not called. Returns the
  // one to send to the client.
  grpc::Status ReportCutOr(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  StreamPipeline pipeline_ ABSL_GUARDED_BY(mutex_);

 private:
  void ReadFirst() final { Proceed(); }
  void OnRead(bool ok) final;
  void OnWritten(bool ok) final;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_PIPELINED_STREAM_H_
