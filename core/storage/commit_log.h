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
  // asked for. An error says what the operator should know: the log does not have the changes, but
  // if it was closed and opened again before another Commit succeeds, it may. After a full disk
  // that is as soon as there is room; after any other error, not before it is opened again.
  virtual absl::Status Commit(LogBatch& batch, Sync sync) = 0;

  // Whether Commit fails because an earlier one did, or something in the background. May be called
  // beside anything.
  virtual bool has_failed() const = 0;

  // Calls visit(key, value) for every record with a key in [begin, end), in order, until that
  // returns an error, which it returns. DATA_LOSS if a record cannot be read as it was written.
  virtual absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const = 0;

  // Lets the log put in order what it keeps, in the background, for as long as it is open. Where it
  // comes by what is damaged, every Commit fails from then on.
  virtual void BeginUpkeep() = 0;

  // Reads everything that is kept, also what no Scan comes by. DATA_LOSS if a checksum is wrong.
  virtual absl::Status VerifyChecksums() const = 0;

  // Makes `directory`, which must not exist, a log of what this one has at one moment during the
  // call, safe on disk once it returns. May be called beside Commit and Scan.
  virtual absl::Status CopyTo(const std::string& directory) = 0;
};

// The log in `directory`, made if there is none.
//
// A torn end, as a crash leaves it, is cut off if nothing of it was acknowledged as synced.
// FAILED_PRECONDITION if another process has it open, DATA_LOSS if it is damaged beyond opening or
// has lost what was synced, UNAVAILABLE for what else the file system refuses. Refused, it is left
// as it was found.
absl::StatusOr<std::unique_ptr<CommitLog>> OpenCommitLog(const std::string& directory);

// The same, but nothing in `directory`, which must exist, is changed, and every Commit fails.
absl::StatusOr<std::unique_ptr<const CommitLog>> OpenCommitLogToRead(const std::string& directory);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_COMMIT_LOG_H_
