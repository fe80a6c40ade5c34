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
  kUnsafe,  // A second execution could differ from one: sent once.
  kSafe,
};

// The wait that the trailers of a failed call ask for (grpc-retry-pushback-ms), InfiniteDuration if
// they forbid a retry, unset if they say nothing.
std::optional<absl::Duration> Pushback(const grpc::ClientContext& context);

// How long to wait before the next attempt, after `attempts_made` >= 1 of which the last failed
// with `status`; unset if there shall be none. `server_delay` is what Pushback() or else
// RetryDelay() says. `jitter` in [0, 1] places the backoff inside its range. RetryOptions has the
// rules.
std::optional<absl::Duration> DelayBeforeRetry(const RetryOptions& options, int attempts_made,
                                               const absl::Status& status,
                                               std::optional<absl::Duration> server_delay,
                                               double jitter);

// The same, as `context`, that of the failed call, and `status` tell it, and at random.
std::optional<absl::Duration> DelayBeforeRetry(const RetryOptions& options, int attempts_made,
                                               const absl::Status& status,
                                               const grpc::ClientContext& context);

// Runs `attempt`, a blocking unary call, with fresh contexts until it succeeds, may not be retried,
// or `deadline` leaves no time.
absl::Status CallWithRetries(const RetryOptions& options, Repeat repeat, absl::Time deadline,
                             absl::FunctionRef<grpc::Status(grpc::ClientContext*)> attempt);

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_RETRY_H_
