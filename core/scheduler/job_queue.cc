#include "core/scheduler/job_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/check.h"

namespace softlookup {
namespace {

// Most stores that the queue keeps although they are idle, with neither waiting nor running jobs.
constexpr int kRememberedMax = 64;

}  // namespace

void JobQueue::Add(QueuedJob job, absl::Time now) {
  SOFTLOOKUP_CHECK(job.job != nullptr) << "a job of store " << job.store;
  SOFTLOOKUP_CHECK(job.cost >= 0 && job.reading_cost >= 0)
      << "cost " << job.cost << ", reading " << job.reading_cost;
  StoreTurn& turn = stores_.try_emplace(job.store, options_.queries_max).first->second;
  if (turn.queue.empty()) turn.served = std::max(turn.served, served_);
  turn.returns.OnJob(now);
  job.queued_at = now;
  turn.queue.Add(std::move(job));
  ++size_;
}

WorkUntilAnswer JobQueue::WorkUntil(const QueuedJob& job) const {
  double cost = job.cost + job.reading_cost;
  double own_cost_before = 0;
  if (const auto own = stores_.find(job.store); own != stores_.end()) {
    own_cost_before = own->second.queue.waiting_cost();
    if (own->second.queue.JoinsLast(job)) cost = job.cost;
  }
  // Take() serves the store that was served least so far. `share` is the cost that the job's own
  // store is served until `job` has run. Each other store is served at most about `share` in that
  // time, and never more than its waiting cost.
  const double share = own_cost_before + cost;
  double cost_before = own_cost_before;
  for (const auto& [store, turn] : stores_) {
    if (store != job.store) cost_before += std::min(turn.queue.waiting_cost(), share);
  }
  return {.before = cost_before, .own = cost};
}

double JobQueue::waiting_cost() const {
  double cost = 0;
  for (const auto& [store, turn] : stores_) cost += turn.queue.waiting_cost();
  return cost;
}

absl::Time JobQueue::ReadyTime(std::uint64_t store, const StoreTurn& turn) {
  if (turn.queue.empty()) return absl::InfiniteFuture();
  if (IsStore(store) && turn.running_count > 0) return absl::InfiniteFuture();
  const bool waits = turn.queue.HoldsOneMore() && turn.returns.Awaits(turn.queue.size());
  return waits ? turn.returns.end() : absl::InfinitePast();
}

absl::Time JobQueue::NextTime() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [store, turn] : stores_) next = std::min(next, ReadyTime(store, turn));
  return next;
}

std::optional<Batch> JobQueue::Take(absl::Time now) {
  auto chosen = stores_.end();
  for (auto it = stores_.begin(); it != stores_.end(); ++it) {
    if (ReadyTime(it->first, it->second) > now) continue;
    if (chosen == stores_.end() || it->second.served < chosen->second.served) chosen = it;
  }
  if (chosen == stores_.end()) return std::nullopt;
  StoreTurn& turn = chosen->second;
  served_ = std::max(served_, turn.served);
  Batch batch = turn.queue.TakeBatch();
  batch.begin = now;
  for (const QueuedJob& job : batch.jobs) turn.served += job.cost;
  size_ -= static_cast<std::int64_t>(batch.jobs.size());
  SOFTLOOKUP_CHECK(size_ >= 0) << "jobs " << size_;
  ++turn.running_count;
  return batch;
}

void JobQueue::OnAnswers(const Batch& batch, std::int64_t answered_count, absl::Time now) {
  if (!IsStore(batch.store)) return;
  const auto found = stores_.find(batch.store);
  SOFTLOOKUP_CHECK(found != stores_.end()) << "no batch of store " << batch.store << " runs";
  // A job that joins the next batch saves reading the rows once more. So the wait takes at most as
  // long as the last batch took to read the rows.
  const absl::Duration wait = std::min(options_.wait_max, batch.reading_part * (now - batch.begin));
  found->second.returns.OnAnswers(answered_count, found->second.queue.size(), now + wait);
}

void JobQueue::Done(const Batch& batch, absl::Time now) {
  const auto done = stores_.find(batch.store);
  SOFTLOOKUP_CHECK(done != stores_.end() && done->second.running_count > 0)
      << "no batch of store " << batch.store << " runs";
  --done->second.running_count;
  ForgetIdle(now);
}

void JobQueue::ForgetIdle(absl::Time now) {
  // Forgets an idle store if `served_` has reached its `served`, which Add() would raise to
  // `served_` anyway. Its clients' time to return must be over, too. Of the other idle stores,
  // keeps at most kRememberedMax.
  int remembered = 0;
  for (auto it = stores_.begin(); it != stores_.end();) {
    const StoreTurn& turn = it->second;
    const bool is_idle = turn.queue.empty() && turn.running_count == 0;
    const bool is_behind = turn.served <= served_ && turn.returns.end() < now;
    const bool is_forgotten = is_idle && (is_behind || ++remembered > kRememberedMax);
    it = is_forgotten ? stores_.erase(it) : std::next(it);
  }
}

}  // namespace softlookup
