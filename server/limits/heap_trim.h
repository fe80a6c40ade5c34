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
// the next request, so one burst of large messages would hold its memory for ever.
class TrimDecision {
 public:
  explicit TrimDecision(std::int64_t growth_min) : growth_min_(growth_min) {}

  // Whether to trim, if the process has `resident_bytes`: they have grown enough since the least
  // that was seen after the last time.
  bool Wants(std::int64_t resident_bytes);
  // It was trimmed to this.
  void OnTrimmed(std::int64_t resident_bytes) { least_bytes_ = resident_bytes; }

 private:
  const std::int64_t growth_min_;
  std::int64_t least_bytes_ = 0;
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
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_HEAP_TRIM_H_
