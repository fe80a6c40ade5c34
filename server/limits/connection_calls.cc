#include "server/limits/connection_calls.h"

#include "core/base/check.h"

namespace softlookup::server {

ConnectionCalls::Connection& ConnectionCalls::Find(const std::string& peer) {
  const absl::Time now = time_source_();
  if (connections_.size() >= size_before_sweep_) {
    ForgetIdle(now);
    size_before_sweep_ = std::max<std::size_t>(1024, 2 * connections_.size());
  }
  Connection& connection = connections_[peer];
  connection.resets.MoveTo(now);
  return connection;
}

bool ConnectionCalls::Add(const std::string& peer) {
  std::size_t in_progress = 0;
  {
    absl::MutexLock lock(&mutex_);
    in_progress = ++Find(peer).in_progress;
  }
  // Compares for equality, so that the connection is cut once, and not again for each further call.
  if (in_progress == far_too_many() && cut_) cut_(peer, "has far too many calls in progress");
  return in_progress > calls_max_;
}

void ConnectionCalls::Remove(const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  Connection& connection = Find(peer);
  SOFTLOOKUP_CHECK(connection.in_progress > 0) << "no call of " << peer << " is in progress";
  --connection.in_progress;
  connection.resets.OnEnd();
}

void ConnectionCalls::OnCancel(const std::string& peer, bool is_late) {
  {
    absl::MutexLock lock(&mutex_);
    if (!Find(peer).resets.OnCancel(is_late)) return;
  }
  if (cut_) cut_(peer, "opens calls and cancels them");
}

void ConnectionCalls::ForgetIdle(absl::Time now) {
  absl::erase_if(connections_, [&](const auto& entry) {
    const Connection& connection = entry.second;
    return connection.in_progress == 0 && connection.resets.IsIdle(now);
  });
}

}  // namespace softlookup::server
