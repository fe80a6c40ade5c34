#ifndef SOFTLOOKUP_CORE_STORAGE_COMMIT_LOG_H_
#define SOFTLOOKUP_CORE_STORAGE_COMMIT_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/records.h"

namespace softlookup {

// Changes to the records of a log. CommitLog::Commit() makes all of them, in the order in which
// they were added, or none.
class LogBatch {
 public:
  virtual ~LogBatch() = default;
  virtual void Put(absl::string_view key, absl::string_view value) = 0;
  // Deletes the record `key`, if there is one.
  virtual void Delete(absl::string_view key) = 0;
  // Deletes the records whose keys are in [begin, end). Once the batch is committed, the log also
  // frees the disk that they took. Commit() itself drops most files that hold nothing else. The log
  // frees the rest later: once AllowTableCompaction() has been called, and deleted records take so
  // many bytes that a compaction pays.
  virtual void DeleteRange(absl::string_view begin, absl::string_view end) = 0;
  // Says that most records whose keys are in [begin, end) are deleted, by this batch or by an
  // earlier one. Deletes nothing itself. Once the batch is committed, the log frees the disk of
  // these records later, as DeleteRange() says.
  virtual void FreeDiskOf(absl::string_view begin, absl::string_view end) = 0;
  // Says that a batch with DeleteRange() can follow once this one is committed. A log whose disk is
  // full then takes this batch as it takes that one.
  virtual void MakesRoom() {}
};

// Whether a commit waits until the disk has it. A power cut loses no write that was committed with
// kYes. A power cut may lose writes that were committed with kNo since the last sync. A crash of
// the process alone loses no committed write.
enum class Sync { kNo, kYes };

// The stores in memory that an engine keeps of a replicated log.
class LogReplay {
 public:
  virtual ~LogReplay() = default;

  // Makes the changes of an entry that another replica has committed, after all changes before.
  // The log has the changes already, and gets no others until done() is called, on any thread. An
  // error: the stores no longer fit the log. Returns false, and does not call done(), if there is
  // no room for the entry now.
  virtual bool Replay(std::shared_ptr<const std::string> entry,
                      absl::AnyInvocable<void(absl::Status)> done) = 0;
  // Called when the log has begun to take this engine's batches.
  virtual void OnWritable() = 0;
};

// Keeps records that outlive the process, ordered by the bytes of their keys.
// core/storage/records.h defines what the records mean. The interface also suits a replicated log,
// in which a batch would be one entry.
//
// Any number of threads may call Scan() at once, also during Commit(). Only one thread at a time
// may call Commit().
class CommitLog {
 public:
  virtual ~CommitLog() = default;

  virtual std::unique_ptr<LogBatch> NewBatch() = 0;

  // Makes the changes of `batch`, which must come from this log's NewBatch(). When this returns OK,
  // these changes and all earlier ones are as safe as `sync` says. An empty batch with kYes syncs
  // what was committed before.
  //
  // After an error, treat the changes as not made. They can still appear if the log is closed and
  // opened again before the next Commit() succeeds. After a full disk, Commit() can succeed as soon
  // as there is room. A batch of few bytes that deletes a range can succeed before, because the log
  // keeps some room in reserve for it. After any other error, every Commit() fails until the log is
  // opened again. Clients get the message of the error.
  //
  // If HasUnknownOutcome() holds for the error, the changes may be made later all the same, but not
  // after those of a later batch. WhenSettled() tells.
  virtual absl::Status Commit(LogBatch& batch, Sync sync) = 0;

  // Calls settled(is_made) once it is known whether the changes of the last Commit() with an
  // unknown outcome were made. No Commit() goes on then. Calls it on any thread, also before this
  // returns. Null: no call is made after this returns. Only a replicated log has unknown outcomes.
  virtual void WhenSettled(absl::AnyInvocable<void(bool is_made)> settled) {}

  // The next six are for a replicated log, which other replicas change, too. Call PauseReplay()
  // before the stores are read, and StartReplay() once they are. The log gets no entry of another
  // replica in between.
  virtual void PauseReplay() {}
  // From now on, calls `replay` for the entries of other replicas, one at a time, on any thread.
  // Null: makes no call after this returns.
  virtual void StartReplay(LogReplay* replay) {}
  // Call this, not during a Commit(), whenever the stores show all changes that the log has made.
  virtual void OnPublished() {}
  // Calls `done` once the stores show all that any replica had committed before this call, or with
  // an error: CLUSTER_UNAVAILABLE after some seconds at most. `done` must be quick, and may run on
  // any thread. StartReplay(nullptr) ends what still waits. Only for a log that is_replicated().
  virtual void AwaitLatest(absl::AnyInvocable<void(absl::Status)> done) { done(absl::OkStatus()); }
  // Returns whether other replicas commit to the log, too.
  virtual bool is_replicated() const { return false; }
  // Returns whether Commit() can succeed now, as far as that is known.
  virtual bool is_writable() const { return true; }

  // Call this before a write that gives a store of `tenant` its name (TenantOf()). If stores of the
  // tenant may not be written to this log, returns why. Waits for some seconds at most.
  // Thread-safe. Only a replicated log refuses a tenant.
  virtual absl::Status ClaimTenant(absl::string_view tenant) { return absl::OkStatus(); }

  // Returns true after a Commit() or work in the background has failed. After a full disk, the
  // result is false again once a Commit() that needs room has succeeded. Thread-safe.
  virtual bool has_failed() const = 0;

  // Calls visit(key, value) for every record with a key in [begin, end), in order. Stops at the
  // first error that `visit` returns, and returns it. DATA_LOSS if a record cannot be read as it
  // was written, UNAVAILABLE if it cannot be read for another reason.
  virtual absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const = 0;

  // From now on, lets the log write its table files anew in the background, without their deleted
  // records. Before it does so to free the disk of deleted records, it reads these. If one of them
  // is damaged, the log stops this work for good. If the work itself reads a damaged record, every
  // Commit() fails from then on. Engine::CompactStore() is something else: it deletes records.
  virtual void AllowTableCompaction() = 0;

  // The log may keep records in table files. Deleted records stay there until the log has freed
  // their disk. The next three functions are about these files. `ranges` are ordered and do not
  // overlap.
  //
  // Returns the key of the last record in the table files, or a key after it. Empty if there are no
  // table files.
  virtual std::string LastKeyInTables() const = 0;
  // Returns those of `ranges` in which there are records, deleted ones included. Reads about one
  // record of each. A range whose records cannot be read counts as one that has some.
  virtual std::vector<KeyRange> RangesInTables(absl::Span<const KeyRange> ranges) const = 0;
  // Reads all records in `ranges`, deleted ones included. The errors are those of Scan().
  virtual absl::Status ReadTables(absl::Span<const KeyRange> ranges) const = 0;

  // Waits until the log has freed what it can free now of the disk that deleted ranges took.
  virtual void AwaitReclaimed() = 0;
  // Returns about how many bytes of table files are in ranges whose disk is to be freed (LogBatch)
  // and is not freed yet. A range counts from shortly after its batch was committed, with the bytes
  // that it took then. Thread-safe.
  virtual std::uint64_t deleted_bytes() const = 0;

  // Reads all table files of the log, also the parts that no Scan() reads. DATA_LOSS if a checksum
  // is wrong. UNAVAILABLE if a file cannot be read for another reason.
  virtual absl::Status VerifyChecksums() const = 0;

  // Makes a copy of the log in `directory`, which must not exist. The copy shows one moment during
  // the call. It shares files with the log, and is safe on disk once the caller has synced them.
  // May be called during Commit() and Scan().
  virtual absl::Status CopyTo(const std::string& directory) = 0;
};

// Opens the log in `directory`. Creates the directory and the log if they are missing. A crash can
// leave a torn end. The torn end is cut off if no change in it was acknowledged as synced.
//
// FAILED_PRECONDITION if another process has the log open. DATA_LOSS if the log is damaged so that
// it cannot be opened, or has lost synced changes. UNAVAILABLE for other errors of the file system.
// FAILED_PRECONDITION leaves the log as it was found. So does DATA_LOSS if the log's SyncedSequence
// is above 0: the log is then checked before it is opened to write. If the SyncedSequence is 0,
// damage shows only when the log is opened to write, which may change files.
absl::StatusOr<std::unique_ptr<CommitLog>> OpenCommitLog(const std::string& directory);

// Opens the log in `directory` only to read it. Changes nothing, but creates RocksDB's file LOCK if
// that file is missing. The errors are those of OpenCommitLog, and UNAVAILABLE if there is no log.
absl::StatusOr<std::unique_ptr<const CommitLog>> OpenCommitLogToRead(const std::string& directory);

// Opens a copy that CommitLog::CopyTo() made, only to read it. Changes nothing in `directory`,
// which need not be writable. Takes no lock, because no process writes to such a copy. Otherwise as
// OpenCommitLogToRead(), also its errors.
absl::StatusOr<std::unique_ptr<const CommitLog>> OpenCommitLogCopy(const std::string& directory);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORAGE_COMMIT_LOG_H_
