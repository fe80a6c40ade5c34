#ifndef SOFTLOOKUP_SERVER_RPC_EARLY_CANCEL_H_
#define SOFTLOOKUP_SERVER_RPC_EARLY_CANCEL_H_

#include "absl/time/time.h"
#include "server/limits/connection_calls.h"
#include "server/rpc/rpc.h"

namespace softlookup::server {

// Whether the client is to blame for a call that was cancelled before it was answered. The server
// cuts the connections of clients that cancel calls as soon as they open them
// (docs/decisions/0019-abusive-connections-are-cut.md).
enum class Blame {
  kNone,       // The server may have ended the call, or may have been too slow.
  kCancelled,  // The client cancelled the call soon after it came.
  kLate,       // The client set a deadline that no server could meet.
};

// `age` is the time from the call's arrival to its cancellation. `is_late`: the call's deadline is
// past.
Blame BlameFor(absl::Duration age, bool is_late);

// Counts the cancellation of `rpc` in `connections`, if its client is to blame.
void CountCancel(const Rpc& rpc, ConnectionCalls& connections);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_EARLY_CANCEL_H_
