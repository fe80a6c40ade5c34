#include "core/engine/committer.h"

#include <utility>

namespace softlookup {
namespace {

// A group ends here, so that its first write does not wait long for the staging of the last, and
// its batch stays small beside the log's own buffers.
constexpr std::int64_t kGroupBytesMax = std::int64_t{8} << 20;
constexpr std::size_t kGroupCountMax = 512;

}  // namespace

Committer::Committer(CommitLog* log, std::int64_t waiting_bytes_max)
    : log_(log), waiting_bytes_max_(waiting_bytes_max), thread_([this] { Run(); }) {}

Committer::~Committer() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  thread_.join();
}

bool Committer::Post(std::unique_ptr<Write> write) {
  const std::int64_t bytes = write->bytes();
  absl::MutexLock lock(&mutex_);
  if (!queue_.empty() && waiting_bytes_ + bytes > waiting_bytes_max_) return false;
  waiting_bytes_ += bytes;
  queue_.push_back(std::move(write));
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
    return closed_ || !queue_.empty();
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
  const absl::Status committed = log_ == nullptr ? absl::OkStatus() : log_->Commit(*batch, sync);
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (!statuses[i].ok()) continue;
    if (committed.ok()) {
      group[i]->Publish();
    } else {
      group[i]->Undo();
      statuses[i] = committed;
    }
  }
  for (std::size_t i = 0; i < group.size(); ++i) group[i]->Answer(std::move(statuses[i]));
}

}  // namespace softlookup
