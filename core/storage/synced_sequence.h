#ifndef SOFTLOOKUP_CORE_STORAGE_SYNCED_SEQUENCE_H_
#define SOFTLOOKUP_CORE_STORAGE_SYNCED_SEQUENCE_H_

#include <cstdint>
#include <string>

namespace softlookup {

// Keeps the sequence number of the last change of a log that is known to be on disk. The number is
// in a file of its own beside the log. A log that ends before this change has lost changes that
// were on disk, and is not opened. A crash alone cannot cause that. Not thread-safe.
//
// The number may be too low. Some losses are then not noticed, but no loss is reported falsely. So
// the file need not be synced, and never is. If a number cannot be written, the number before
// stays. If no number can be read, it counts as 0.
class SyncedSequence {
 public:
  // The first Set() creates `file`.
  explicit SyncedSequence(std::string file) : file_(std::move(file)) {}
  ~SyncedSequence();
  SyncedSequence(const SyncedSequence&) = delete;
  SyncedSequence& operator=(const SyncedSequence&) = delete;

  std::uint64_t Read() const;
  // Cheap enough to call after every sync: takes about a microsecond.
  void Set(std::uint64_t sequence);

 private:
  const std::string file_;
  int descriptor_ = -1;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_SYNCED_SEQUENCE_H_
