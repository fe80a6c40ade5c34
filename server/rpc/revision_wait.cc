#include "server/rpc/revision_wait.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/error.h"

namespace softlookup::server {

void RevisionWait::Start(absl::Duration wait_max, std::shared_ptr<CancelToken> cancel) {
  if (wait_max == absl::InfiniteDuration()) return;
  alarm_.Set(absl::ToChronoTime(absl::Now() + wait_max),
             [wait_max, cancel = std::move(cancel)](bool expired) {
               if (!expired) return;
               cancel->EndSleep(MakeError(reasons::kDeadlineExceeded,
                                          absl::StrCat("The store has not reached min_revision in ",
                                                       absl::FormatDuration(wait_max))));
             });
}

}  // namespace softlookup::server
