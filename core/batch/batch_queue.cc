#include "core/batch/batch_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace softlookup {
namespace {

// Idle stores whose service is remembered.
constexpr int kRememberedMax = 64;

}  // namespace

bool BatchQueue::Add(WaitingScan& scan, absl::Time now, bool is_admitted) {
  const bool is_empty = waiting_cost_ == 0;
  if (!is_admitted && !is_empty && waiting_cost_ + scan.cost > options_.waiting_cost_max) {
    return false;
  }
  Line& line = lines_[scan.store];
  if (line.scans.empty()) line.served = std::max(line.served, served_);
  waiting_cost_ += scan.cost;
  line.query_count += scan.query_count;
  const bool others_may_come = line.is_running && line.is_shared;
  const absl::Time ready = others_may_come ? now + options_.wait_max : now;
  line.scans.push_back({.scan = std::move(scan), .ready = ready});
  return true;
}

absl::Time BatchQueue::ReadyTime(const Line& line) const {
  if (line.is_running || line.scans.empty()) return absl::InfiniteFuture();
  if (line.query_count >= options_.queries_max) return absl::InfinitePast();
  return line.scans.front().ready;
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
  while (!line.scans.empty()) {
    WaitingScan& scan = line.scans.front().scan;
    if (query_count > 0 && query_count + scan.query_count > options_.queries_max) break;
    query_count += scan.query_count;
    line.served += scan.cost;
    waiting_cost_ -= scan.cost;
    batch.scans.push_back(std::move(scan.scan));
    line.scans.pop_front();
  }
  line.query_count -= query_count;
  line.is_running = true;
  line.is_shared = batch.scans.size() > 1;
  const bool nothing_waits = std::all_of(
      lines_.begin(), lines_.end(), [](const auto& entry) { return entry.second.scans.empty(); });
  if (nothing_waits) waiting_cost_ = 0;  // Sums of floating point leave a rest.
  return batch;
}

void BatchQueue::Done(std::uint64_t store) {
  lines_.find(store)->second.is_running = false;
  // A store is remembered until others have been served as much, if there are not too many.
  int remembered = 0;
  for (auto it = lines_.begin(); it != lines_.end();) {
    const Line& line = it->second;
    const bool is_idle = line.scans.empty() && !line.is_running;
    const bool is_forgotten = is_idle && (line.served <= served_ || ++remembered > kRememberedMax);
    it = is_forgotten ? lines_.erase(it) : std::next(it);
  }
}

}  // namespace softlookup
