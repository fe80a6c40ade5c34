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
// passed in. Not thread-safe.
class TrimSchedule {
 public:
  // `resident_bytes` is what the process has before it serves its first client.
  explicit TrimSchedule(std::int64_t resident_bytes) : least_bytes_(resident_bytes) {}

  // Returns whether to trim at `now`, when the process has `resident_bytes`. Returns false if
  // `resident_bytes` is less than 32 MiB above its minimum so far. Otherwise returns true if it has
  // grown by 32 MiB or more since the last trim, or if a pause after that trim is over. The pause
  // is 1 second after a trim that followed such growth or returned 4 MiB or more. After any other
  // trim, the pause is twice the previous one, at most 64 seconds.
  bool IsDue(std::int64_t resident_bytes, absl::Time now);
  // Records that a trim at `now` took the resident bytes from `before_bytes` to `after_bytes`.
  void OnTrimmed(std::int64_t before_bytes, std::int64_t after_bytes, absl::Time now);

 private:
  std::int64_t least_bytes_;                // Fewest resident bytes so far.
  std::int64_t bytes_after_last_trim_ = 0;  // Resident bytes after the last trim. 0: none yet.
  absl::Duration pause_;                    // From the last trim to next_paced_trim_.
  absl::Time next_paced_trim_ = absl::InfinitePast();  // Until then, only growth makes a trim due.
};

// Checks once a second, on a thread of its own, whether to trim the heap.
class HeapTrim {
 public:
  // `resident_bytes` returns the resident bytes of the process. The constructor calls it once.
  // After that, only the thread calls it.
  explicit HeapTrim(std::function<std::int64_t()> resident_bytes);
  ~HeapTrim();
  HeapTrim(const HeapTrim&) = delete;
  HeapTrim& operator=(const HeapTrim&) = delete;

 private:
  void Run();

  const std::function<std::int64_t()> resident_bytes_;
  TrimSchedule schedule_;  // Used only on the thread once it runs.
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_HEAP_TRIM_H_
