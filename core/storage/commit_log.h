#ifndef SOFTLOOKUP_CORE_STORAGE_COMMIT_LOG_H_
#define SOFTLOOKUP_CORE_STORAGE_COMMIT_LOG_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace softlookup {

// Changes to the records of a log, made whole or not at all, in this order.
class LogBatch {
 public:
  virtual ~LogBatch() = default;
  virtual void Put(absl::string_view key, absl::string_view value) = 0;
  // The records whose keys are in [begin, end).
  virtual void DeleteRange(absl::string_view begin, absl::string_view end) = 0;
};

// What a write is acknowledged for: kYes survives the machine, kNo the process.
enum class Sync { kNo, kYes };

// Records, ordered by key as bytes, that outlive the process. What they mean is
// core/storage/records.h's. A replicated log could stand behind this as well as one on a disk: a
// batch is its entry.
//
// Scan may be called by many threads at once, also beside Commit; Commit by one at a time.
class CommitLog {
 public:
  virtual ~CommitLog() = default;

  virtual std::unique_ptr<LogBatch> NewBatch() = 0;

  // Makes the changes of `batch`, which this log made, and everything committed before, as safe as
  // asked for. An error, which says what the operator should know, means that they may or may not
  // be there when the log is opened again; until then every Commit fails.
  virtual absl::Status Commit(LogBatch& batch, Sync sync) = 0;

  // Calls visit(key, value) for every record with a key in [begin, end), in order, until that
  // returns an error, which it returns. DATA_LOSS if a record cannot be read as it was written.
  virtual absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const = 0;
};

// The log in `directory`, made if there is none.
//
// FAILED_PRECONDITION if another process has it open, DATA_LOSS if it is damaged beyond opening,
// UNAVAILABLE for what else the file system refuses.
absl::StatusOr<std::unique_ptr<CommitLog>> OpenCommitLog(const std::string& directory);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_COMMIT_LOG_H_
