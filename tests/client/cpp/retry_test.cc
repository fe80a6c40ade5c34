#include "client/cpp/retry.h"

#include <grpcpp/channel.h>
#include <grpcpp/impl/call.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"
#include "tests/client/scripted_service.h"

namespace softlookup::client_internal {
namespace {

const absl::Status kUnavailable = absl::UnavailableError("");
const absl::Status kExhausted = absl::ResourceExhaustedError("");

RetryOptions Options() {
  return {.attempts_max = 4,
          .backoff_min = absl::Milliseconds(20),
          .backoff_max = absl::Milliseconds(100)};
}

TEST(DelayBeforeRetryTest, RangeDoublesWithEachAttemptUpToTheMost) {
  const auto delay = [](int attempts_made, double jitter) {
    RetryOptions options = Options();
    options.attempts_max = 100;
    return *DelayBeforeRetry(options, attempts_made, kUnavailable, std::nullopt, jitter);
  };
  EXPECT_EQ(delay(1, 0), absl::Milliseconds(20));
  EXPECT_EQ(delay(1, 1), absl::Milliseconds(40));
  EXPECT_EQ(delay(2, 0), absl::Milliseconds(20));
  EXPECT_EQ(delay(2, 0.5), absl::Milliseconds(50));
  EXPECT_EQ(delay(2, 1), absl::Milliseconds(80));
  EXPECT_EQ(delay(3, 1), absl::Milliseconds(100));
  EXPECT_EQ(delay(99, 1), absl::Milliseconds(100));
}

TEST(DelayBeforeRetryTest, StopsAtTheLastAttempt) {
  EXPECT_TRUE(DelayBeforeRetry(Options(), 3, kUnavailable, std::nullopt, 0).has_value());
  EXPECT_FALSE(DelayBeforeRetry(Options(), 4, kUnavailable, std::nullopt, 0).has_value());
}

TEST(DelayBeforeRetryTest, AddsWhatTheServerAsksFor) {
  EXPECT_EQ(DelayBeforeRetry(Options(), 1, kUnavailable, absl::Seconds(3), 0),
            absl::Seconds(3) + absl::Milliseconds(20));
}

TEST(DelayBeforeRetryTest, ExhaustedResourceIsRetriedOnlyIfTheServerSaysWhen) {
  EXPECT_FALSE(DelayBeforeRetry(Options(), 1, kExhausted, std::nullopt, 0).has_value());
  EXPECT_TRUE(DelayBeforeRetry(Options(), 1, kExhausted, absl::ZeroDuration(), 0).has_value());
}

TEST(DelayBeforeRetryTest, ARefusedCertificateIsNotRetried) {
  const absl::Status untrusted =
      absl::UnavailableError("Ssl handshake failed: SSL_ERROR_SSL: certificate verify failed");
  EXPECT_FALSE(DelayBeforeRetry(Options(), 1, untrusted, std::nullopt, 0).has_value());
}

TEST(DelayBeforeRetryTest, ACallThatAStoppingServerDroppedIsMadeAgain) {
  absl::Status cancelled = absl::CancelledError("");
  EXPECT_TRUE(DelayBeforeRetry(Options(), 1, cancelled, std::nullopt, 0).has_value());
  google::rpc::ErrorInfo info;
  info.set_reason("CANCELLED");
  info.set_domain("softlookup");
  cancelled.SetPayload("type.googleapis.com/google.rpc.ErrorInfo",
                       absl::Cord(info.SerializeAsString()));
  EXPECT_FALSE(DelayBeforeRetry(Options(), 1, cancelled, std::nullopt, 0).has_value());
}

TEST(DelayBeforeRetryTest, ServerMayForbidIt) {
  EXPECT_FALSE(
      DelayBeforeRetry(Options(), 1, kUnavailable, absl::InfiniteDuration(), 0).has_value());
}

TEST(DelayBeforeRetryTest, OtherFailuresAreFinal) {
  for (const auto code : {absl::StatusCode::kInvalidArgument, absl::StatusCode::kDeadlineExceeded,
                          absl::StatusCode::kAborted, absl::StatusCode::kInternal}) {
    EXPECT_FALSE(
        DelayBeforeRetry(Options(), 1, absl::Status(code, ""), absl::ZeroDuration(), 0).has_value())
        << code;
  }
}

// A channel whose state stays as it is. Counts how often somebody waits for it.
class CountingChannel : public grpc::ChannelInterface {
 public:
  grpc_connectivity_state GetState(bool try_to_connect) override {
    tries_to_connect = try_to_connect;
    return state;
  }

  grpc_connectivity_state state = GRPC_CHANNEL_TRANSIENT_FAILURE;
  bool tries_to_connect = false;
  int waits = 0;

 private:
  grpc::internal::Call CreateCall(const grpc::internal::RpcMethod&, grpc::ClientContext*,
                                  grpc::CompletionQueue*) override {
    return {};
  }
  void PerformOpsOnCall(grpc::internal::CallOpSetInterface*, grpc::internal::Call*) override {}
  void* RegisterMethod(const char*) override { return nullptr; }
  void NotifyOnStateChangeImpl(grpc_connectivity_state, gpr_timespec, grpc::CompletionQueue*,
                               void*) override {}
  bool WaitForStateChangeImpl(grpc_connectivity_state, gpr_timespec) override {
    ++waits;
    return false;
  }
};

// gRPC goes on connecting only while somebody waits for the channel.
TEST(CallWithRetriesTest, WaitsForTheChannelBetweenAttempts) {
  const auto channel = std::make_shared<CountingChannel>();
  Servers servers({channel});
  int attempts = 0;
  const absl::Status status =
      CallWithRetries(servers, Options(), Repeat::kSafe, absl::InfiniteFuture(),
                      [&](const Server&, grpc::ClientContext*) {
                        EXPECT_EQ(channel->waits, attempts);
                        EXPECT_EQ(channel->tries_to_connect, attempts > 0);
                        ++attempts;
                        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "Connection refused");
                      });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(attempts, Options().attempts_max);
  EXPECT_EQ(channel->waits, attempts - 1);
}

TEST(CallWithRetriesTest, ACallThatIsNotMadeAgainWaitsForAChannelThatHasFailed) {
  const auto channel = std::make_shared<CountingChannel>();
  Servers servers({channel});
  int attempts = 0;
  const absl::Status status =
      CallWithRetries(servers, Options(), Repeat::kUnsafe, absl::InfiniteFuture(),
                      [&](const Server&, grpc::ClientContext*) {
                        EXPECT_EQ(channel->waits, 1);
                        EXPECT_TRUE(channel->tries_to_connect);
                        ++attempts;
                        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "Connection refused");
                      });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(attempts, 1);
}

// Fails once, and then meets its deadline.
absl::Status RefusedThenLate(const std::shared_ptr<CountingChannel>& channel, Repeat repeat) {
  Servers servers({channel});
  int attempts = 0;
  return CallWithRetries(servers, Options(), repeat, absl::InfiniteFuture(),
                         [&](const Server&, grpc::ClientContext*) {
                           if (++attempts == 1) {
                             return testing::DetailedStatus(grpc::StatusCode::UNAVAILABLE,
                                                            "Connection refused", "LOADING");
                           }
                           return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "");
                         });
}

TEST(CallWithRetriesTest, ADeadlineThatIsMetWithoutAConnectionIsGivenTheReasonBefore) {
  const auto channel = std::make_shared<CountingChannel>();
  for (const auto state : {GRPC_CHANNEL_CONNECTING, GRPC_CHANNEL_TRANSIENT_FAILURE}) {
    channel->state = state;
    EXPECT_EQ(RefusedThenLate(channel, Repeat::kSafe).message(), "Connection refused");
    // The call may have been made, whatever the state is now.
    EXPECT_TRUE(absl::IsDeadlineExceeded(RefusedThenLate(channel, Repeat::kUnsafe)));
  }
  channel->state = GRPC_CHANNEL_READY;
  EXPECT_TRUE(absl::IsDeadlineExceeded(RefusedThenLate(channel, Repeat::kSafe)));
}

// The server has not looked at it.
TEST(CallWithRetriesTest, AnyCallIsMadeAgainThatALoadingServerRefuses) {
  const auto channel = std::make_shared<CountingChannel>();
  Servers servers({channel});
  int attempts = 0;
  const absl::Status status = CallWithRetries(
      servers, Options(), Repeat::kUnsafe, absl::InfiniteFuture(),
      [&](const Server&, grpc::ClientContext*) {
        return ++attempts == 3
                   ? grpc::Status::OK
                   : testing::DetailedStatus(grpc::StatusCode::UNAVAILABLE, "loading", "LOADING");
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(attempts, 3);
}

}  // namespace
}  // namespace softlookup::client_internal
