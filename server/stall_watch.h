#ifndef SOFTLOOKUP_SERVER_STALL_WATCH_H_
#define SOFTLOOKUP_SERVER_STALL_WATCH_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// Ends calls whose clients have not taken the message that is being written to them for too long:
// RESOURCE_EXHAUSTED. A call that has nothing to write may be idle for as long as it likes.
// Thread-safe.
class StallWatch {
 public:
  // A client may take `timeout` for each MiB of a message that has begun, and up to a quarter of
  // `timeout` more. Infinite: for ever.
  explicit StallWatch(absl::Duration timeout);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // The messages of one call.
  class Writes {
   public:
    Writes(StallWatch& watch, grpc::CallbackServerContext& context);
    ~Writes() { End(); }
    Writes(const Writes&) = delete;
    Writes& operator=(const Writes&) = delete;

    // A message of `bytes`, or of less than a MiB, is about to be written; it was. One at a time.
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

 private:
  void Run();
  void EndStalled();

  const absl::Duration timeout_;
  absl::Mutex mutex_;
  absl::flat_hash_set<Writes*> writes_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Unless the timeout is infinite.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_STALL_WATCH_H_
