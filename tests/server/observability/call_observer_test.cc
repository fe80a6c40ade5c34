#include "server/observability/call_observer.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>

#include "core/base/error.h"

namespace softlookup::server {
namespace {

// Observes lookups, of which those of ten minutes or more are slow.
class CallObserverTest : public ::testing::Test {
 protected:
  // Reports a lookup that took `duration`, and waited `revision_wait` of that for its revision.
  void Report(absl::Duration duration, absl::Duration revision_wait) {
    const v1::LookupRequest request;
    LookupReport report;
    report.revision_wait = revision_wait;
    const SteadyTimePoint begin =
        std::chrono::steady_clock::now() - absl::ToChronoNanoseconds(duration);
    observer_.OnLookup(call_, begin, absl::OkStatus(),
                       {.request = request, .store = "acme/users", .report = report});
  }

  grpc::ServerContext context_;
  const CallInfo call_{.method = Method::kLookup, .context = context_};
  CallObserver observer_{absl::Minutes(10)};
};

TEST_F(CallObserverTest, CountsSlowLookups) {
  Report(absl::Minutes(10), absl::ZeroDuration());
  Report(absl::Minutes(5), absl::ZeroDuration());
  EXPECT_EQ(observer_.metrics().slow_lookup_count(), 1u);
}

TEST_F(CallObserverTest, TheWaitForARevisionMakesNoLookupSlow) {
  Report(absl::Minutes(11), absl::Minutes(10));
  EXPECT_EQ(observer_.metrics().slow_lookup_count(), 0u);
}

TEST_F(CallObserverTest, AStreamThatIsCutCountsAsARejectionAndNoAnswer) {
  observer_.OnStreamCut(MakeError(reasons::kShuttingDown, "stops"));
  std::uint64_t rejections = 0;
  for (const auto& count : observer_.metrics().RejectionCounts()) rejections += count.count;
  EXPECT_EQ(rejections, 1u);
  for (const std::uint64_t answers :
       observer_.metrics().CountsOf(Method::kStreamLookup).answers_by_code) {
    EXPECT_EQ(answers, 0u);
  }
}

}  // namespace
}  // namespace softlookup::server
