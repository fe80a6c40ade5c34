#include "core/scheduler/work_rate.h"

#include <algorithm>

#include "core/base/check.h"

namespace softlookup {
namespace {

// Most busy time, in seconds, that the estimate covers. The weight of older work decays.
constexpr double kRememberedSeconds = 0.5;
// The end of one run lowers the estimated rate to no less than this part of what it was.
constexpr double kCorrectedMin = 1.0 / 16;

}  // namespace

void WorkRate::CountUntil(absl::Time now) {
  SOFTLOOKUP_DCHECK(now >= counted_until_) << now << " comes before " << counted_until_;
  if (running_ > 0) {
    const double seconds = absl::ToDoubleSeconds(now - counted_until_);
    const double cost = seconds * cost_ / seconds_;
    cost_ += cost;
    seconds_ += seconds;
    share_ += cost / running_;
  }
  counted_until_ = now;
}

WorkRate::Run WorkRate::Begin(absl::Time now) {
  CountUntil(now);
  ++running_;
  return {.begin = now, .share_before = share_};
}

void WorkRate::End(const Run& run, double cost, double done, absl::Time now) {
  SOFTLOOKUP_CHECK(running_ > 0);
  SOFTLOOKUP_CHECK(done >= 0 && done <= cost) << done << " of " << cost;
  CountUntil(now);
  const double assumed = share_ - run.share_before;
  // CountUntil() has counted `assumed` as the work of this run. The true work is between `done` and
  // `cost`. Adding `missing` corrects the count. `missing` is negative if too much was counted.
  const double missing = std::clamp(assumed, done, cost) - assumed;
  --running_;
  if (running_ == 0) share_ = 0;
  if (seconds_ > kRememberedSeconds) {
    cost_ *= kRememberedSeconds / seconds_;
    seconds_ = kRememberedSeconds;
  }
  // A run can take longer than the time that the estimate covers. Only the part of `missing` that
  // falls into that time is then added.
  const double took = absl::ToDoubleSeconds(now - run.begin);
  const double remembered = took > seconds_ ? seconds_ / took : 1;
  cost_ = std::max(cost_ + missing * remembered, kCorrectedMin * cost_);
}

}  // namespace softlookup
