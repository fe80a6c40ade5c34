#include "server/limits/heap_trim.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "core/base/steady_time.h"

namespace softlookup::server {
namespace {

// Time between checks, and the shortest pause after a trim.
constexpr absl::Duration kInterval = absl::Seconds(1);
constexpr absl::Duration kPauseMax = absl::Seconds(64);  // Longest pause after a trim.
// Smallest growth in resident bytes that is worth a trim. A trim takes milliseconds.
constexpr std::int64_t kGrowthMin = std::int64_t{32} << 20;
// A trim that returns fewer bytes than this counts as one that found nothing to return.
constexpr std::int64_t kGainMin = std::int64_t{4} << 20;

}  // namespace

bool TrimSchedule::IsDue(std::int64_t resident_bytes, absl::Time now) {
  least_bytes_ = std::min(least_bytes_, resident_bytes);
  if (resident_bytes - least_bytes_ < kGrowthMin) return false;
  return now >= next_paced_trim_ || resident_bytes - bytes_after_last_trim_ >= kGrowthMin;
}

void TrimSchedule::OnTrimmed(std::int64_t before_bytes, std::int64_t after_bytes, absl::Time now) {
  const bool has_grown = before_bytes - bytes_after_last_trim_ >= kGrowthMin;
  const bool has_gained = before_bytes - after_bytes >= kGainMin;
  pause_ = has_grown || has_gained ? kInterval : std::min(2 * pause_, kPauseMax);
  bytes_after_last_trim_ = after_bytes;
  next_paced_trim_ = now + pause_;
}

HeapTrim::HeapTrim(std::function<std::int64_t()> resident_bytes)
    : resident_bytes_(std::move(resident_bytes)), schedule_(resident_bytes_()) {
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
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kInterval)) return;
    }
    const std::int64_t before_bytes = resident_bytes_();
    if (!schedule_.IsDue(before_bytes, SteadyNow())) continue;
    malloc_trim(0);
    schedule_.OnTrimmed(before_bytes, resident_bytes_(), SteadyNow());
  }
}

}  // namespace softlookup::server
