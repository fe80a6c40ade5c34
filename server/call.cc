#include "server/call.h"

#include <algorithm>

namespace softlookup::server {

void CallTracker::AddStream(const std::shared_ptr<Stream>& stream) {
  bool drain = false;
  {
    absl::MutexLock lock(&mutex_);
    drain = draining_;
    // Those that have ended go whenever the list has doubled.
    if (streams_.size() >= streams_before_sweep_) {
      streams_.erase(std::remove_if(streams_.begin(), streams_.end(),
                                    [](const auto& other) { return other.expired(); }),
                     streams_.end());
      streams_before_sweep_ = 2 * streams_.size() + 16;
    }
    streams_.push_back(stream);
  }
  if (drain) stream->Drain();
}

void CallTracker::DrainStreams() {
  std::vector<std::weak_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    streams = streams_;
  }
  for (const auto& weak : streams) {
    if (const std::shared_ptr<Stream> stream = weak.lock()) stream->Drain();
  }
}

void CallTracker::WaitUntilQuiet(absl::Duration quiet, absl::Time deadline) {
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ == 0; };
  const auto busy = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ != 0; };
  absl::MutexLock lock(&mutex_);
  while (mutex_.AwaitWithDeadline(absl::Condition(&idle), deadline) &&
         mutex_.AwaitWithTimeout(absl::Condition(&busy), quiet)) {
  }
}

}  // namespace softlookup::server
