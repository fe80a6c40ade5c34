#ifndef SOFTLOOKUP_SERVER_LIMITS_STALL_WATCH_H_
#define SOFTLOOKUP_SERVER_LIMITS_STALL_WATCH_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// Ends calls whose clients keep the server waiting for too long, to take a message or to send one:
// RESOURCE_EXHAUSTED. Thread-safe.
class StallWatch {
 public:
  // A client may take `timeout` for each MiB of a message that has begun, and up to a quarter of
  // `timeout` more. Infinite: for ever. `what` is what its call is ended for, such as "the client
  // has not taken a message".
  StallWatch(absl::Duration timeout, std::string what);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // Those of one call.
  class Waits {
   public:
    Waits(StallWatch& watch, grpc::ServerContextBase& context);
    ~Waits() { End(); }
    Waits(const Waits&) = delete;
    Waits& operator=(const Waits&) = delete;

    // The server waits for a message of `bytes`, or of less than a MiB, to be taken or to be sent;
    // it was. One at a time.
    void OnStart(std::size_t bytes = 0);
    void OnDone() { since_.store(0, std::memory_order_relaxed); }
    // The call is over: in its OnDone at the latest, after which gRPC forgets it.
    void End();

   private:
    friend class StallWatch;

    StallWatch& watch_;
    grpc_call* const call_;
    // When it may have begun, seen from its end: nanoseconds of the steady clock; 0: none is.
    std::atomic<std::int64_t> since_{0};
  };

  // Ends every call that waits at this moment: UNAVAILABLE, with `why`.
  void EndAll(const std::string& why);

 private:
  void Run();
  void EndStalled();
  // Takes those out that have waited since `before`, at most, and keeps their calls.
  std::vector<grpc_call*> TakeWaiting(std::int64_t before);

  const absl::Duration timeout_;
  const std::string what_;
  absl::Mutex mutex_;
  absl::flat_hash_set<Waits*> waits_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Unless the timeout is infinite.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_STALL_WATCH_H_
