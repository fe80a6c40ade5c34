#ifndef SOFTLOOKUP_SERVER_RPC_CALL_COUNTER_H_
#define SOFTLOOKUP_SERVER_RPC_CALL_COUNTER_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// Counts the calls in progress, so that a server that stops can wait for their end. Thread-safe.
class CallCounter {
 public:
  // A call begins.
  void OnBegin() { Add(1); }
  // A call is over.
  void OnEnd() { Add(-1); }

  // Waits until no call has been in progress for a time of length `quiet`, which begins at the
  // earliest now. Returns at `deadline` in any case.
  void WaitUntilQuiet(absl::Duration quiet, absl::Time deadline);

 private:
  void Add(int calls) {
    absl::MutexLock lock(&mutex_);
    count_ += calls;
  }

  absl::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_CALL_COUNTER_H_
