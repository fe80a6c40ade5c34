#ifndef SOFTLOOKUP_SERVER_RPC_REVISION_WAIT_H_
#define SOFTLOOKUP_SERVER_RPC_REVISION_WAIT_H_

#include <grpcpp/alarm.h>

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "core/base/cancellation.h"

namespace softlookup::server {

// Ends a lookup's wait for its revision with DEADLINE_EXCEEDED after a maximum time, even if the
// lookup's deadline is later. This bounds how long a waiting lookup holds its resources. The
// destructor stops the timer.
class RevisionWait {
 public:
  // Starts the timer. If `wait_max` is infinite, the wait is not bounded.
  void Start(absl::Duration wait_max, std::shared_ptr<CancelToken> cancel);

 private:
  // Made by Start(), not before: every lookup has a RevisionWait, but few lookups wait, and an
  // alarm is slow to make.
  std::optional<grpc::Alarm> alarm_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_REVISION_WAIT_H_
