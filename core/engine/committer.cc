#include "core/engine/committer.h"

#include <utility>

#include "absl/time/time.h"
#include "core/base/check.h"
#include "core/base/error.h"

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
  if (log_ != nullptr) log_->WhenSettled(nullptr);
}

bool Committer::Post(std::unique_ptr<Write> write, MayBlock may_block) {
  SOFTLOOKUP_CHECK(write != nullptr);
  const std::int64_t bytes = write->bytes();
  {
    absl::MutexLock lock(&mutex_);
    const bool idle = !committing_ && queue_.empty();
    if (may_block == MayBlock::kNo || !idle || !log_is_quick_) {
      if (!queue_.empty() && waiting_bytes_ + bytes > waiting_bytes_max_) return false;
      ++posted_count_;
      waiting_bytes_ += bytes;
      queue_.push_back(std::move(write));
      return true;
    }
    ++posted_count_;
    committing_ = true;
  }
  Writes group;
  group.push_back(std::move(write));
  CommitGroup(std::move(group));
  return true;
}

std::uint64_t Committer::posted_count() const {
  absl::MutexLock lock(&mutex_);
  return posted_count_;
}

void Committer::Run() {
  while (std::optional<Writes> group = TakeGroup()) CommitGroup(*std::move(group));
}

std::optional<Committer::Writes> Committer::TakeGroup() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !committing_ && (closed_ || !queue_.empty() || settled_.has_value());
  };
  Writes group;
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&has_work));
  if (closed_ && queue_.empty()) return std::nullopt;
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
  SettleIfKnown();
  if (unsettled_.empty()) {
    if (!group.empty()) StageAndCommit(std::move(group));
  } else {
    for (const auto& write : group) write->Answer(unsettled_error_);
    group.clear();
  }
  if (log_ != nullptr && unsettled_.empty()) log_->OnPublished();
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_CHECK(committing_);
  committing_ = false;
}

void Committer::SettleIfKnown() {
  if (unsettled_.empty()) return;
  bool is_made = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!settled_.has_value()) return;
    is_made = *settled_;
    settled_.reset();
  }
  for (const auto& write : unsettled_) {
    if (is_made) {
      write->Publish();
    } else {
      write->Rollback();
    }
  }
  unsettled_.clear();
}

void Committer::StageAndCommit(Writes group) {
  if (group.front()->is_in_log()) {
    SOFTLOOKUP_CHECK(group.size() == 1) << group.size() << " writes";
    group.front()->Publish();
    return group.front()->Answer(absl::OkStatus());
  }
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
  {
    absl::MutexLock lock(&mutex_);
    log_is_quick_ = log_is_quick;
  }
  const bool is_unknown = HasUnknownOutcome(committed);
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (!statuses[i].ok()) continue;
    if (committed.ok()) {
      group[i]->Publish();
      continue;
    }
    statuses[i] = committed;
    if (!is_unknown) group[i]->Rollback();
  }
  for (std::size_t i = 0; i < group.size(); ++i) {
    const bool is_unsettled = is_unknown && HasUnknownOutcome(statuses[i]);
    group[i]->Answer(std::move(statuses[i]));
    if (is_unsettled) unsettled_.push_back(std::move(group[i]));
  }
  if (unsettled_.empty()) return;
  unsettled_error_ = WriteNotMade("it is not known yet whether an earlier one was");
  log_->WhenSettled([this](bool is_made) {
    absl::MutexLock lock(&mutex_);
    settled_ = is_made;
  });
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
