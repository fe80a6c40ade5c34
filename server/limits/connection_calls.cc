#include "server/limits/connection_calls.h"

#include "core/base/check.h"

namespace softlookup::server {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);

}  // namespace

ConnectionCalls::Connection& ConnectionCalls::Find(const std::string& peer) {
  const absl::Time now = clock_();
  if (connections_.size() >= size_before_sweep_) {
    ForgetIdle(now);
    size_before_sweep_ = std::max<std::size_t>(1024, 2 * connections_.size());
  }
  Connection& connection = connections_[peer];
  if (now >= connection.second + kSecond) {
    connection.before = now < connection.second + 2 * kSecond ? connection.current : Counts{};
    connection.current = {};
    connection.second = now;
  }
  return connection;
}

bool ConnectionCalls::Add(const std::string& peer) {
  std::size_t in_progress = 0;
  {
    absl::MutexLock lock(&mutex_);
    in_progress = ++Find(peer).in_progress;
  }
  // Equal, not above, so that the connection is cut once and not for each further call.
  if (in_progress == far_too_many() && cut_) cut_(peer, "has far too many calls in progress");
  return in_progress > calls_max_;
}

void ConnectionCalls::Remove(const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  Connection& connection = Find(peer);
  SOFTLOOKUP_CHECK(connection.in_progress > 0) << "no call of " << peer << " is in progress";
  --connection.in_progress;
  ++connection.current.ended;
}

void ConnectionCalls::TakeBack(const std::string& peer, bool is_late) {
  {
    absl::MutexLock lock(&mutex_);
    Connection& connection = Find(peer);
    Counts& current = connection.current;
    const Counts& before = connection.before;
    ++(is_late ? current.late : current.taken_back);
    const std::uint64_t unanswered =
        current.taken_back + current.late + before.taken_back + before.late;
    const bool are_few =
        current.taken_back <= kTakenBackMax && current.taken_back + current.late <= kLateMax;
    // The 1 is this call: Remove() counts its end later.
    if (are_few || 2 * unanswered <= current.ended + before.ended + 1) return;
    connection.current = connection.before = {};
  }
  if (cut_) cut_(peer, "opens calls and takes them back");
}

void ConnectionCalls::ForgetIdle(absl::Time now) {
  absl::erase_if(connections_, [&](const auto& entry) {
    const Connection& connection = entry.second;
    return connection.in_progress == 0 && now >= connection.second + 2 * kSecond;
  });
}

}  // namespace softlookup::server
