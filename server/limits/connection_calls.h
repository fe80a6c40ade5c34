#ifndef SOFTLOOKUP_SERVER_LIMITS_CONNECTION_CALLS_H_
#define SOFTLOOKUP_SERVER_LIMITS_CONNECTION_CALLS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/steady_time.h"
#include "server/limits/reset_detector.h"

namespace softlookup::server {

// Keeps the calls of each connection within bounds. Call::is_over_limit() tells whether a new call
// exceeds the limit and must be refused. Cuts a connection that is far beyond the limit, or whose
// client cancels calls too fast (ResetDetector). Thread-safe.
//
// HTTP/2 has a limit on the calls in progress, too. But HTTP/2's limit binds a client only once the
// client has acknowledged it, and a hostile client need not do so.
class ConnectionCalls {
 public:
  // Ends the connection of `peer`. `why` completes the sentence "cut the connection of PEER, which
  // ...". ConnectionCalls calls this on the thread that counts a call, without holding mutex_.
  using Cut = std::function<void(const std::string& peer, absl::string_view why)>;
  // Returns the current time, which never goes back.
  using TimeSource = std::function<absl::Time()>;

  explicit ConnectionCalls(std::size_t calls_max, TimeSource time_source = &SteadyNow)
      : calls_max_(calls_max), time_source_(std::move(time_source)) {}

  // Until this is called, no connection is cut. Call it before the first call is counted.
  void set_cut(Cut cut) { cut_ = std::move(cut); }

  // Counts a call of a connection as in progress for the lifetime of this object.
  class Call {
   public:
    // `peer` is the connection's other end, as gRPC names it.
    Call(ConnectionCalls& calls, std::string peer)
        : calls_(calls), peer_(std::move(peer)), is_over_(calls_.Add(peer_)) {}
    ~Call() { calls_.Remove(peer_); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Whether the connection already had calls_max() or more calls in progress when this one began.
    bool is_over_limit() const { return is_over_; }
    const std::string& peer() const { return peer_; }

   private:
    ConnectionCalls& calls_;
    const std::string peer_;
    const bool is_over_;
  };

  std::size_t calls_max() const { return calls_max_; }
  // The number of connections whose counts are kept. Some of them may be closed.
  std::size_t known_connections() const {
    absl::MutexLock lock(&mutex_);
    return connections_.size();
  }

  // Counts a call of `peer` as cancelled before it was answered or, if `is_late`, as late (see
  // ResetDetector). Call this before the call's Call object is destroyed. Cuts the connection if
  // ResetDetector::OnCancel() returns true.
  void OnCancel(const std::string& peer, bool is_late);

 private:
  struct Connection {
    std::size_t in_progress = 0;
    ResetDetector resets;
  };

  // Number of calls in progress at which a connection is cut. It exceeds the limit by more than a
  // quarter, and by more than 64. The margin spares a client that keeps to the limit: the client
  // may begin new calls before the server has seen that earlier ones ended.
  std::size_t far_too_many() const {
    return calls_max_ + std::max<std::size_t>(calls_max_ / 4, 64) + 1;
  }

  // Counts a call of `peer` that begins. Returns whether the connection is now above the limit.
  // Cuts the connection when its count reaches far_too_many().
  bool Add(const std::string& peer);
  void Remove(const std::string& peer);
  // Returns the connection of `peer`, and adds it if it is new. Moves its ResetDetector on to the
  // current time. Calls ForgetIdle() when many connections are kept.
  Connection& Find(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets connections that have no call in progress and whose ResetDetector is idle.
  void ForgetIdle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t calls_max_;
  Cut cut_;  // Null: none was set.
  const TimeSource time_source_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  // At this number of kept connections, Find() calls ForgetIdle().
  std::size_t size_before_sweep_ ABSL_GUARDED_BY(mutex_) = 1024;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_CONNECTION_CALLS_H_
