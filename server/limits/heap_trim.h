#ifndef SOFTLOOKUP_SERVER_LIMITS_HEAP_TRIM_H_
#define SOFTLOOKUP_SERVER_LIMITS_HEAP_TRIM_H_

#include <cstdint>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// Decides when memory that was freed is to be given back to the system. The allocator keeps it for
// the next request, so one burst of large messages would hold its memory for ever. Times are told.
class TrimSchedule {
 public:
  // The process has `resident_bytes` before it has served anybody.
  explicit TrimSchedule(std::int64_t resident_bytes) : least_bytes_(resident_bytes) {}

  // Whether to trim at `now`, if the process has `resident_bytes`. Not while they are near the
  // least there ever was; less and less often while trimming gives nothing back; at once when they
  // grow.
  bool IsDue(std::int64_t resident_bytes, absl::Time now);
  // It was trimmed, from one to the other.
  void OnTrimmed(std::int64_t before_bytes, std::int64_t after_bytes, absl::Time now);

 private:
  std::int64_t least_bytes_;
  std::int64_t last_bytes_ = 0;  // After the last time.
  absl::Duration pause_;
  absl::Time next_ = absl::InfinitePast();
};

// Looks once a second, on a thread of its own, whether to trim the heap.
class HeapTrim {
 public:
  // `resident_bytes` tells the process's.
  explicit HeapTrim(std::function<std::int64_t()> resident_bytes);
  ~HeapTrim();
  HeapTrim(const HeapTrim&) = delete;
  HeapTrim& operator=(const HeapTrim&) = delete;

 private:
  void Run();

  const std::function<std::int64_t()> resident_bytes_;
  TrimSchedule schedule_;  // The thread's.
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_HEAP_TRIM_H_
