#ifndef SOFTLOOKUP_CORE_STORAGE_SYNCED_MARK_H_
#define SOFTLOOKUP_CORE_STORAGE_SYNCED_MARK_H_

#include <cstdint>
#include <string>

namespace softlookup {

// Keeps the number of the last change of a log that is known to be on disk, in a file of its own
// beside the log. If the log ends before this mark, it has lost changes that were on disk, and is
// not opened. A crash alone cannot cause that. Not thread-safe.
//
// The mark may be too low. Some losses are then not noticed, but none is reported falsely. So the
// file is never synced. If a mark cannot be written, the one before stays. If none can be read, it
// counts as 0.
class SyncedMark {
 public:
  // The first Set() creates `file`.
  explicit SyncedMark(std::string file) : file_(std::move(file)) {}
  ~SyncedMark();
  SyncedMark(const SyncedMark&) = delete;
  SyncedMark& operator=(const SyncedMark&) = delete;

  std::uint64_t Read() const;
  // Takes about a microsecond.
  void Set(std::uint64_t mark);

 private:
  const std::string file_;
  int descriptor_ = -1;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_SYNCED_MARK_H_
