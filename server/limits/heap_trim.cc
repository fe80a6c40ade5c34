#include "server/limits/heap_trim.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

namespace softlookup::server {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(1);
// Trimming takes milliseconds, and is worth it for no less.
constexpr std::int64_t kGrowthMin = std::int64_t{32} << 20;

}  // namespace

bool TrimDecision::Wants(std::int64_t resident_bytes) {
  least_bytes_ = std::min(least_bytes_, resident_bytes);
  return resident_bytes - least_bytes_ >= growth_min_;
}

HeapTrim::HeapTrim(std::function<std::int64_t()> resident_bytes)
    : resident_bytes_(std::move(resident_bytes)) {
  thread_ = std::thread([this] { Run(); });
}

HeapTrim::~HeapTrim() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void HeapTrim::Run() {
  TrimDecision decision(kGrowthMin);
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kInterval)) return;
    }
    if (!decision.Wants(resident_bytes_())) continue;
    malloc_trim(0);
    decision.OnTrimmed(resident_bytes_());
  }
}

}  // namespace softlookup::server
