#ifndef SOFTLOOKUP_SERVER_LIMITS_CONNECTION_CALLS_H_
#define SOFTLOOKUP_SERVER_LIMITS_CONNECTION_CALLS_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::server {

// Counts the calls in progress on each connection. HTTP/2 has its clients keep to such a limit, but
// only once they have acknowledged it, and nothing makes them. Thread-safe.
class ConnectionCalls {
 public:
  explicit ConnectionCalls(std::size_t calls_max) : calls_max_(calls_max) {}

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

 private:
  bool Add(const std::string& peer) {
    absl::MutexLock lock(&mutex_);
    return ++counts_[peer] > calls_max_;
  }
  void Remove(const std::string& peer) {
    absl::MutexLock lock(&mutex_);
    const auto count = counts_.find(peer);
    if (--count->second == 0) counts_.erase(count);
  }

  const std::size_t calls_max_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::size_t> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_CONNECTION_CALLS_H_
