#include "server/rpc/revision_wait.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/error.h"
#include "server/rpc/alarm.h"

namespace softlookup::server {

void RevisionWait::Start(absl::Duration wait_max, std::shared_ptr<CancelToken> cancel) {
  if (wait_max == absl::InfiniteDuration()) return;
  SetAlarm(alarm_.emplace(), absl::Now() + wait_max,
           [wait_max, cancel = std::move(cancel)](bool is_time) {
             if (!is_time) return;
             cancel->wait().End(MakeError(reasons::kDeadlineExceeded,
                                          absl::StrCat("The store has not reached min_revision in ",
                                                       absl::FormatDuration(wait_max))));
           });
}

}  // namespace softlookup::server
