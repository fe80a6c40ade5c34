#ifndef SOFTLOOKUP_SERVER_APPEND_STREAM_H_
#define SOFTLOOKUP_SERVER_APPEND_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/call.h"
#include "server/pipeline_budget.h"
#include "softlookup/engine.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::server {

// One StreamAppend call. Requests are applied in the order in which they come; the next is read
// while earlier ones wait for their acknowledgement, up to a limit.
//
// It owns itself until the call is over; a callback of the engine that is still running then shares
// it.
class AppendStream final : public grpc::ServerBidiReactor<v1::AppendRequest, v1::AppendResponse>,
                           public Stream,
                           public std::enable_shared_from_this<AppendStream> {
 public:
  static AppendStream* Start(CallTracker& calls, const CallInfo& info, Engine& engine);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override {}
  void OnDone() override {
    writes_.End();
    self_.reset();
  }
  void Drain() override;

 private:
  // Appends in progress and responses not yet written.
  static constexpr std::size_t kPipelineMax = 64;
  static constexpr std::size_t kPipelineBytesMax = std::size_t{64} << 20;

  struct Acknowledgement {
    v1::AppendResponse response;
    std::size_t bytes = 0;
  };

  AppendStream(CallTracker& calls, const CallInfo& info, Engine& engine)
      : call_(calls, info),
        tenants_(calls.tenants()),
        engine_(engine),
        deadline_(DeadlineOf(info.context)),
        writes_(calls.stalls(), info.context),
        budget_(kPipelineMax, kPipelineBytesMax) {}

  // Hands request_, which came at `begin`, to the engine, or says what is wrong with it.
  absl::Status Apply(SteadyTime begin);
  // The append has its turn: the next request may be read.
  void OnTurn();
  void Acknowledge(SteadyTime begin, std::uint64_t sequence, std::size_t request_bytes,
                   absl::StatusOr<AppendResult> result);
  // Starts whatever can go on. Takes the lock; operations are started without it.
  void Proceed();

  std::shared_ptr<AppendStream> self_;
  const CallTracker::Call call_;
  TenantLimits& tenants_;
  Engine& engine_;
  const absl::Time deadline_;
  StallWatch::Writes writes_;
  const std::shared_ptr<AppendChain> chain_ = std::make_shared<AppendChain>();
  std::string store_;          // Of the first message. Reader only.
  v1::AppendRequest request_;  // Reader only.
  Acknowledgement response_;   // Writer only.

  absl::Mutex mutex_;
  PipelineBudget budget_ ABSL_GUARDED_BY(mutex_);
  std::deque<Acknowledgement> responses_ ABSL_GUARDED_BY(mutex_);
  bool awaits_turn_ ABSL_GUARDED_BY(mutex_) = false;  // The append that was read last.
  int unacknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  bool applying_ ABSL_GUARDED_BY(mutex_) = false;  // A request is on its way to the engine.
  bool reads_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;    // Nobody reads the responses.
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;  // The server stops.
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the first request that failed; it ends the stream.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  SteadyTime failure_begin_ ABSL_GUARDED_BY(mutex_);  // When it came.
  bool append_failed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_APPEND_STREAM_H_
