#ifndef SOFTLOOKUP_SERVER_LIMITS_CONNECTION_CALLS_H_
#define SOFTLOOKUP_SERVER_LIMITS_CONNECTION_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// Counts the calls of each connection: those in progress, and those that its client takes back.
// HTTP/2 has clients keep to a number in progress, but only once they have acknowledged it, and
// nothing makes them; nor does that number hold whoever opens a call and resets it at once
// (CVE-2023-44487), which costs a few bytes and is work for the server. Times are told.
// Thread-safe.
class ConnectionCalls {
 public:
  // Calls of a connection that may be taken back within a second, however few others it has.
  static constexpr std::uint64_t kTakenBackMax = 512;

  // Ends the connection of `peer`. Called at most once for each second's abuse, on the thread that
  // counts.
  using Cut = std::function<void(const std::string& peer)>;

  explicit ConnectionCalls(std::size_t calls_max, Cut cut = nullptr)
      : calls_max_(calls_max), cut_(std::move(cut)) {}

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

  // A call of `peer` was taken back before it was answered. The connection is cut if, within a
  // second, those were more than kTakenBackMax, and more than half of those that ended.
  void TakeBack(const std::string& peer, absl::Time now);

 private:
  struct Connection {
    std::size_t in_progress = 0;
    std::uint64_t ended = 0;  // Since it is known here.
    // Within the second that began at `second`.
    absl::Time second = absl::InfinitePast();
    std::uint64_t taken_back = 0;
    std::uint64_t ended_before = 0;
  };

  // Of a connection, until it is cut: a client that keeps to the limit may end all its calls and
  // begin some before the end of the first ones is seen here.
  std::size_t far_too_many() const { return calls_max_ + calls_max_ / 4 + 1; }

  // Whether there were enough before.
  bool Add(const std::string& peer);
  void Remove(const std::string& peer);
  // Forgets those that have no call, and had none taken back within the last second.
  void ForgetIdle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t calls_max_;
  Cut cut_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::size_t size_before_sweep_ ABSL_GUARDED_BY(mutex_) = 1024;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_CONNECTION_CALLS_H_
