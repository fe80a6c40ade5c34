#ifndef SOFTLOOKUP_CORE_ENGINE_COMMITTER_H_
#define SOFTLOOKUP_CORE_ENGINE_COMMITTER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/base/clock.h"
#include "core/base/histogram.h"
#include "core/storage/commit_log.h"

namespace softlookup {

// One write, as the committer takes it through. All but Stage and Answer is left out of a write
// that Stage refuses. Runs on the committer's thread.
class Write {
 public:
  virtual ~Write() = default;

  // Makes the write where no reader sees it, and adds what the log keeps of it to `batch`, if there
  // is a log. An error refuses it, and has changed nothing.
  virtual absl::Status Stage(LogBatch* batch) = 0;
  // The log has it: lets readers see it.
  virtual void Publish() = 0;
  // The log does not have it: undoes it, with every write staged to the same store since the last
  // Publish.
  virtual void Rollback() = 0;
  // Says how it ended. Called once, last.
  virtual void Answer(absl::Status status) = 0;

  // Whether the answer waits for the disk.
  virtual Sync sync() const { return Sync::kYes; }
  // Whether nothing may be staged between its Stage and its Publish.
  virtual bool alone() const { return false; }
  // The memory that it holds while it waits, about.
  virtual std::int64_t bytes() const { return 0; }
};

// Takes writes through the log, one after another in the order of Post: those that wait together
// share one batch and one sync. Thread-safe.
class Committer {
 public:
  // Whether the caller of Post may wait for the log.
  enum class MayBlock : bool { kNo, kYes };

  // `log` may be null: then nothing outlives the process. Writes that would wait beyond
  // `waiting_bytes_max` are turned away. `sync_time` hears, in nanoseconds, of what the log takes
  // to write and sync a group.
  Committer(CommitLog* log, std::int64_t waiting_bytes_max, Histogram& sync_time,
            const Clock& clock = Clock::Steady());
  // Ends what was posted first.
  ~Committer();

  // False, and `write` will not be run, if too much waits already. A caller that may block runs a
  // write that has nothing before it itself, which saves the way to another thread, unless the log
  // is slow.
  bool Post(std::unique_ptr<Write> write, MayBlock may_block);

 private:
  using Writes = std::vector<std::unique_ptr<Write>>;

  void Run();
  // Takes the writes that go through together from the queue, once no other group is run; none once
  // it is closed and empty.
  Writes TakeGroup();
  // Runs the group that committing_ was set for.
  void CommitGroup(Writes group);

  CommitLog* const log_;
  const std::int64_t waiting_bytes_max_;
  Histogram& sync_time_;
  const Clock& clock_;

  absl::Mutex mutex_;
  std::deque<std::unique_ptr<Write>> queue_ ABSL_GUARDED_BY(mutex_);
  std::int64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool committing_ ABSL_GUARDED_BY(mutex_) = false;   // Some thread runs a group.
  bool log_is_quick_ ABSL_GUARDED_BY(mutex_) = true;  // By the last group.
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // Last: it uses the rest.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_COMMITTER_H_
