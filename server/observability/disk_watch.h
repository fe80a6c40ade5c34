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

// The space of the disk that a directory is on.
struct DiskSpace {
  std::string directory;         // The directory's label in /metrics.
  std::uint64_t free_bytes = 0;  // Bytes that this process may still write.
  std::uint64_t size_bytes = 0;
};

// Returns the space of the disk that the directory at `path` is on. `directory` is its label.
// Returns nullopt if the directory does not exist or cannot be read.
std::optional<DiskSpace> ReadDiskSpace(std::string directory, const std::string& path);

// Figures about the disks that a server writes to.
struct DiskStats {
  std::vector<DiskSpace> spaces;
  // When the newest backup was begun. The Unix epoch: there is no backup. Nullopt: the server has
  // no directory for backups, or that directory cannot be read.
  std::optional<absl::Time> newest_backup;
};

// Reads figures of disks on a thread of its own. So a disk that does not answer delays only that
// thread. Thread-safe.
class DiskWatch {
 public:
  using Read = std::function<DiskStats()>;

  static constexpr absl::Duration kInterval = absl::Seconds(10);
  static constexpr absl::Duration kStaleAfter = absl::Seconds(120);

  // Calls `read` on the thread: at once, after each ReadSoon(), and kInterval after `read` last
  // returned. `read` must own all that it uses, because a call of `read` that hangs outlives the
  // DiskWatch. `clock` measures the age of the figures, and must outlive this.
  explicit DiskWatch(Read read, const Clock& clock = Clock::Steady());
  // Waits up to a second for a call of `read` in progress. If the call does not return in that
  // time, its thread is left running.
  ~DiskWatch();
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;

  // Has the thread read the figures as soon as it can. Does not wait for that.
  void ReadSoon();
  // Returns the figures that were read last. Returns empty ones before the first read has ended,
  // and once the last figures are older than kStaleAfter.
  DiskStats latest() const;

 private:
  // Owned by this and by the thread, which may outlive this.
  struct State {
    absl::Mutex mutex;
    bool wanted ABSL_GUARDED_BY(mutex) = true;  // Whether to read at once.
    bool stopping ABSL_GUARDED_BY(mutex) = false;
    bool ended ABSL_GUARDED_BY(mutex) = false;  // Whether the thread is done.
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
