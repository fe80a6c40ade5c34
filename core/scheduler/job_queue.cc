#include "core/scheduler/job_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/check.h"

namespace softlookup {
namespace {

// Most lines that the queue keeps although they are idle, with neither waiting nor running jobs.
constexpr int kRememberedMax = 64;

// Bounds of the time after which a refused caller should try again.
constexpr absl::Duration kRetryDelayMin = absl::Milliseconds(1);
constexpr absl::Duration kRetryDelayMax = absl::Seconds(30);

}  // namespace

void JobQueue::Add(QueuedJob job, absl::Time now) {
  SOFTLOOKUP_CHECK(job.job != nullptr) << "a job of store " << job.store;
  SOFTLOOKUP_CHECK(job.cost >= 0 && job.reading_cost >= 0)
      << "cost " << job.cost << ", reading " << job.reading_cost;
  Line& line = lines_[job.store];
  if (line.jobs.empty()) line.served = std::max(line.served, served_);
  const bool joins = JoinsLast(line, job);
  const double cost = joins ? job.cost : job.cost + job.reading_cost;
  const std::int64_t queries = BatchQueries(job);
  line.last_batch_queries = queries + (joins ? line.last_batch_queries : 0);
  line.waiting_cost += cost;
  line.query_count += queries;
  if (now <= line.return_until) ++line.returned_count;
  job.queued_at = now;
  line.jobs.push_back({.job = std::move(job), .cost = cost});
  ++size_;
}

std::int64_t JobQueue::BatchQueries(const QueuedJob& job) const {
  const std::int64_t queries = std::max<std::int64_t>(job.query_count, 1);
  if (job.shares_pass && IsStore(job.store)) return queries;
  return std::max(queries, options_.queries_max);
}

bool JobQueue::JoinsLast(const Line& line, const QueuedJob& job) const {
  return !line.jobs.empty() && line.last_batch_queries + BatchQueries(job) <= options_.queries_max;
}

std::optional<absl::Duration> JobQueue::Refusal(const QueuedJob& job) const {
  const double cost_alone = job.cost + job.reading_cost;
  double cost = cost_alone;
  double own_cost_before = 0;
  if (const auto own = lines_.find(job.store); own != lines_.end()) {
    own_cost_before = own->second.waiting_cost;
    if (JoinsLast(own->second, job)) cost = job.cost;
  }
  // Take() serves the store that was served least so far. So from now until this job has run, each
  // other store gets at most about `share`, which is what this store gets with the job, and no more
  // than waits for it.
  const double share = own_cost_before + cost;
  double cost_before = own_cost_before;
  for (const auto& [store, line] : lines_) {
    if (store != job.store) cost_before += std::min(line.waiting_cost, share);
  }
  if (cost_before <= 0) return std::nullopt;
  const absl::Duration most =
      std::max(job.answer_time_max, rate_.TimeOf(options_.stretch_max * cost_alone));
  if (rate_.TimeOf(cost_before + cost) <= most) return std::nullopt;
  return std::clamp(rate_.TimeOf(cost_before), kRetryDelayMin, kRetryDelayMax);
}

double JobQueue::waiting_cost() const {
  double cost = 0;
  for (const auto& [store, line] : lines_) cost += line.waiting_cost;
  return cost;
}

absl::Time JobQueue::ReadyTime(std::uint64_t store, const Line& line) const {
  if (line.jobs.empty()) return absl::InfiniteFuture();
  if (IsStore(store) && line.running_count > 0) return absl::InfiniteFuture();
  const bool has_room = line.query_count + line.queries_per_job <= options_.queries_max;
  const bool waits = has_room && static_cast<std::int64_t>(line.jobs.size()) < line.awaited_count;
  return waits ? line.return_until : absl::InfinitePast();
}

absl::Time JobQueue::NextTime() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [store, line] : lines_) next = std::min(next, ReadyTime(store, line));
  return next;
}

std::optional<Batch> JobQueue::Take(absl::Time now) {
  auto chosen = lines_.end();
  for (auto it = lines_.begin(); it != lines_.end(); ++it) {
    if (ReadyTime(it->first, it->second) > now) continue;
    if (chosen == lines_.end() || it->second.served < chosen->second.served) chosen = it;
  }
  if (chosen == lines_.end()) return std::nullopt;
  Line& line = chosen->second;
  served_ = std::max(served_, line.served);
  Batch batch{.store = chosen->first, .begin = now};
  const double reading_cost = line.jobs.front().job.reading_cost;
  std::int64_t query_count = 0;
  while (!line.jobs.empty()) {
    auto& [job, cost] = line.jobs.front();
    const std::int64_t queries = BatchQueries(job);
    if (!batch.jobs.empty() && query_count + queries > options_.queries_max) break;
    query_count += queries;
    line.served += job.cost;
    batch.cost += cost;
    batch.jobs.push_back(std::move(job));
    line.jobs.pop_front();
  }
  const auto job_count = static_cast<std::int64_t>(batch.jobs.size());
  size_ -= job_count;
  line.query_count -= query_count;
  SOFTLOOKUP_CHECK(size_ >= 0 && line.query_count >= 0)
      << "jobs " << size_ << ", queries " << line.query_count;
  SOFTLOOKUP_CHECK(line.jobs.empty() == (line.query_count == 0)) << "queries " << line.query_count;
  line.queries_per_job = query_count / job_count;
  ++line.running_count;
  // The waiting cost of an empty line is exactly 0. The difference could have a rounding error.
  line.waiting_cost = line.jobs.empty() ? 0 : line.waiting_cost - batch.cost;
  batch.reading_part = batch.cost > 0 ? reading_cost / batch.cost : 0;
  batch.run = rate_.Begin(now);
  return batch;
}

void JobQueue::OnAnswers(const Batch& batch, std::int64_t answered_count, absl::Time now) {
  if (!IsStore(batch.store)) return;
  const auto found = lines_.find(batch.store);
  SOFTLOOKUP_CHECK(found != lines_.end()) << "no batch of store " << batch.store << " runs";
  Line& line = found->second;
  std::int64_t expected = 0;
  if (line.answered_count > 0) {
    const std::int64_t returned = std::min(line.returned_count, line.answered_count);
    expected = answered_count * returned / line.answered_count;
  }
  line.awaited_count = static_cast<std::int64_t>(line.jobs.size()) + expected;
  line.answered_count = answered_count;
  line.returned_count = 0;
  line.return_until = now + std::min(options_.wait_max, batch.reading_part * (now - batch.begin));
}

void JobQueue::Done(const Batch& batch, absl::Time now, double done_part) {
  const auto done = lines_.find(batch.store);
  SOFTLOOKUP_CHECK(done != lines_.end() && done->second.running_count > 0)
      << "no batch of store " << batch.store << " runs";
  --done->second.running_count;
  rate_.End(batch.run, batch.cost, std::clamp(done_part, 0.0, 1.0) * batch.cost, now);
  // Erases an idle line if `served_` has reached its `served` and its clients' time to return is
  // over. Keeps at most kRememberedMax of the other idle lines.
  int remembered = 0;
  for (auto it = lines_.begin(); it != lines_.end();) {
    const Line& line = it->second;
    const bool is_idle = line.jobs.empty() && line.running_count == 0;
    const bool is_behind = line.served <= served_ && line.return_until < now;
    const bool is_forgotten = is_idle && (is_behind || ++remembered > kRememberedMax);
    it = is_forgotten ? lines_.erase(it) : std::next(it);
  }
}

}  // namespace softlookup
