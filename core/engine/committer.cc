#include "core/engine/committer.h"

#include <utility>

#include "absl/time/time.h"
#include "core/base/check.h"

namespace softlookup {
namespace {

// A group takes no more writes once it has this many bytes or writes. So the group's first write
// does not wait long while the others are staged. The group's batch also stays much smaller than
// the log's write buffer.
constexpr std::int64_t kGroupBytesMax = std::int64_t{8} << 20;
constexpr std::size_t kGroupCountMax = 512;

// If the log takes this long or longer for a group, only the committer's thread runs the next
// group. A caller's thread has other calls to answer, and should not wait for a slow log.
constexpr absl::Duration kQuick = absl::Milliseconds(1);

}  // namespace

Committer::Committer(CommitLog* log, std::int64_t waiting_bytes_max, Histogram& sync_time,
                     const Clock& clock, std::shared_ptr<EngineObserver> observer)
    : log_(log),
      waiting_bytes_max_(waiting_bytes_max),
      sync_time_(sync_time),
      clock_(clock),
      observer_(std::move(observer)),
      thread_([this] { Run(); }) {}

Committer::~Committer() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  thread_.join();
}

bool Committer::Post(std::unique_ptr<Write> write, MayBlock may_block) {
  SOFTLOOKUP_CHECK(write != nullptr);
  const std::int64_t bytes = write->bytes();
  {
    absl::MutexLock lock(&mutex_);
    const bool idle = !committing_ && queue_.empty();
    if (may_block == MayBlock::kNo || !idle || !log_is_quick_) {
      if (!queue_.empty() && waiting_bytes_ + bytes > waiting_bytes_max_) return false;
      waiting_bytes_ += bytes;
      queue_.push_back(std::move(write));
      return true;
    }
    committing_ = true;
  }
  Writes group;
  group.push_back(std::move(write));
  CommitGroup(std::move(group));
  return true;
}

void Committer::Run() {
  for (;;) {
    Writes group = TakeGroup();
    if (group.empty()) return;
    CommitGroup(std::move(group));
  }
}

Committer::Writes Committer::TakeGroup() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !committing_ && (closed_ || !queue_.empty());
  };
  Writes group;
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&has_work));
  std::int64_t bytes = 0;
  while (!queue_.empty() && group.size() < kGroupCountMax && bytes < kGroupBytesMax) {
    if (queue_.front()->alone() && !group.empty()) break;
    bytes += queue_.front()->bytes();
    group.push_back(std::move(queue_.front()));
    queue_.pop_front();
    if (group.back()->alone()) break;
  }
  waiting_bytes_ -= bytes;
  SOFTLOOKUP_CHECK(waiting_bytes_ >= 0) << waiting_bytes_ << " bytes wait";
  SOFTLOOKUP_CHECK(!committing_) << "two groups at once";
  committing_ = true;
  return group;
}

void Committer::CommitGroup(Writes group) {
  const std::unique_ptr<LogBatch> batch = log_ == nullptr ? nullptr : log_->NewBatch();
  Sync sync = Sync::kNo;
  std::vector<absl::Status> statuses;
  for (const auto& write : group) {
    statuses.push_back(write->Stage(batch.get()));
    if (statuses.back().ok() && write->sync() == Sync::kYes) sync = Sync::kYes;
  }
  const absl::Time begin = clock_.Now();
  const absl::Status committed = log_ == nullptr ? absl::OkStatus() : log_->Commit(*batch, sync);
  const absl::Duration log_time = clock_.Now() - begin;
  const bool log_is_quick = log_time < kQuick;
  if (log_ != nullptr && sync == Sync::kYes) sync_time_.Observe(absl::ToInt64Nanoseconds(log_time));
  Report(committed);
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (!statuses[i].ok()) continue;
    if (committed.ok()) {
      group[i]->Publish();
    } else {
      group[i]->Rollback();
      statuses[i] = committed;
    }
  }
  for (std::size_t i = 0; i < group.size(); ++i) group[i]->Answer(std::move(statuses[i]));
  group.clear();  // Frees what the writes hold before the next group begins.
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_CHECK(committing_);
  committing_ = false;
  log_is_quick_ = log_is_quick;
}

void Committer::Report(const absl::Status& committed) {
  if (observer_ == nullptr) return;
  if (!committed.ok()) {
    if (!std::exchange(refuses_, true)) observer_->OnWritesRefused(committed);
  } else if (refuses_ && !log_->has_failed()) {  // A full disk takes only deletions.
    refuses_ = false;
    observer_->OnWritesTaken();
  }
}

}  // namespace softlookup
