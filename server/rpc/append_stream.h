#ifndef SOFTLOOKUP_SERVER_RPC_APPEND_STREAM_H_
#define SOFTLOOKUP_SERVER_RPC_APPEND_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/limits/pipeline_budget.h"
#include "server/limits/stall_watch.h"
#include "server/rpc/call.h"
#include "server/rpc/status.h"
#include "softlookup/engine.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::server {

// One StreamAppend call. Requests are applied in the order in which they come. The stream reads the
// next request while earlier ones wait for their acknowledgement, up to kPipelineMax requests and
// kPipelineBytesMax bytes.
//
// The stream owns itself until the call is over. After that, a callback of the engine or a worker's
// task that still refers to the stream keeps it alive.
class AppendStream final : public Rpc::Handler,
                           public DrainableStream,
                           public std::enable_shared_from_this<AppendStream> {
 public:
  static void Start(std::unique_ptr<Call> call, Engine& engine);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;
  void Drain() override { Cut(ShuttingDown()); }
  void Recheck() override;

 private:
  // Maximum number of appends in progress plus responses not yet written, and the approximate
  // maximum of their bytes. Beyond either, the next request stays unread.
  static constexpr std::size_t kPipelineMax = 64;
  static constexpr std::size_t kPipelineBytesMax = std::size_t{64} << 20;

  // A response that waits to be written, and its size.
  struct Acknowledgement {
    grpc::ByteBuffer response;
    std::size_t bytes = 0;
  };

  AppendStream(std::unique_ptr<Call> call, Engine& engine)
      : call_(std::move(call)),
        engine_(engine),
        arrival_(call_->limiters().arrivals, call_->rpc().context()),
        writes_(call_->limiters().stalls, call_->rpc().context()),
        budget_(kPipelineMax, kPipelineBytesMax) {}

  // Handles the request that was read last: passes it to the engine, or makes the stream fail.
  void HandleRequest();
  // Passes the request that was read last to the engine. Returns an error if the request is refused
  // before it reaches the engine. `number` counts the stream's requests from 1. `begin` is when the
  // stream began to handle the request.
  absl::Status Apply(std::uint64_t number, SteadyTime begin);
  // Stops reading. Makes the stream end with the failure of request `number` once the applied
  // requests are acknowledged. The engine can refuse a request while earlier requests still run. If
  // an earlier request fails after this call, the stream ends with the failure of the earlier one.
  void Fail(std::uint64_t number, const absl::Status& status, SteadyTime begin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // INVALID_ARGUMENT if the request names another store than the stream's. The first store that a
  // request names becomes the stream's.
  absl::Status CheckStore(const std::string& store);
  // The engine calls this once the place of the last append in the order of writes is fixed.
  // Appends that the engine gets from now on come after that append, so the next request may be
  // read.
  void OnTurn();
  // The engine calls this with the result of request `number`. Queues the response, or makes the
  // stream fail.
  void Acknowledge(std::uint64_t number, SteadyTime begin, std::uint64_t sequence,
                   std::size_t request_bytes, absl::StatusOr<AppendResult> result);
  // Stops reading. Makes the stream end with `status` once all applied requests are acknowledged.
  // If one of them fails, the stream ends with that failure instead. Only the first call counts.
  void Cut(const absl::Status& status);
  // Starts the next read and the next write if possible, or ends the stream if it is done.
  void Proceed();
  void ProceedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::shared_ptr<AppendStream> self_;
  const std::unique_ptr<Call> call_;
  Engine& engine_;
  StallWatch::Waits arrival_;  // The wait for the first message.
  StallWatch::Waits writes_;   // The waits until the client takes a response.
  const std::shared_ptr<AppendChain> chain_ = std::make_shared<AppendChain>();
  // The request being read or handled. Only the read in progress and HandleRequest() use it, from
  // StartRead() until `reading_` is false again.
  grpc::ByteBuffer bytes_;
  std::string store_;                // The first store that a message named.
  std::uint64_t request_count_ = 0;  // Requests that HandleRequest() has begun to handle.

  absl::Mutex mutex_;
  PipelineBudget budget_ ABSL_GUARDED_BY(mutex_);
  std::deque<Acknowledgement> responses_ ABSL_GUARDED_BY(mutex_);
  std::size_t written_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Of the response being written.
  bool awaits_turn_ ABSL_GUARDED_BY(mutex_) = false;  // The append read last waits for its turn.
  int unacknowledged_ ABSL_GUARDED_BY(mutex_) = 0;    // Appends that the engine has not answered.
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;      // A request is being read or handled.
  bool applying_ ABSL_GUARDED_BY(mutex_) = false;     // A request is on its way to the engine.
  // No further request is read: none comes, or the stream is to end.
  bool reads_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // The client reads no more responses.
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status cut_ ABSL_GUARDED_BY(mutex_);  // Not OK: the server ends the stream with it.
  // The number of the first request that failed, and its error, which ends the stream.
  std::uint64_t failed_request_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<std::uint64_t>::max();
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // When the stream began to handle request `failed_request_`.
  SteadyTime failure_begin_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_APPEND_STREAM_H_
