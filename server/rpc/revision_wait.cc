#include "server/rpc/revision_wait.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/error.h"
#include "server/rpc/alarm.h"

namespace softlookup::server {

RevisionWaitEnd EndOfRevisionWait(absl::Time begin, absl::Duration wait_max, absl::Time deadline) {
  const absl::Duration time_left = std::max(deadline - begin, absl::ZeroDuration());
  const absl::Duration until_deadline =
      time_left - std::min(time_left / 10, absl::Milliseconds(250));
  if (until_deadline == absl::InfiniteDuration() && wait_max == absl::InfiniteDuration()) return {};
  if (until_deadline < wait_max) {
    return {.time = begin + until_deadline,
            .status = MakeError(reasons::kDeadlineExceeded, "The deadline is about to pass")};
  }
  return {.time = begin + wait_max,
          .status = MakeError(reasons::kDeadlineExceeded,
                              absl::StrCat("The server lets a lookup wait for ",
                                           absl::FormatDuration(wait_max), " at most"),
                              {{"waited_for", "revision"}})};
}

void RevisionWait::Start(absl::Duration wait_max, absl::Time deadline,
                         std::shared_ptr<CancelToken> cancel) {
  RevisionWaitEnd end = EndOfRevisionWait(absl::Now(), wait_max, deadline);
  if (end.time == absl::InfiniteFuture()) return;
  SetAlarm(alarm_.emplace(), end.time,
           [status = std::move(end.status), cancel = std::move(cancel)](bool is_time) {
             if (is_time) cancel->wait().End(status);
           });
}

}  // namespace softlookup::server
