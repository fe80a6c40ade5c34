#include "server/rpc/stream_registry.h"

#include <vector>

namespace softlookup::server {

void StreamRegistry::Add(const std::shared_ptr<DrainableStream>& stream) {
  bool drain = false;
  {
    absl::MutexLock lock(&mutex_);
    drain = draining_;
    streams_.Add(stream);
  }
  if (drain) stream->Drain();
}

void StreamRegistry::Drain() {
  std::vector<std::shared_ptr<DrainableStream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    streams = streams_.Living();
  }
  for (const auto& stream : streams) stream->Drain();
}

void StreamRegistry::Recheck() {
  std::vector<std::shared_ptr<DrainableStream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    streams = streams_.Living();
  }
  for (const auto& stream : streams) stream->Recheck();
}

}  // namespace softlookup::server
