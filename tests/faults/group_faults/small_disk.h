#ifndef SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_SMALL_DISK_H_
#define SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_SMALL_DISK_H_

#include <string>

#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {

// Gives this process, and the threads and the children that the calling thread has from now on,
// mounts that nobody else sees, and that end with them. Needs root. Returns whether it has worked.
bool HideMounts();

// A disk of its own, with room for 512 MiB, if HideMounts() has worked. Otherwise a directory on
// the disk of temporary files, which nobody can fill.
class SmallDisk {
 public:
  SmallDisk();
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::string& path() const { return directory_.path(); }
  bool can_be_filled() const { return is_mounted_; }
  // Writes a file that leaves no room.
  void Fill() const;
  // Removes that file.
  void Free() const;

 private:
  std::string filler() const { return directory_.path() + "/filler"; }

  const TemporaryDirectory directory_;
  bool is_mounted_ = false;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_SMALL_DISK_H_
