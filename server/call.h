#ifndef SOFTLOOKUP_SERVER_CALL_H_
#define SOFTLOOKUP_SERVER_CALL_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/call_observer.h"
#include "server/stall_watch.h"
#include "server/status.h"
#include "server/tenant_limits.h"
#include "server/unsent_answers.h"

namespace softlookup::server {

// A call that may go on for as long as its client likes.
class Stream {
 public:
  virtual ~Stream() = default;
  // Ends the call as soon as nothing of it is in progress. Waiting is not progress.
  virtual void Drain() = 0;
};

// What bounds all calls.
struct CallLimits {
  absl::Duration stall_timeout = absl::InfiniteDuration();
  TenantRates tenant_rates;
};

// Knows which calls are in progress, and what bounds them. Thread-safe.
class CallTracker {
 public:
  // `observer` hears of every call, and must outlive this.
  explicit CallTracker(CallObserver& observer, const CallLimits& limits = {})
      : observer_(observer), stalls_(limits.stall_timeout), tenants_(limits.tenant_rates) {}

  StallWatch& stalls() { return stalls_; }
  TenantLimits& tenants() { return tenants_; }
  UnsentAnswers& unsent_answers() { return unsent_answers_; }

  // A call in progress, for as long as it lives. Whoever answers it says so here before gRPC hears
  // of it.
  class Call {
   public:
    Call(CallTracker& tracker, const CallInfo& info) : tracker_(tracker), info_(info) {
      tracker_.Add(1);
      tracker_.observer_.OnBegin(info_.method);
    }
    ~Call() {
      tracker_.observer_.OnEnd(info_.method);
      tracker_.Add(-1);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // The whole call is answered with `status`. Returns what its caller hears.
    grpc::Status Answer(const absl::Status& status) const {
      observer().OnAnswer(info_, begin_, status);
      return ToGrpcStatus(status, info_.context);
    }
    grpc::Status AnswerLookup(const absl::Status& status, const LookupFacts& facts) const {
      observer().OnLookup(info_, begin_, status, facts);
      return ToGrpcStatus(status, info_.context);
    }
    // A stream ends with `status`, which is not an answer to one of its messages.
    grpc::Status CutStream(const absl::Status& status) const {
      observer().OnStreamCut(status);
      return ToGrpcStatus(status, info_.context);
    }
    // For what happens within the call, such as the messages of a stream.
    CallObserver& observer() const { return tracker_.observer_; }
    const CallInfo& info() const { return info_; }

   private:
    CallTracker& tracker_;
    const CallInfo info_;
    const SteadyTime begin_ = std::chrono::steady_clock::now();
  };

  // Streams are asked to end when the server stops; one that comes later, at once.
  void AddStream(const std::shared_ptr<Stream>& stream);
  // The server stops: from now on is_draining().
  void DrainStreams();
  bool is_draining() const { return draining_; }

  // Waits until no call was in progress for `quiet`, at most until `deadline`.
  void WaitUntilQuiet(absl::Duration quiet, absl::Time deadline);

 private:
  void Add(int calls) {
    absl::MutexLock lock(&mutex_);
    count_ += calls;
  }

  CallObserver& observer_;
  StallWatch stalls_;
  TenantLimits tenants_;
  UnsentAnswers unsent_answers_;

  absl::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> draining_{false};  // Set under mutex_.
  std::vector<std::weak_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::size_t streams_before_sweep_ ABSL_GUARDED_BY(mutex_) = 16;
};

// When the caller stops waiting.
inline absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto deadline = context.deadline();
  return deadline == std::chrono::system_clock::time_point::max() ? absl::InfiniteFuture()
                                                                  : absl::FromChrono(deadline);
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CALL_H_
