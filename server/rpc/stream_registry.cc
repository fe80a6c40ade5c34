#include "server/rpc/stream_registry.h"

#include <algorithm>
#include <utility>

namespace softlookup::server {

void StreamRegistry::Add(const std::shared_ptr<DrainableStream>& stream) {
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

std::vector<std::shared_ptr<DrainableStream>> StreamRegistry::StreamsOfNow() {
  std::vector<std::shared_ptr<DrainableStream>> streams;
  for (const auto& weak : streams_) {
    if (std::shared_ptr<DrainableStream> stream = weak.lock()) streams.push_back(std::move(stream));
  }
  return streams;
}

void StreamRegistry::Drain() {
  std::vector<std::shared_ptr<DrainableStream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    streams = StreamsOfNow();
  }
  for (const auto& stream : streams) stream->Drain();
}

void StreamRegistry::Recheck() {
  std::vector<std::shared_ptr<DrainableStream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    streams = StreamsOfNow();
  }
  for (const auto& stream : streams) stream->Recheck();
}

}  // namespace softlookup::server
