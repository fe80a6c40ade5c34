#include "tests/faults/group_faults/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

namespace softlookup::testing {
namespace {

bool mounts_are_hidden = false;

}  // namespace

bool HideMounts() {
  if (!mounts_are_hidden) {
    mounts_are_hidden =
        unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }
  return mounts_are_hidden;
}

SmallDisk::SmallDisk() {
  is_mounted_ = HideMounts() && mount("tmpfs", path().c_str(), "tmpfs", 0, "size=512m") == 0;
}

SmallDisk::~SmallDisk() {
  if (is_mounted_) umount2(path().c_str(), MNT_DETACH);
}

void SmallDisk::Fill() const {
  const int file = open(filler().c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  std::vector<char> bytes(1 << 20);
  for (std::size_t size = bytes.size(); size > 0;) {
    if (write(file, bytes.data(), size) <= 0) size /= 2;
  }
  close(file);
}

void SmallDisk::Free() const {
  std::error_code ignored;
  std::filesystem::remove(filler(), ignored);
}

}  // namespace softlookup::testing
