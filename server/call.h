#ifndef SOFTLOOKUP_SERVER_CALL_H_
#define SOFTLOOKUP_SERVER_CALL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// A call that may go on for as long as its client likes.
class Stream {
 public:
  virtual ~Stream() = default;
  // Ends the call as soon as nothing of it is in progress. Waiting is not progress.
  virtual void Drain() = 0;
};

// Knows which calls are in progress. Thread-safe.
class CallTracker {
 public:
  // A call in progress, for as long as it lives.
  class Call {
   public:
    explicit Call(CallTracker& tracker) : tracker_(tracker) { tracker_.Add(1); }
    ~Call() { tracker_.Add(-1); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    CallTracker& tracker_;
  };

  // Streams are asked to end when the server stops; one that comes later, at once.
  void AddStream(const std::shared_ptr<Stream>& stream);
  void DrainStreams();

  // Waits until no call was in progress for `quiet`, at most until `deadline`.
  void WaitUntilQuiet(absl::Duration quiet, absl::Time deadline);

 private:
  void Add(int calls) {
    absl::MutexLock lock(&mutex_);
    count_ += calls;
  }

  absl::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
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
