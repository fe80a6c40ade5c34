#ifndef SOFTLOOKUP_SERVER_OBSERVABILITY_PROCESS_STATS_H_
#define SOFTLOOKUP_SERVER_OBSERVABILITY_PROCESS_STATS_H_

#include <dirent.h>

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "server/base/file_descriptor.h"

namespace softlookup::server {

// Reads the kernel's figures about this process. Not thread-safe.
class ProcessStats {
 public:
  // Opens the files of /proc that the methods read, so that the methods work even if no descriptor
  // is free.
  ProcessStats();

  // If /proc cannot be read, resident_bytes() and open_fds() are 0, and start_time() is the Unix
  // epoch.
  std::int64_t resident_bytes() const;
  std::int64_t open_fds() const;
  // The process's soft limit on descriptors.
  std::int64_t max_fds() const;
  absl::Duration cpu_time() const;  // In user and system mode.
  absl::Time start_time() const { return start_time_; }

 private:
  const FileDescriptor statm_;
  const std::unique_ptr<DIR, int (*)(DIR*)> descriptors_;
  const absl::Time start_time_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OBSERVABILITY_PROCESS_STATS_H_
