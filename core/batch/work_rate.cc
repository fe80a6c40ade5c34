#include "core/batch/work_rate.h"

namespace softlookup {
namespace {

// Work of longer ago counts less and less.
constexpr double kRememberedSeconds = 0.5;

}  // namespace

void WorkRate::CountUntil(absl::Time now) {
  if (running_ > 0) seconds_ += absl::ToDoubleSeconds(now - counted_until_);
  counted_until_ = now;
}

void WorkRate::Begin(absl::Time now) {
  CountUntil(now);
  ++running_;
}

void WorkRate::End(double cost, absl::Time now) {
  CountUntil(now);
  --running_;
  cost_ += cost;
  if (seconds_ > kRememberedSeconds) {
    cost_ *= kRememberedSeconds / seconds_;
    seconds_ = kRememberedSeconds;
  }
}

}  // namespace softlookup
