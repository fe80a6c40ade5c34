#ifndef SOFTLOOKUP_CORE_STORAGE_SYNCED_MARK_H_
#define SOFTLOOKUP_CORE_STORAGE_SYNCED_MARK_H_

#include <cstdint>
#include <string>

namespace softlookup {

// Keeps the number of the last change of a log that is known to be on disk. The number is in a file
// of its own beside the log. A log that ends before this mark has lost changes that were on disk,
// and is not opened. A crash alone cannot cause that. Not thread-safe.
//
// The mark may be too low. Some losses are then not noticed, but no loss is reported falsely. So
// the file need not be synced, and never is. If a mark cannot be written, the mark before stays. If
// no mark can be read, it counts as 0.
class SyncedMark {
 public:
  // The first Set() creates `file`.
  explicit SyncedMark(std::string file) : file_(std::move(file)) {}
  ~SyncedMark();
  SyncedMark(const SyncedMark&) = delete;
  SyncedMark& operator=(const SyncedMark&) = delete;

  std::uint64_t Read() const;
  // Cheap enough to call after every sync: takes about a microsecond.
  void Set(std::uint64_t mark);

 private:
  const std::string file_;
  int descriptor_ = -1;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_SYNCED_MARK_H_
