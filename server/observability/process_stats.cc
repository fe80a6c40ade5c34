#include "server/observability/process_stats.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

namespace softlookup::server {
namespace {

// Returns the time when the machine was booted. Does not read /proc/stat, which a systemd service
// with ProcSubset=pid cannot see.
absl::Time BootTime() {
  timespec since{};
  clock_gettime(CLOCK_BOOTTIME, &since);
  return absl::Now() - absl::DurationFromTimespec(since);
}

absl::Time StartTime() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The second field, the program's name in brackets, can hold anything. So the fields are counted
  // from its end.
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(text).substr(text.rfind(')') + 1), ' ', absl::SkipEmpty());
  // Field 22 of the file, in clock ticks since the boot. fields[0] is field 3.
  constexpr std::size_t kStartTime = 22 - 3;
  std::int64_t ticks = 0;
  if (fields.size() <= kStartTime || !absl::SimpleAtoi(fields[kStartTime], &ticks)) {
    return absl::UnixEpoch();
  }
  return BootTime() + absl::Seconds(1) * ticks / sysconf(_SC_CLK_TCK);
}

}  // namespace

ProcessStats::ProcessStats()
    : statm_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)),
      descriptors_(opendir("/proc/self/fd"), &closedir),
      start_time_(StartTime()) {}

std::int64_t ProcessStats::resident_bytes() const {
  std::array<char, 256> text;
  const ssize_t count = pread(statm_.get(), text.data(), text.size(), 0);
  if (count <= 0) return 0;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(text.data(), static_cast<std::size_t>(count)), ' ');
  std::int64_t pages = 0;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[1], &pages)) return 0;
  return pages * sysconf(_SC_PAGESIZE);
}

std::int64_t ProcessStats::open_fds() const {
  if (descriptors_ == nullptr) return 0;
  std::int64_t count = 0;
  rewinddir(descriptors_.get());
  while (const dirent* entry = readdir(descriptors_.get())) count += entry->d_name[0] != '.';
  return count;
}

std::int64_t ProcessStats::max_fds() const {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<std::int64_t>(limit.rlim_cur);
}

absl::Duration ProcessStats::cpu_time() const {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

}  // namespace softlookup::server
