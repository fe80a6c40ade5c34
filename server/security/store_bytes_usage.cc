#include "server/security/store_bytes_usage.h"

namespace softlookup::server {

bool StoreBytesUsage::NeedsCount(absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  return now - counted_ >= absl::Seconds(1);
}

void StoreBytesUsage::Set(std::int64_t bytes, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  bytes_ = bytes;
  counted_ = now;
}

bool StoreBytesUsage::TryGrow(std::int64_t growth, std::int64_t limit) {
  absl::MutexLock lock(&mutex_);
  if (bytes_ + growth > limit) return false;
  bytes_ += growth;
  return true;
}

}  // namespace softlookup::server
