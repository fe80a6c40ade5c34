#ifndef SOFTLOOKUP_SERVER_RPC_APPEND_STREAM_H_
#define SOFTLOOKUP_SERVER_RPC_APPEND_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "server/rpc/call.h"
#include "server/rpc/pipelined_stream.h"
#include "softlookup/engine.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::server {

// One StreamAppend call: turns its requests into appends, and their acknowledgements into
// responses. Requests are applied in the order in which they come. The next request may be read
// while earlier ones wait for their acknowledgements.
class AppendStream final : public PipelinedStream {
 public:
  static void Start(std::unique_ptr<Call> call, Engine& engine);

 private:
  // Maximum number of appends in progress plus responses not yet written, and the approximate
  // maximum of their bytes. Beyond either, the next request stays unread.
  static constexpr std::size_t kPipelineMax = 64;
  static constexpr std::size_t kPipelineBytesMax = std::size_t{64} << 20;

  AppendStream(std::unique_ptr<Call> call, Engine& engine)
      : PipelinedStream(std::move(call), kPipelineMax, kPipelineBytesMax), engine_(engine) {}

  // Passes the request to the engine, or makes the stream fail.
  void HandleRequest(std::uint64_t number) override;
  bool MayRead() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !awaits_turn_; }
  // If a request has failed, the stream ends with that failure, even if the server has also cut the
  // stream.
  grpc::Status ReportEnd() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Passes the request that was read last to the engine. Returns an error if the request is refused
  // before it reaches the engine. `begin` is when the stream began to handle the request.
  absl::Status Apply(std::uint64_t number, SteadyTimePoint begin);
  // Drops request `number`, which failed with `status`, from the pipeline, and stops reading. The
  // stream then ends once all other requests are acknowledged or have failed. It ends with the
  // failure of the lowest number, because the engine can refuse a request while earlier ones still
  // run. `begin` is when the stream began to handle the request.
  void Fail(std::uint64_t number, const absl::Status& status, SteadyTimePoint begin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `store` is what a request names; empty if it names none. The first store that is named becomes
  // the stream's. INVALID_ARGUMENT if a later request names another one.
  absl::Status CheckStore(const std::string& store);
  // The engine calls this once the place in the order of writes is fixed for the append that it got
  // last. Appends that it gets from now on come after that append, so the next request may be read.
  void OnTurn();
  // The engine calls this with the result of request `number`. Queues the response, or makes the
  // stream fail.
  void Acknowledge(std::uint64_t number, SteadyTimePoint begin, std::uint64_t sequence,
                   absl::StatusOr<AppendResult> result);

  Engine& engine_;
  const std::shared_ptr<AppendChain> chain_ = std::make_shared<AppendChain>();
  std::string store_;  // The first store that a message named.

  bool awaits_turn_ ABSL_GUARDED_BY(mutex_) = false;  // Until OnTurn() for the last append.
  // The lowest number of a failed request, and that request's error, which ends the stream.
  std::uint64_t failed_request_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<std::uint64_t>::max();
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // When the stream began to handle request `failed_request_`.
  SteadyTimePoint failure_begin_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_APPEND_STREAM_H_
