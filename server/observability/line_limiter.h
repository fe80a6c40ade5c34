#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_LINE_LIMITER_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_LINE_LIMITER_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// Limits the lines of one kind per second, so that they cannot flood the server log or the audit
// log. Thread-safe.
class LineLimiter {
 public:
  explicit LineLimiter(std::int64_t lines_per_second_max) : lines_max_(lines_per_second_max) {}

  // Asks whether a line may be written at `now`. Returns nullopt if not. Otherwise returns how many
  // lines were left out since the last one that was written.
  std::optional<std::int64_t> Allow(absl::Time now) {
    absl::MutexLock lock(&mutex_);
    // `now` is before second_ if the clock was set back.
    if (now < second_ || now >= second_ + absl::Seconds(1)) {
      second_ = now;
      lines_ = 0;
    }
    if (lines_ == lines_max_) {
      ++left_out_;
      return std::nullopt;
    }
    ++lines_;
    return std::exchange(left_out_, 0);
  }

  // Returns how many lines were left out since the last one that was written, and resets the count.
  std::int64_t TakeLeftOut() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(left_out_, 0);
  }

 private:
  const std::int64_t lines_max_;
  absl::Mutex mutex_;
  absl::Time second_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // Start of this second.
  std::int64_t lines_ ABSL_GUARDED_BY(mutex_) = 0;  // Lines allowed in this second.
  std::int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_LINE_LIMITER_H_
