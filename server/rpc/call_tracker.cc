#include "server/rpc/call_tracker.h"

#include <algorithm>
#include <utility>

namespace softlookup::server {

void CallTracker::AddStream(const std::shared_ptr<Stream>& stream) {
  bool drain = false;
  {
    absl::MutexLock lock(&mutex_);
    drain = draining_;
    // Removes the streams that have ended whenever the list has about doubled since the last time.
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

std::vector<std::shared_ptr<Stream>> CallTracker::StreamsOfNow() {
  std::vector<std::shared_ptr<Stream>> streams;
  for (const auto& weak : streams_) {
    if (std::shared_ptr<Stream> stream = weak.lock()) streams.push_back(std::move(stream));
  }
  return streams;
}

void CallTracker::DrainStreams() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    streams = StreamsOfNow();
  }
  for (const auto& stream : streams) stream->Drain();
}

void CallTracker::RecheckStreams() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    streams = StreamsOfNow();
  }
  for (const auto& stream : streams) stream->Recheck();
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
