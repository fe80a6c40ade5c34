#ifndef SOFTLOOKUP_SERVER_RPC_REVISION_WAIT_H_
#define SOFTLOOKUP_SERVER_RPC_REVISION_WAIT_H_

#include <grpcpp/alarm.h>

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"

namespace softlookup::server {

// When a lookup's wait for its revision ends, and with which error.
struct RevisionWaitEnd {
  absl::Time time = absl::InfiniteFuture();
  absl::Status status;  // OK if `time` is InfiniteFuture.
};

// Returns the end of a wait that begins at `begin`: after `wait_max`, or before `deadline` if that
// comes first. The wait leaves a tenth of the time up to `deadline`, and at most 250 ms, for the
// error to reach the caller: at the deadline, the caller's gRPC ends the call with an error of its
// own, which does not say what the lookup waited for. An end after `wait_max` has the metadata
// `waited_for`: the caller has time left, to ask elsewhere.
RevisionWaitEnd EndOfRevisionWait(absl::Time begin, absl::Duration wait_max, absl::Time deadline);

// Ends a lookup's wait for its revision with DEADLINE_EXCEEDED after a maximum time, or shortly
// before the lookup's deadline. The maximum bounds how long a waiting lookup holds its resources.
// The destructor stops the timer.
class RevisionWait {
 public:
  // Starts the timer. If neither `wait_max` nor `deadline` is finite, the wait is not bounded.
  void Start(absl::Duration wait_max, absl::Time deadline, std::shared_ptr<CancelToken> cancel);

 private:
  // Made by Start(), not before: every lookup has a RevisionWait, but few lookups wait, and an
  // alarm is slow to make.
  std::optional<grpc::Alarm> alarm_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_REVISION_WAIT_H_
