#ifndef SOFTLOOKUP_SERVER_LIMITS_STALL_WATCH_H_
#define SOFTLOOKUP_SERVER_LIMITS_STALL_WATCH_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace softlookup::server {

// Ends calls whose clients need too long to take a message from the server, or to send one. The
// status is RESOURCE_EXHAUSTED. Thread-safe.
class StallWatch {
 public:
  // A client has `timeout` for a message, and as much again for each whole MiB of the size that
  // OnStart() is given. If the client needs longer, its call is ended, with a delay of at most a
  // quarter of `timeout`. If the process did not run for a quarter of `timeout` or longer, that
  // time does not count. With an infinite `timeout`, no call is watched. `what` says in the status
  // message what the client has failed to do, such as "the client has not taken a message". `clock`
  // must outlive this.
  StallWatch(absl::Duration timeout, std::string what, const Clock& clock = Clock::Steady());
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // The waits of one call for its client. At most one of them is in progress at a time.
  class Waits {
   public:
    Waits(StallWatch& watch, grpc::ServerContextBase& context);
    ~Waits() { End(); }
    Waits(const Waits&) = delete;
    Waits& operator=(const Waits&) = delete;

    // Call this when the server begins to wait for the client to take or send a message. `bytes` is
    // the size of the message. With 0, the client has `timeout`, whatever the size.
    void OnStart(std::size_t bytes = 0);
    // Call this when the client has taken or sent the message.
    void OnDone() { since_.store(kNoWait, std::memory_order_relaxed); }
    // Stops watching the call. Must be called at the latest in Rpc::Handler::OnDone() of the call,
    // because the call is deleted after that. The destructor calls this, too.
    void End();

   private:
    friend class StallWatch;
    static constexpr std::int64_t kNoWait = std::numeric_limits<std::int64_t>::max();

    StallWatch& watch_;
    grpc_call* const call_;
    // The time at which the wait began, plus `timeout` for each whole MiB of the message. The call
    // is ended once another `timeout` has passed. In nanoseconds of the watch's clock. kNoWait: no
    // wait is in progress.
    std::atomic<std::int64_t> since_{kNoWait};
  };

  // Ends every watched call that waits for its client now, with UNAVAILABLE and the message `why`.
  void EndAll(const std::string& why);

 private:
  void Run();
  void EndStalled();
  // Lets the waits in progress take `time` longer. The process did not run for that time: it was
  // stopped, or its machine paused. Clients may have sent bytes meanwhile that the server has not
  // read yet, so they are not to blame.
  void Forgive(absl::Duration time);
  // Ends the waits whose since_ is at most `before`. Returns their calls, with a reference to each.
  // The caller must drop these references.
  std::vector<grpc_call*> TakeWaiting(std::int64_t before);
  std::int64_t Now() const { return absl::ToUnixNanos(clock_.Now()); }

  const absl::Duration timeout_;
  const std::string what_;
  const Clock& clock_;
  absl::Mutex mutex_;
  absl::flat_hash_set<Waits*> waits_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Not started if the timeout is infinite.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_STALL_WATCH_H_
