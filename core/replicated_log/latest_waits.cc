#include "core/replicated_log/latest_waits.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace softlookup {
namespace {

absl::Status TookTooLong() {
  return WithRetryAfter(
      MakeError(reasons::kClusterUnavailable,
                "This server does not know whether it has all that its group has written: etcd has "
                "not answered, or the server is behind"),
      absl::Seconds(1));
}

}  // namespace

void LatestWaits::Add(Done done) {
  waits_.push_back({.end = clock_.Now() + kWaitMax,
                    .question = questions_ + 1,
                    .sequence = std::nullopt,
                    .done = std::move(done)});
  AskIfNeeded();
}

void LatestWaits::Show(std::uint64_t sequence) {
  shown_ = std::max(shown_, sequence);
  EndIf([this](const Wait& wait) { return wait.sequence.has_value() && *wait.sequence <= shown_; },
        absl::OkStatus());
}

void LatestWaits::Tick() {
  EndIf([now = clock_.Now()](const Wait& wait) { return wait.end <= now; }, TookTooLong());
  AskIfNeeded();
}

void LatestWaits::EndAll(const absl::Status& why) {
  EndIf([](const Wait&) { return true; }, why);
}

void LatestWaits::AskIfNeeded() {
  const auto needs_answer = [](const Wait& wait) { return !wait.sequence.has_value(); };
  if (is_asking_ || std::ranges::none_of(waits_, needs_answer)) return;
  is_asking_ = true;
  ++questions_;
  ask_([this](const Answer& answer) { OnAnswer(answer); });
}

void LatestWaits::OnAnswer(const Answer& answer) {
  is_asking_ = false;
  if (!answer.ok()) return;  // The next Tick() asks again.
  for (Wait& wait : waits_) {
    if (!wait.sequence.has_value() && wait.question <= questions_) wait.sequence = *answer;
  }
  Show(shown_);
  AskIfNeeded();
}

void LatestWaits::EndIf(absl::AnyInvocable<bool(const Wait&)> ends, const absl::Status& status) {
  const auto first = std::stable_partition(waits_.begin(), waits_.end(),
                                           [&](const Wait& wait) { return !ends(wait); });
  std::vector<Wait> ended(std::make_move_iterator(first), std::make_move_iterator(waits_.end()));
  waits_.erase(first, waits_.end());
  for (Wait& wait : ended) wait.done(status);
}

}  // namespace softlookup
