#ifndef SOFTLOOKUP_CLIENT_CPP_RETRY_H_
#define SOFTLOOKUP_CLIENT_CPP_RETRY_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/servers.h"
#include "softlookup/client.h"

namespace softlookup::client_internal {

// Whether a call may be sent again after a failure.
enum class Repeat {
  kUnsafe,  // Running the call twice may differ from running it once.
  kSafe,    // Running the call twice has the effect of running it once.
};

// Returns the wait that the trailer grpc-retry-pushback-ms of a failed call asks for. Returns
// InfiniteDuration if the trailer forbids a retry: it is negative or no number. Unset if there is
// no such trailer.
std::optional<absl::Duration> Pushback(const grpc::ClientContext& context);

// Returns how long to wait before the next attempt, or unset if there must be none. `attempts_made`
// must be at least 1; the last attempt failed with `status`. `server_delay` is the result of
// Pushback(), or if that is unset, of RetryDelay(). `jitter`, in [0, 1], chooses the backoff: 0 its
// shortest, 1 its longest. RetryOptions describes the rules.
std::optional<absl::Duration> DelayBeforeRetry(const RetryOptions& options, int attempts_made,
                                               const absl::Status& status,
                                               std::optional<absl::Duration> server_delay,
                                               double jitter);

// Does the same with a random jitter, and with the server's delay from `context` or `status`.
// `context` must be that of the failed call.
std::optional<absl::Duration> DelayBeforeRetry(const RetryOptions& options, int attempts_made,
                                               const absl::Status& status,
                                               const grpc::ClientContext& context);

// A blocking unary call to a server, made once.
using Attempt = absl::FunctionRef<grpc::Status(const Server&, grpc::ClientContext*)>;

// Runs `attempt` with a new context each time, at the server of `servers` that is the current one
// then. Ends when an attempt succeeds, when its failure must not be retried, or when the next
// attempt would begin after `deadline`. Each context has this deadline. Returns the status of the
// last attempt; or that of the one before, if the last met the deadline while the server was not
// connected and the call is Repeat::kSafe. The servers connect between the attempts. If all have
// failed to connect and the call is Repeat::kUnsafe, waits for one before the only attempt: a
// second, or half of the time that there is, if that is less.
//
// A call that a follower refuses, or a server that is loading, goes to each other server once
// without a wait. These attempts count for attempts_max.
absl::Status CallWithRetries(Servers& servers, const RetryOptions& options, Repeat repeat,
                             absl::Time deadline, Attempt attempt);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_RETRY_H_
