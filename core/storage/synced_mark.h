#ifndef SOFTLOOKUP_CORE_STORAGE_SYNCED_MARK_H_
#define SOFTLOOKUP_CORE_STORAGE_SYNCED_MARK_H_

#include <cstdint>
#include <string>

namespace softlookup {

// Keeps the number of the last change of a log that is known to be on disk, in a file of its own
// beside the log. If the log ends before this mark, changes that were on disk are missing. A
// crash alone cannot cause that. Not thread-safe.
//
// The file may be behind: it then shows fewer losses, but no false ones. So it is never synced. A
// mark that cannot be written stays as it was, and one that cannot be read counts as 0.
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
