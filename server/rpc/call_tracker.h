#ifndef SOFTLOOKUP_SERVER_RPC_CALL_TRACKER_H_
#define SOFTLOOKUP_SERVER_RPC_CALL_TRACKER_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// A call, or the wait of a unary lookup for a revision, that may last as long as its client likes.
class Stream {
 public:
  virtual ~Stream() = default;
  // Called when the server stops. Ends the call as soon as none of its work is in progress, unless
  // the call ends by itself. Waiting does not count as work.
  virtual void Drain() = 0;
  // Ends the call if its caller no longer has the right to make it.
  virtual void Recheck() = 0;
};

// Counts the calls in progress, and knows their streams. Thread-safe.
class CallTracker {
 public:
  // A call begins.
  void OnBegin() { Add(1); }
  // A call is over.
  void OnEnd() { Add(-1); }

  // Registers `stream` for DrainStreams() and RecheckStreams(). Drains it at once if the server is
  // already stopping.
  void AddStream(const std::shared_ptr<Stream>& stream);
  // Call this when the server stops. Sets is_draining() and drains all streams.
  void DrainStreams();
  bool is_draining() const { return draining_; }
  // Call this after the auth rules have changed. Rechecks all streams.
  void RecheckStreams();

  // Waits until no call has been in progress for `quiet`, or until `deadline`.
  void WaitUntilQuiet(absl::Duration quiet, absl::Time deadline);

 private:
  void Add(int calls) {
    absl::MutexLock lock(&mutex_);
    count_ += calls;
  }
  // Returns the registered streams that still exist.
  std::vector<std::shared_ptr<Stream>> StreamsOfNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Set under mutex_, so that either DrainStreams() or AddStream() drains a new stream.
  std::atomic<bool> draining_{false};
  std::vector<std::weak_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
  // The size of streams_ at which AddStream() removes the streams that have ended.
  std::size_t streams_before_sweep_ ABSL_GUARDED_BY(mutex_) = 16;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CALL_TRACKER_H_
