#include "server/limits/reset_detector.h"

namespace softlookup::server {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);

}  // namespace

void ResetDetector::MoveTo(absl::Time now) {
  if (now < second_ + kSecond) return;
  before_ = now < second_ + 2 * kSecond ? current_ : Counts{};
  current_ = {};
  second_ = now;
}

bool ResetDetector::OnCancel(bool is_late) {
  ++(is_late ? current_.late : current_.cancelled);
  const std::uint64_t unanswered =
      current_.cancelled + current_.late + before_.cancelled + before_.late;
  const bool are_few = current_.cancelled <= kCancelledMax &&
                       current_.cancelled + current_.late <= kCancelledOrLateMax;
  // The 1 is this call: OnEnd() counts its end later.
  if (are_few || 2 * unanswered <= current_.ended + before_.ended + 1) return false;
  current_ = before_ = {};
  return true;
}

bool ResetDetector::IsIdle(absl::Time now) const { return now >= second_ + 2 * kSecond; }

}  // namespace softlookup::server
