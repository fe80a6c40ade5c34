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

// Counts the calls of each connection: those in progress, and those that its client takes back.
// HTTP/2 has clients keep to a number in progress, but only once they have acknowledged it, and
// nothing makes them; nor does that number hold whoever opens a call and resets it at once
// (CVE-2023-44487), which costs a few bytes and is work for the server. Thread-safe.
class ConnectionCalls {
 public:
  // Calls of a connection that may be taken back within a second, however few others end.
  static constexpr std::uint64_t kTakenBackMax = 256;
  // With those to which it gives no time: a client may mistake the unit of its deadlines.
  static constexpr std::uint64_t kLateMax = 2048;

  // Ends the connection of `peer`, and says why. Called on the thread that counts.
  using Cut = std::function<void(const std::string& peer, absl::string_view why)>;
  // Never goes back.
  using Clock = std::function<absl::Time()>;

  explicit ConnectionCalls(std::size_t calls_max, Cut cut = nullptr, Clock clock = &SteadyNow)
      : calls_max_(calls_max), cut_(std::move(cut)), clock_(std::move(clock)) {}

  // Before there is any call.
  void set_cut(Cut cut) { cut_ = std::move(cut); }

  // A call of a connection, for as long as it lives.
  class Call {
   public:
    // `peer` names the connection.
    Call(ConnectionCalls& calls, std::string peer)
        : calls_(calls), peer_(std::move(peer)), is_over_(calls_.Add(peer_)) {}
    ~Call() { calls_.Remove(peer_); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Whether the connection had as many calls as it may before this one.
    bool is_over_limit() const { return is_over_; }
    const std::string& peer() const { return peer_; }

   private:
    ConnectionCalls& calls_;
    const std::string peer_;
    const bool is_over_;
  };

  std::size_t calls_max() const { return calls_max_; }
  // How many are remembered.
  std::size_t known_connections() const {
    absl::MutexLock lock(&mutex_);
    return connections_.size();
  }

  // A call of `peer` was taken back before it was answered, or (late) had a deadline that nobody
  // could have kept. The connection is cut if these were too many in a second, and more than half
  // of all that ended in it and the one before.
  void TakeBack(const std::string& peer, bool is_late);

 private:
  struct Counts {
    std::uint64_t taken_back = 0;
    std::uint64_t late = 0;
    std::uint64_t ended = 0;  // All.
  };
  struct Connection {
    std::size_t in_progress = 0;
    absl::Time second = absl::InfinitePast();  // When the current one began.
    Counts current, before;
  };

  // Of a connection, until it is cut: a client that keeps to the limit may end all its calls and
  // begin some before the end of the first ones is seen here.
  std::size_t far_too_many() const {
    return calls_max_ + std::max<std::size_t>(calls_max_ / 4, 64) + 1;
  }

  // Whether there were enough before.
  bool Add(const std::string& peer);
  void Remove(const std::string& peer);
  // The connection of `peer`, in the second of now.
  Connection& Find(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets those that have no call, and had none end within two seconds.
  void ForgetIdle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t calls_max_;
  Cut cut_;
  const Clock clock_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::size_t size_before_sweep_ ABSL_GUARDED_BY(mutex_) = 1024;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_CONNECTION_CALLS_H_
