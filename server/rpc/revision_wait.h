#ifndef SOFTLOOKUP_SERVER_RPC_REVISION_WAIT_H_
#define SOFTLOOKUP_SERVER_RPC_REVISION_WAIT_H_

#include <grpcpp/alarm.h>

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "core/base/cancellation.h"

namespace softlookup::server {

// Ends a lookup's wait for its revision when it has taken too long, whatever the lookup's deadline:
// DEADLINE_EXCEEDED. What the lookup holds is held for no longer.
class RevisionWait {
 public:
  // Infinite: the wait may take for ever.
  void Start(absl::Duration wait_max, std::shared_ptr<CancelToken> cancel);

 private:
  // Made by Start(): every lookup has a RevisionWait, few wait, and gRPC makes an alarm slowly.
  std::optional<grpc::Alarm> alarm_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_REVISION_WAIT_H_
