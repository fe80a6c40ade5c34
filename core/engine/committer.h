#ifndef SOFTLOOKUP_CORE_ENGINE_COMMITTER_H_
#define SOFTLOOKUP_CORE_ENGINE_COMMITTER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/clock.h"
#include "core/base/histogram.h"
#include "core/storage/commit_log.h"
#include "softlookup/engine_observer.h"

namespace softlookup {

// One write. The committer calls Stage(), then Publish() or Rollback(), then Answer(), all on one
// thread. If Stage() refuses the write, only Answer() follows. Calls for different writes never run
// at the same time, but all writes of a group are staged before the first of them is published.
class Write {
 public:
  virtual ~Write() = default;

  // Makes the write where no reader sees it, and adds its records to `batch`. `batch` is null if
  // there is no log. An error refuses the write, and must leave `batch` and all stores unchanged.
  virtual absl::Status Stage(LogBatch* batch) = 0;
  // Called when the log has the write. Lets readers see it.
  virtual void Publish() = 0;
  // Called when the log does not have the write. Undoes the write. May undo the other writes of its
  // group to the same store, too: the log has none of them, and each gets a call of Rollback().
  virtual void Rollback() = 0;
  // Passes on how the write ended. Called once, last. But if the log does not know whether it has
  // the write (HasUnknownOutcome()), this comes first, with that error, and Publish() or Rollback()
  // once it is known. While the log does not know, later writes are refused: only Answer() is
  // called for them, without Stage().
  virtual void Answer(absl::Status status) = 0;

  // Returns whether the answer waits until the log is synced.
  virtual Sync sync() const { return Sync::kYes; }
  // Returns whether the write must be a group of its own. No other write is then staged between its
  // Stage() and its Publish().
  virtual bool alone() const { return false; }
  // Returns whether the log has the write's records already. It is then only published, and alone()
  // must be true.
  virtual bool is_in_log() const { return false; }
  // Returns about how many bytes the write holds while it waits. Every call must return the same.
  virtual std::int64_t bytes() const { return 0; }
};

// Gets the result of a write, or the error that ended it.
template <typename Result>
using WriteCallback = absl::AnyInvocable<void(absl::StatusOr<Result>)>;

// Runs writes in the order in which they were posted. Writes that wait together form groups. The
// log commits a group as one batch, with at most one sync. Thread-safe.
class Committer {
 public:
  // Whether the caller of Post() may wait for the log.
  enum class MayBlock : bool { kNo, kYes };

  // If `log` is null, nothing outlives the process. `waiting_bytes_max` bounds the writes that wait
  // (see Post()). `sync_time` observes the nanoseconds, by `clock`, that the log takes to write and
  // sync a group. Groups without a sync are not observed. `log`, `sync_time` and `clock` must
  // outlive the committer. `observer` may be null. It hears when the log begins to refuse writes,
  // and when the log takes all writes again. It hears so before the group that showed it is
  // answered.
  Committer(CommitLog* log, std::int64_t waiting_bytes_max, Histogram& sync_time,
            const Clock& clock = Clock::Steady(),
            std::shared_ptr<EngineObserver> observer = nullptr);
  // Waits until all posted writes have run. Leaves open whether the log has writes of which it does
  // not know that.
  ~Committer();

  // Queues `write` for the committer's thread and returns true. Returns false if other writes wait
  // and, together with `write`, they would have more than `waiting_bytes_max` bytes. `write` is
  // then destroyed, and its Answer() is not called.
  //
  // With kYes, Post() itself runs `write` if no other write runs or waits and the log was quick for
  // the last group. This saves handing the write to another thread.
  bool Post(std::unique_ptr<Write> write, MayBlock may_block);

  // Returns how many writes Post() has taken.
  std::uint64_t posted_count() const;

 private:
  using Writes = std::vector<std::unique_ptr<Write>>;

  void Run();
  // Waits until no group runs, and there is something to do. Then takes the next group from the
  // queue, which is empty if there is only something to settle, and sets committing_. Returns
  // nullopt if the committer is closed and no write waits.
  std::optional<Writes> TakeGroup();
  // Runs `group`, for which committing_ must have been set, and clears committing_. `group` may be
  // empty: then there is only something to settle.
  void CommitGroup(Writes group);
  // Stages and commits `group`, and lets its writes answer.
  void StageAndCommit(Writes group);
  // If the log has told what became of unsettled_, publishes these writes or rolls them back.
  void SettleIfKnown();
  // Calls `observer_` if this commit, which ended with `committed`, is the first that the log
  // refused, or the first after which the log takes all writes again.
  void Report(const absl::Status& committed);

  CommitLog* const log_;
  const std::int64_t waiting_bytes_max_;
  Histogram& sync_time_;
  const Clock& clock_;
  const std::shared_ptr<EngineObserver> observer_;
  // These are used while committing_ is set.
  bool refuses_ = false;          // Whether the log refuses writes.
  Writes unsettled_;              // Writes of which the log does not know whether it has them.
  absl::Status unsettled_error_;  // What later writes get while there are such.

  mutable absl::Mutex mutex_;
  std::uint64_t posted_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::unique_ptr<Write>> queue_ ABSL_GUARDED_BY(mutex_);
  std::int64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool committing_ ABSL_GUARDED_BY(mutex_) = false;   // A thread runs a group.
  bool log_is_quick_ ABSL_GUARDED_BY(mutex_) = true;  // The log was quick for the last group.
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<bool> settled_ ABSL_GUARDED_BY(mutex_);  // Whether the log has unsettled_.

  std::thread thread_;  // Declared last, because it uses the other members.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_COMMITTER_H_
