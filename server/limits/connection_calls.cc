#include "server/limits/connection_calls.h"

#include <algorithm>

namespace softlookup::server {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);

}  // namespace

bool ConnectionCalls::Add(const std::string& peer) {
  std::size_t in_progress = 0;
  {
    absl::MutexLock lock(&mutex_);
    in_progress = ++connections_[peer].in_progress;
  }
  if (in_progress == far_too_many() && cut_) cut_(peer);
  return in_progress > calls_max_;
}

void ConnectionCalls::Remove(const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  const auto found = connections_.find(peer);
  Connection& connection = found->second;
  ++connection.ended;
  if (--connection.in_progress == 0 && connection.taken_back == 0) connections_.erase(found);
}

void ConnectionCalls::TakeBack(const std::string& peer, absl::Time now) {
  {
    absl::MutexLock lock(&mutex_);
    if (connections_.size() >= size_before_sweep_) {
      ForgetIdle(now);
      size_before_sweep_ = std::max<std::size_t>(1024, 2 * connections_.size());
    }
    Connection& connection = connections_[peer];
    if (now >= connection.second + kSecond) {
      connection.second = now;
      connection.taken_back = 0;
      connection.ended_before = connection.ended;
    }
    ++connection.taken_back;
    const std::uint64_t ended = connection.ended - connection.ended_before;
    if (connection.taken_back <= kTakenBackMax || 2 * connection.taken_back <= ended) return;
    connection.second = absl::InfinitePast();
  }
  if (cut_) cut_(peer);
}

void ConnectionCalls::ForgetIdle(absl::Time now) {
  absl::erase_if(connections_, [&](const auto& entry) {
    const Connection& connection = entry.second;
    return connection.in_progress == 0 && now >= connection.second + kSecond;
  });
}

}  // namespace softlookup::server
