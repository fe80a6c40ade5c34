#ifndef SOFTLOOKUP_CORE_STORAGE_DISK_RESERVE_H_
#define SOFTLOOKUP_CORE_STORAGE_DISK_RESERVE_H_

#include <cstdint>
#include <string>

namespace softlookup {

// Keeps some room on the disk in a file of its own, so that deletions can be written when the disk
// is full. The bytes of the file mean nothing. It may be missing. Not thread-safe.
class DiskReserve {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{4} << 20;
  // Make() leaves at least this many bytes of the disk free.
  static constexpr std::uint64_t kBytesLeftMin = 4 * kBytes;

  explicit DiskReserve(std::string file) : file_(std::move(file)) {}

  // Makes the file, unless it is there or the disk has too little room. `free_bytes` is the free
  // room of the disk. An error is ignored: there is no reserve then.
  void Make(std::uint64_t free_bytes);
  // Returns whether the last Make() found or made the file, and Release() was not called since.
  bool is_held() const { return is_held_; }
  // Removes the file, so that its room can be used.
  void Release();

 private:
  const std::string file_;
  bool is_held_ = false;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_DISK_RESERVE_H_
