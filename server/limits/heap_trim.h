#ifndef SOFTLOOKUP_SERVER_LIMITS_HEAP_TRIM_H_
#define SOFTLOOKUP_SERVER_LIMITS_HEAP_TRIM_H_

#include <cstdint>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

// Decides when to trim the heap. A trim returns freed bytes to the system. Without trims, the
// allocator would keep the bytes of one burst of large messages for ever. The current time is
// passed in.
class TrimSchedule {
 public:
  // `resident_bytes` are those of the process before it serves its first client.
  explicit TrimSchedule(std::int64_t resident_bytes) : least_bytes_(resident_bytes) {}

  // Returns whether to trim at `now`, when the process has `resident_bytes`. False while they are
  // near the fewest that the process ever had. Otherwise true if they have grown much since the
  // last trim, or once a pause since then is over. The pause doubles with each trim that returns
  // next to nothing, up to a minute.
  bool IsDue(std::int64_t resident_bytes, absl::Time now);
  // Records that a trim at `now` took the resident bytes from `before_bytes` to `after_bytes`.
  void OnTrimmed(std::int64_t before_bytes, std::int64_t after_bytes, absl::Time now);

 private:
  std::int64_t least_bytes_;
  std::int64_t last_bytes_ = 0;  // After the last trim.
  absl::Duration pause_;
  absl::Time next_ = absl::InfinitePast();
};

// Checks once a second, on a thread of its own, whether to trim the heap.
class HeapTrim {
 public:
  // `resident_bytes` returns those of the process. It is called here and on the thread.
  explicit HeapTrim(std::function<std::int64_t()> resident_bytes);
  ~HeapTrim();
  HeapTrim(const HeapTrim&) = delete;
  HeapTrim& operator=(const HeapTrim&) = delete;

 private:
  void Run();

  const std::function<std::int64_t()> resident_bytes_;
  TrimSchedule schedule_;  // Used on the thread only.
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_HEAP_TRIM_H_
