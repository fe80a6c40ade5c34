#include "core/batch/batch_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace softlookup {
namespace {

// Idle stores whose service is remembered.
constexpr int kRememberedMax = 64;

// What a caller that was turned away is told to wait, at least and at most.
constexpr absl::Duration kRetryDelayMin = absl::Milliseconds(1);
constexpr absl::Duration kRetryDelayMax = absl::Seconds(30);

}  // namespace

std::optional<absl::Duration> BatchQueue::Add(WaitingScan& scan, absl::Time now, bool is_admitted) {
  if (!is_admitted) {
    if (const auto refusal = Refusal(scan)) return refusal;
  }
  Line& line = lines_[scan.store];
  if (line.scans.empty()) line.served = std::max(line.served, served_);
  const bool joins = JoinsLast(line, scan);
  const double cost = joins ? scan.cost : scan.cost + scan.reading_cost;
  line.last_batch_queries = scan.query_count + (joins ? line.last_batch_queries : 0);
  line.waiting_cost += cost;
  line.query_count += scan.query_count;
  if (now <= line.return_until) ++line.returned_count;
  line.scans.push_back({.scan = std::move(scan), .cost = cost});
  return std::nullopt;
}

bool BatchQueue::JoinsLast(const Line& line, const WaitingScan& scan) const {
  return !line.scans.empty() && line.last_batch_queries + scan.query_count <= options_.queries_max;
}

std::optional<absl::Duration> BatchQueue::Refusal(const WaitingScan& scan) const {
  const double cost_alone = scan.cost + scan.reading_cost;
  double cost = cost_alone;
  double own_cost_before = 0;
  if (const auto own = lines_.find(scan.store); own != lines_.end()) {
    own_cost_before = own->second.waiting_cost;
    if (JoinsLast(own->second, scan)) cost = scan.cost;
  }
  // Of others, no more is served meanwhile than of its own store.
  const double share = own_cost_before + cost;
  double cost_before = own_cost_before + std::min(tasks_cost_, share);
  for (const auto& [store, line] : lines_) {
    if (store != scan.store) cost_before += std::min(line.waiting_cost, share);
  }
  return Refusal(cost_before, cost, cost_alone, options_.answer_max);
}

std::optional<absl::Duration> BatchQueue::Refusal(double cost_before, double cost,
                                                  double cost_alone,
                                                  absl::Duration answer_max) const {
  if (cost_before <= 0) return std::nullopt;
  const absl::Duration most = std::max(answer_max, rate_.TimeOf(options_.stretch_max * cost_alone));
  if (rate_.TimeOf(cost_before + cost) <= most) return std::nullopt;
  return std::clamp(rate_.TimeOf(cost_before), kRetryDelayMin, kRetryDelayMax);
}

std::optional<absl::Duration> BatchQueue::AddTask(double cost, absl::Duration answer_max) {
  if (const auto refusal = Refusal(tasks_cost_, cost, cost, answer_max)) return refusal;
  tasks_cost_ += cost;
  return std::nullopt;
}

WorkRate::Piece BatchQueue::BeginTask(double cost, absl::Time now) {
  tasks_cost_ = std::max(0.0, tasks_cost_ - cost);
  return rate_.Begin(now);
}

double BatchQueue::waiting_cost() const {
  double cost = tasks_cost_;
  for (const auto& [store, line] : lines_) cost += line.waiting_cost;
  return cost;
}

absl::Time BatchQueue::ReadyTime(const Line& line) const {
  if (line.is_running || line.scans.empty()) return absl::InfiniteFuture();
  const bool has_room = line.query_count + line.scan_queries <= options_.queries_max;
  const bool waits = has_room && static_cast<std::int64_t>(line.scans.size()) < line.awaited_count;
  return waits ? line.return_until : absl::InfinitePast();
}

absl::Time BatchQueue::NextTime() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [store, line] : lines_) next = std::min(next, ReadyTime(line));
  return next;
}

std::optional<Batch> BatchQueue::Take(absl::Time now) {
  auto chosen = lines_.end();
  for (auto it = lines_.begin(); it != lines_.end(); ++it) {
    if (ReadyTime(it->second) > now) continue;
    if (chosen == lines_.end() || it->second.served < chosen->second.served) chosen = it;
  }
  if (chosen == lines_.end()) return std::nullopt;
  Line& line = chosen->second;
  served_ = std::max(served_, line.served);
  Batch batch{.store = chosen->first};
  std::int64_t query_count = 0;
  line.running_cost = 0;
  const double reading_cost = line.scans.front().scan.reading_cost;
  while (!line.scans.empty()) {
    auto& [scan, cost] = line.scans.front();
    if (query_count > 0 && query_count + scan.query_count > options_.queries_max) break;
    query_count += scan.query_count;
    line.served += scan.cost;
    line.running_cost += cost;
    batch.scans.push_back(std::move(scan.scan));
    line.scans.pop_front();
  }
  line.query_count -= query_count;
  line.is_running = true;
  line.begun = now;
  line.scan_queries = query_count / static_cast<std::int64_t>(batch.scans.size());
  line.reading_part = line.running_cost > 0 ? reading_cost / line.running_cost : 0;
  // Sums of floating point leave a rest.
  line.waiting_cost = line.scans.empty() ? 0 : line.waiting_cost - line.running_cost;
  line.running = rate_.Begin(now);
  return batch;
}

void BatchQueue::Answers(std::uint64_t store, std::int64_t scan_count, absl::Time now) {
  Line& line = lines_.find(store)->second;
  std::int64_t expected = 0;
  if (line.answered_count > 0) {
    const std::int64_t returned = std::min(line.returned_count, line.answered_count);
    expected = scan_count * returned / line.answered_count;
  }
  line.awaited_count = static_cast<std::int64_t>(line.scans.size()) + expected;
  line.answered_count = scan_count;
  line.returned_count = 0;
  line.return_until = now + std::min(options_.wait_max, line.reading_part * (now - line.begun));
}

void BatchQueue::Done(std::uint64_t store, absl::Time now, double done_part) {
  Line& done = lines_.find(store)->second;
  done.is_running = false;
  EndTask(done.running, done.running_cost, now, done_part);
  // A store is remembered until others have been served as much, if there are not too many.
  int remembered = 0;
  for (auto it = lines_.begin(); it != lines_.end();) {
    const Line& line = it->second;
    const bool is_idle = line.scans.empty() && !line.is_running;
    const bool is_behind = line.served <= served_ && line.return_until < now;
    const bool is_forgotten = is_idle && (is_behind || ++remembered > kRememberedMax);
    it = is_forgotten ? lines_.erase(it) : std::next(it);
  }
}

}  // namespace softlookup
