#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_DISK_WATCH_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_DISK_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace softlookup::server {

// The disk that a directory is on.
struct DiskSpace {
  std::string directory;         // What /metrics calls the directory.
  std::uint64_t free_bytes = 0;  // Those that this process may still write.
  std::uint64_t size_bytes = 0;
};

// Empty if the directory at `path` is not there or cannot be read.
std::optional<DiskSpace> ReadDiskSpace(std::string directory, const std::string& path);

// What a server's disks hold.
struct DiskStats {
  std::vector<DiskSpace> spaces;
  // When the newest backup was made, and the epoch if there is none. Empty: the server makes none,
  // or their directory cannot be read.
  std::optional<absl::Time> newest_backup;
};

// Reads figures of disks on a thread of its own. So a disk that does not answer holds nobody up.
// Thread-safe.
class DiskWatch {
 public:
  using Read = std::function<DiskStats()>;

  static constexpr absl::Duration kInterval = absl::Seconds(30);
  static constexpr absl::Duration kStaleAfter = absl::Seconds(120);

  // Calls `read` on the thread: now, at each ReadSoon(), and kInterval after it last returned. It
  // must own all that it uses, as a call that hangs outlives this. `clock` tells the age of
  // figures.
  explicit DiskWatch(Read read, const Clock& clock = Clock::Steady());
  // Waits a second for a call of `read` that is under way, and then leaves it alone.
  ~DiskWatch();
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;

  void ReadSoon();
  // Returns the figures that were read last. None before the first have been read, and none once
  // they are older than kStaleAfter.
  DiskStats latest() const;

 private:
  struct State {
    absl::Mutex mutex;
    bool wanted ABSL_GUARDED_BY(mutex) = true;
    bool stopping ABSL_GUARDED_BY(mutex) = false;
    bool ended ABSL_GUARDED_BY(mutex) = false;
    DiskStats stats ABSL_GUARDED_BY(mutex);
    absl::Time read_time ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  };

  static void Run(State& state, const Read& read, const Clock& clock);

  const Clock& clock_;
  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_DISK_WATCH_H_
