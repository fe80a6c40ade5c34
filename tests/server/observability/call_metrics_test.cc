#include "server/observability/call_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "core/base/error.h"

namespace softlookup::server {
namespace {

TEST(CallMetricsTest, EveryReasonForARejectionHasItsCounter) {
  std::ifstream file(SOFTLOOKUP_SOURCE_DIR "/core/base/error.h");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::regex reason(R"re(StatusCode::(kResourceExhausted|kUnavailable),\s*"([A-Z_]+)")re");
  std::set<std::string> expected = {"OTHER"}, actual;
  for (std::sregex_iterator it(text.begin(), text.end(), reason), end; it != end; ++it) {
    expected.insert((*it)[2]);
  }
  EXPECT_GT(expected.size(), 5u);
  CallMetrics metrics;
  for (const auto& count : metrics.RejectionCounts()) actual.insert(std::string(count.reason));
  EXPECT_EQ(actual, expected) << "kRejectionReasons in server/observability/call_metrics.cc";
}

TEST(CallMetricsTest, CountsRejectionsByReasonAndOthersTogether) {
  CallMetrics metrics;
  const auto count_of = [&](absl::string_view reason) {
    for (const auto& count : metrics.RejectionCounts()) {
      if (count.reason == reason) return count.count;
    }
    return std::uint64_t{0};
  };
  metrics.CountRejection(MakeError(reasons::kQueueFull, "full"));
  metrics.CountRejection(MakeError(reasons::kQueueFull, "full"));
  metrics.CountRejection(MakeError(reasons::kShuttingDown, "stops"));
  metrics.CountRejection(absl::ResourceExhaustedError("without a reason"));
  metrics.CountRejection(MakeError(reasons::kStoreNotFound, "not a rejection"));
  metrics.CountRejection(absl::OkStatus());
  EXPECT_EQ(count_of("QUEUE_FULL"), 2u);
  EXPECT_EQ(count_of("SHUTTING_DOWN"), 1u);
  EXPECT_EQ(count_of("OTHER"), 1u);
  EXPECT_EQ(count_of("MEMORY_LIMIT"), 0u);
}

TEST(CallMetricsTest, CountsRestoresByTheirEnd) {
  CallMetrics metrics;
  metrics.CountRestore(/*is_ok=*/true);
  metrics.CountRestore(/*is_ok=*/true);
  metrics.CountRestore(/*is_ok=*/false);
  EXPECT_EQ(metrics.restore_count(/*is_ok=*/true), 2u);
  EXPECT_EQ(metrics.restore_count(/*is_ok=*/false), 1u);
}

TEST(CallMetricsTest, CountsAnswersByMethodAndCode) {
  CallMetrics metrics;
  metrics.OnBegin(Method::kLookup);
  metrics.OnBegin(Method::kLookup);
  metrics.OnEnd(Method::kLookup);
  metrics.CountAnswer(Method::kLookup, std::chrono::nanoseconds(7), absl::OkStatus());
  metrics.CountAnswer(Method::kLookup, std::chrono::nanoseconds(5),
                      MakeError(reasons::kQueueFull, "full"));
  const CallMetrics::MethodCounts counts = metrics.CountsOf(Method::kLookup);
  EXPECT_EQ(counts.in_progress, 1);
  EXPECT_EQ(counts.duration.sum, 12);
  EXPECT_EQ(counts.answers_by_code[static_cast<std::size_t>(absl::StatusCode::kOk)], 1u);
  EXPECT_EQ(counts.answers_by_code[static_cast<std::size_t>(absl::StatusCode::kResourceExhausted)],
            1u);
  EXPECT_EQ(metrics.CountsOf(Method::kAppend).duration.sum, 0);
}

}  // namespace
}  // namespace softlookup::server
