#include "core/batch/work_rate.h"

#include <algorithm>

namespace softlookup {
namespace {

// Work of longer ago counts less and less.
constexpr double kRememberedSeconds = 0.5;
// However wrong the rate was, one piece of work does not bring it down to less than this part.
constexpr double kCorrectedMin = 1.0 / 16;

}  // namespace

void WorkRate::CountUntil(absl::Time now) {
  if (running_ > 0) {
    const double seconds = absl::ToDoubleSeconds(now - counted_until_);
    const double cost = seconds * cost_ / seconds_;
    cost_ += cost;
    seconds_ += seconds;
    share_ += cost / running_;
  }
  counted_until_ = now;
}

WorkRate::Piece WorkRate::Begin(absl::Time now) {
  CountUntil(now);
  ++running_;
  return {.begin = now, .share_before = share_};
}

void WorkRate::End(const Piece& piece, double cost, double done, absl::Time now) {
  CountUntil(now);
  const double assumed = share_ - piece.share_before;
  const double missing = std::clamp(assumed, done, cost) - assumed;
  --running_;
  if (running_ == 0) share_ = 0;
  if (seconds_ > kRememberedSeconds) {
    cost_ *= kRememberedSeconds / seconds_;
    seconds_ = kRememberedSeconds;
  }
  // Of a piece that took longer than what is remembered, the last part counts.
  const double took = absl::ToDoubleSeconds(now - piece.begin);
  const double remembered = took > seconds_ ? seconds_ / took : 1;
  cost_ = std::max(cost_ + missing * remembered, kCorrectedMin * cost_);
}

}  // namespace softlookup
