#ifndef SOFTLOOKUP_SERVER_LOOKUP_STREAM_H_
#define SOFTLOOKUP_SERVER_LOOKUP_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "server/call.h"
#include "server/codec.h"
#include "server/pipeline_budget.h"
#include "softlookup/engine.h"
#include "softlookup/v1/lookup.pb.h"

namespace softlookup::server {

// One StreamLookup call. Several lookups run at once; their responses leave in the order of the
// requests. A failed one is a response with `error`.
//
// It owns itself until the call is over; a callback of the engine that is still running then shares
// it.
class LookupStream final : public grpc::ServerBidiReactor<v1::LookupRequest, v1::LookupResponse>,
                           public Stream,
                           public std::enable_shared_from_this<LookupStream> {
 public:
  static LookupStream* Start(CallTracker& calls, const CallInfo& info, Engine& engine);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override {
    writes_.End();
    self_.reset();
  }
  void Drain() override;

 private:
  // Lookups that are read, running or waiting to be written.
  static constexpr std::size_t kPipelineMax = 16;
  // What a hundred streams hold whose clients do not read is still little.
  static constexpr std::size_t kPipelineBytesMax = std::size_t{512} << 10;

  LookupStream(CallTracker& calls, const CallInfo& info, Engine& engine)
      : call_(calls, info),
        tenants_(calls.tenants()),
        engine_(engine),
        deadline_(DeadlineOf(info.context)),
        writes_(calls.stalls(), info.context),
        budget_(kPipelineMax, kPipelineBytesMax) {}

  // A lookup from its request to its response.
  struct Slot {
    v1::LookupRequest request;
    SteadyTime begin;   // When it came.
    std::string store;  // The request's, or the stream's.
    DecodedLookup decoded;
    LookupReport report;
    v1::LookupResponse response;
    std::shared_ptr<CancelToken> cancel;
    std::size_t request_bytes = 0;   // Once it is read.
    std::size_t response_bytes = 0;  // Once it is answered.
    bool answered = false;
  };

  void Look(Slot& slot);
  void Answer(Slot& slot, absl::StatusOr<LookupResult> result);
  void Proceed();
  void PopFront() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::shared_ptr<LookupStream> self_;
  const CallTracker::Call call_;
  TenantLimits& tenants_;
  Engine& engine_;
  const absl::Time deadline_;
  StallWatch::Writes writes_;
  std::string store_;  // Of the first message. Reader only.

  absl::Mutex mutex_;
  // In request order. The last is being read into while reading_; the first is being written while
  // writing_.
  std::deque<std::unique_ptr<Slot>> slots_ ABSL_GUARDED_BY(mutex_);
  PipelineBudget budget_ ABSL_GUARDED_BY(mutex_);  // Of what is read in slots_.
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool reads_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;    // Nobody reads the responses.
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;  // The server stops.
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LOOKUP_STREAM_H_
