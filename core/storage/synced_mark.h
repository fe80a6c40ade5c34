#ifndef SOFTLOOKUP_CORE_STORAGE_SYNCED_MARK_H_
#define SOFTLOOKUP_CORE_STORAGE_SYNCED_MARK_H_

#include <cstdint>
#include <string>

namespace softlookup {

// How much of a log is known to be on disk, kept in a file of its own beside it: what the log has
// lost of that when it is opened again, it has not lost to a crash. Not thread-safe.
//
// The file is never synced, as it may only be behind: then it tells less, but nothing wrong. For
// the same reason a mark that cannot be written or read counts as 0.
class SyncedMark {
 public:
  // `file` is made by the first Set.
  explicit SyncedMark(std::string file) : file_(std::move(file)) {}
  ~SyncedMark();
  SyncedMark(const SyncedMark&) = delete;
  SyncedMark& operator=(const SyncedMark&) = delete;

  std::uint64_t Read() const;
  // Costs about a microsecond.
  void Set(std::uint64_t mark);

 private:
  const std::string file_;
  int descriptor_ = -1;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_SYNCED_MARK_H_
