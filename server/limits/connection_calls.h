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

namespace softlookup::server {

// Counts, for each connection, the calls in progress and the calls that its client takes back. To
// take a call back is to cancel it before it is answered. Call::is_over_limit() says that a call is
// beyond the limit, so that it can be refused. Cuts a connection whose calls in progress are far
// beyond the limit, or whose client takes too many calls back.
//
// HTTP/2 itself limits the calls in progress on a connection. But that limit holds only once the
// client has acknowledged it, which the client need not do. Nor does it stop a client that opens
// calls and resets them at once (CVE-2023-44487), since a reset call is no longer in progress. Such
// a call costs the client a few bytes, but is work for the server. Thread-safe.
class ConnectionCalls {
 public:
  // Number of calls that a client may take back in a second, on one connection, without being cut,
  // whatever share of its calls they are.
  static constexpr std::uint64_t kTakenBackMax = 256;
  // Number of taken-back and late calls together that a client may make in a second, on one
  // connection, without being cut. A call is late if its client gave it too little time for any
  // server to answer. The number is above kTakenBackMax because a client may use a wrong unit for
  // its deadlines.
  static constexpr std::uint64_t kLateMax = 2048;

  // Ends the connection of `peer`, for the reason `why`, which completes "the connection of `peer`,
  // which ...". Called on the thread that counts a call, without mutex_.
  using Cut = std::function<void(const std::string& peer, absl::string_view why)>;
  // Returns a time that never goes back.
  using Clock = std::function<absl::Time()>;

  explicit ConnectionCalls(std::size_t calls_max, Cut cut = nullptr, Clock clock = &SteadyNow)
      : calls_max_(calls_max), cut_(std::move(cut)), clock_(std::move(clock)) {}

  // Call this before the first call is counted.
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

  // Counts a call of `peer` that was taken back or, if `is_late`, a late call. Must be called
  // before the call's Call object is destroyed. Cuts the connection if two conditions hold. This
  // second's taken-back calls exceed kTakenBackMax, or, together with this second's late calls,
  // exceed kLateMax. And such calls are more than half of all calls that ended in this second and
  // the previous one.
  void TakeBack(const std::string& peer, bool is_late);

 private:
  struct Counts {
    std::uint64_t taken_back = 0;
    std::uint64_t late = 0;
    std::uint64_t ended = 0;  // All calls that ended, answered or not.
  };
  struct Connection {
    std::size_t in_progress = 0;
    absl::Time second = absl::InfinitePast();  // Start of the current second.
    Counts current, before;                    // In the current second and in the previous one.
  };

  // Number of calls in progress at which a connection is cut: the limit and a quarter more, at
  // least 64 more. A client that keeps to the limit can exceed it in the server's count. It may end
  // calls and begin others before the server sees that the first ones ended.
  std::size_t far_too_many() const {
    return calls_max_ + std::max<std::size_t>(calls_max_ / 4, 64) + 1;
  }

  // Counts a call of `peer` that begins. Returns whether the connection is now above the limit.
  // Cuts the connection when its count reaches far_too_many().
  bool Add(const std::string& peer);
  void Remove(const std::string& peer);
  // Returns the connection of `peer`, and adds it if it is new. First moves its counts on to the
  // current second.
  Connection& Find(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets connections that have no call in progress and whose counts are too old to matter: their
  // last second began two seconds ago or earlier.
  void ForgetIdle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t calls_max_;
  Cut cut_;
  const Clock clock_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  // Number of connections from which on Find() calls ForgetIdle().
  std::size_t size_before_sweep_ ABSL_GUARDED_BY(mutex_) = 1024;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_CONNECTION_CALLS_H_
