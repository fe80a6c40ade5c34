#include "core/scheduler/wait_bound.h"

#include <algorithm>

namespace softlookup {
namespace {

// Bounds of the time after which a refused caller should try again.
constexpr absl::Duration kRetryDelayMin = absl::Milliseconds(1);
constexpr absl::Duration kRetryDelayMax = absl::Seconds(30);

}  // namespace

std::optional<absl::Duration> RetryDelayOf(const QueuedJob& job, const WorkUntilAnswer& work,
                                           const WorkRate& rate, double stretch_max) {
  if (work.before <= 0) return std::nullopt;
  const double cost_alone = job.cost + job.reading_cost;
  const absl::Duration most = std::max(job.answer_time_max, rate.TimeOf(stretch_max * cost_alone));
  if (rate.TimeOf(work.before + work.own) <= most) return std::nullopt;
  return std::clamp(rate.TimeOf(work.before), kRetryDelayMin, kRetryDelayMax);
}

}  // namespace softlookup
