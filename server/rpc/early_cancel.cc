#include "server/rpc/early_cancel.h"

#include <grpc/support/time.h>

namespace softlookup::server {
namespace {

// Maximum age of a call whose cancellation counts. The server itself may have ended an older call.
constexpr absl::Duration kEarlyCancelAgeMax = absl::Seconds(1);
// A call that misses its deadline after more than this time does not count, since its client is not
// to blame. A call with a shorter deadline counts as one that no server could answer in time.
constexpr absl::Duration kAnswerTimeMin = absl::Milliseconds(10);

}  // namespace

Blame BlameFor(absl::Duration age, bool is_late) {
  if (age > kEarlyCancelAgeMax) return Blame::kNone;
  if (!is_late) return Blame::kCancelled;
  return age > kAnswerTimeMin ? Blame::kNone : Blame::kLate;
}

void CountCancel(const Rpc& rpc, ConnectionCalls& connections) {
  const absl::Duration age = rpc.age();
  const gpr_timespec deadline =
      gpr_convert_clock_type(rpc.context().raw_deadline(), GPR_CLOCK_REALTIME);
  const bool is_late = gpr_time_cmp(deadline, gpr_now(GPR_CLOCK_REALTIME)) <= 0;
  const Blame blame = BlameFor(age, is_late);
  if (blame != Blame::kNone) connections.OnCancel(rpc.peer(), blame == Blame::kLate);
}

}  // namespace softlookup::server
