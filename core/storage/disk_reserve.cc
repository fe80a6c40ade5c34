#include "core/storage/disk_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace softlookup {
namespace {

constexpr std::uint64_t kBytesOfStatBlock = 512;

// Returns whether `file` has kBytes, and the disk has allocated all of them.
bool HoldsRoom(const std::string& file) {
  struct stat status {};
  return stat(file.c_str(), &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) == DiskReserve::kBytes &&
         static_cast<std::uint64_t>(status.st_blocks) * kBytesOfStatBlock >= DiskReserve::kBytes;
}

}  // namespace

void DiskReserve::Make(std::uint64_t free_bytes) {
  is_held_ = HoldsRoom(file_);
  if (is_held_) return;
  Release();
  if (free_bytes < kBytes + kBytesLeftMin) return;
  const int descriptor = open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) return;
  is_held_ = posix_fallocate(descriptor, 0, kBytes) == 0;
  close(descriptor);
  if (!is_held_) Release();
}

void DiskReserve::Release() {
  unlink(file_.c_str());
  is_held_ = false;
}

}  // namespace softlookup
