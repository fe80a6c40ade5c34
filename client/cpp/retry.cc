#include "client/cpp/retry.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/tls_failure.h"
#include "softlookup/error_details.h"

namespace softlookup::client_internal {
namespace {

// How long a call that must not be made again waits for a server if the last attempt to connect
// has failed at all servers. Each is tried again within half a second (kReconnectBackoffMax).
constexpr absl::Duration kConnectWait = absl::Seconds(1);

}  // namespace

std::optional<absl::Duration> Pushback(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto it = trailers.find("grpc-retry-pushback-ms");
  if (it == trailers.end()) return std::nullopt;
  std::int64_t delay_ms;
  if (!absl::SimpleAtoi(absl::string_view(it->second.data(), it->second.size()), &delay_ms) ||
      delay_ms < 0) {
    return absl::InfiniteDuration();
  }
  return absl::Milliseconds(delay_ms);
}

std::optional<absl::Duration> DelayBeforeRetry(const RetryOptions& options, int attempts_made,
                                               const absl::Status& status,
                                               std::optional<absl::Duration> server_delay,
                                               double jitter) {
  if (attempts_made >= options.attempts_max) return std::nullopt;
  if (TlsFailureOf(status) != TlsFailure::kNone) return std::nullopt;
  // A server that stops drops the calls that are just arriving. Such a call ends with CANCELLED
  // without a reason, and the server has not begun it.
  const bool was_dropped = absl::IsCancelled(status) && ErrorReason(status).empty();
  const bool may_pass = absl::IsUnavailable(status) || was_dropped ||
                        (absl::IsResourceExhausted(status) && server_delay.has_value());
  if (!may_pass || server_delay == absl::InfiniteDuration()) return std::nullopt;
  absl::Duration ceiling = options.backoff_min;
  for (int i = 0; i < attempts_made && ceiling < options.backoff_max; ++i) ceiling *= 2;
  ceiling = std::min(ceiling, options.backoff_max);
  return options.backoff_min + jitter * (ceiling - options.backoff_min) +
         server_delay.value_or(absl::ZeroDuration());
}

std::optional<absl::Duration> DelayBeforeRetry(const RetryOptions& options, int attempts_made,
                                               const absl::Status& status,
                                               const grpc::ClientContext& context) {
  thread_local absl::InsecureBitGen random;
  std::optional<absl::Duration> server_delay = Pushback(context);
  if (!server_delay.has_value()) server_delay = RetryDelay(status);
  return DelayBeforeRetry(options, attempts_made, status, server_delay,
                          absl::Uniform(random, 0.0, 1.0));
}

absl::Status CallWithRetries(Servers& servers, const RetryOptions& options, Repeat repeat,
                             absl::Time deadline, Attempt attempt) {
  // gRPC connects only while somebody waits for the channel. Without a waiter, it looks at its
  // attempts to connect every 5 seconds, and calls fail meanwhile with what it saw last. Nobody
  // waits after a call that is not made again, so the next such call does.
  if (repeat == Repeat::kUnsafe && servers.CannotConnect()) {
    // The rest of the time is left for the attempt, which then says why it failed.
    const absl::Time now = absl::Now();
    servers.AwaitConnection(now + std::min(kConnectWait, (deadline - now) / 2));
  }
  absl::Status last;
  std::size_t others = servers.size() - 1;  // Servers that may be asked without a wait.
  for (int attempts_made = 1;; ++attempts_made) {
    const Server& server = servers.Connect(deadline);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(deadline));
    absl::Status status = FromGrpcStatus(attempt(server, &context));
    if (status.ok()) return status;
    servers.NoteFailure(server, status);
    // The last attempt can meet the deadline while the channel still connects. Why the attempts
    // before it failed says more, such as that the connection is refused.
    if (repeat == Repeat::kSafe && absl::IsDeadlineExceeded(status) && !last.ok() &&
        server.channel->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY) {
      return last;
    }
    const bool is_unmade = IsLoading(status) || IsRefusedByFollower(status);
    if (is_unmade && others > 0 && attempts_made < options.attempts_max) {
      --others;
      last = std::move(status);
      continue;
    }
    if (repeat == Repeat::kUnsafe && !IsLoading(status)) return status;
    const auto delay = DelayBeforeRetry(options, attempts_made, status, context);
    if (!delay.has_value()) return status;
    const absl::Time next = absl::Now() + *delay;
    if (next >= deadline) return status;
    servers.AwaitConnection(next);
    absl::SleepFor(next - absl::Now());
    last = std::move(status);
  }
}

}  // namespace softlookup::client_internal
