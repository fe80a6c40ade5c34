#ifndef SOFTLOOKUP_CLIENT_CPP_RETRY_H_
#define SOFTLOOKUP_CLIENT_CPP_RETRY_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "softlookup/client.h"

namespace softlookup::client_internal {

enum class Repeat {
  kUnsafe,  // Two executions can differ from one. The call is sent once.
  kSafe,
};

// Returns the wait that the trailer grpc-retry-pushback-ms of a failed call asks for,
// InfiniteDuration if it forbids a retry, or unset if there is no such trailer.
std::optional<absl::Duration> Pushback(const grpc::ClientContext& context);

// Returns how long to wait before the next attempt, or unset if there must be none. `attempts_made`
// must be at least 1; the last attempt failed with `status`. `server_delay` is that of Pushback(),
// or else of RetryDelay(). `jitter`, in [0, 1], places the backoff inside its range. RetryOptions
// has the rules.
std::optional<absl::Duration> DelayBeforeRetry(const RetryOptions& options, int attempts_made,
                                               const absl::Status& status,
                                               std::optional<absl::Duration> server_delay,
                                               double jitter);

// As above, with the server's delay from `context`, that of the failed call, or from `status`, and
// with a random jitter.
std::optional<absl::Duration> DelayBeforeRetry(const RetryOptions& options, int attempts_made,
                                               const absl::Status& status,
                                               const grpc::ClientContext& context);

// Runs `attempt`, a blocking unary call, with a new context each time, until it succeeds, must not
// be retried, or `deadline` leaves no time. Returns the status of the last attempt.
absl::Status CallWithRetries(const RetryOptions& options, Repeat repeat, absl::Time deadline,
                             absl::FunctionRef<grpc::Status(grpc::ClientContext*)> attempt);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_RETRY_H_
