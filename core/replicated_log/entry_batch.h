#ifndef SOFTLOOKUP_CORE_REPLICATED_LOG_ENTRY_BATCH_H_
#define SOFTLOOKUP_CORE_REPLICATED_LOG_ENTRY_BATCH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/storage/coding.h"
#include "core/storage/commit_log.h"

namespace softlookup {

// Changes to records as the bytes of an entry (docs/storage_format.md).
class EntryBatch : public LogBatch {
 public:
  EntryBatch();

  void Put(absl::string_view key, absl::string_view value) override;
  void Delete(absl::string_view key) override;
  void DeleteRange(absl::string_view begin, absl::string_view end) override;
  void FreeDiskOf(absl::string_view begin, absl::string_view end) override;

  bool empty() const { return empty_; }
  // Returns the bytes. The batch must not be used afterwards.
  std::string Take() { return encoder_.Take(); }

 private:
  Encoder encoder_;
  bool empty_ = true;
};

// Adds the changes of an entry to `batch`. DATA_LOSS if `entry` is malformed, or would change what
// a replica keeps for itself (KeysOfReplicas()). `batch` may then have some of the changes.
absl::Status AddChanges(absl::string_view entry, LogBatch& batch);

// Returns whether an entry deletes a range. False if it is malformed.
bool DeletesRange(absl::string_view entry);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATED_LOG_ENTRY_BATCH_H_
