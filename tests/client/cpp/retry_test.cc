#include "client/cpp/retry.h"

#include <gtest/gtest.h>

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"

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

}  // namespace
}  // namespace softlookup::client_internal
