#include "server/observability/call_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "core/base/error.h"

namespace softlookup::server {
namespace {

TEST(CallObserverTest, EveryReasonForARejectionHasItsCounter) {
  std::ifstream file(SOFTLOOKUP_SOURCE_DIR "/core/base/error.h");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::regex reason(R"re(StatusCode::(kResourceExhausted|kUnavailable),\s*"([A-Z_]+)")re");
  std::set<std::string> expected = {"OTHER"}, actual;
  for (std::sregex_iterator it(text.begin(), text.end(), reason), end; it != end; ++it) {
    expected.insert((*it)[2]);
  }
  EXPECT_GT(expected.size(), 5u);
  CallObserver observer(absl::ZeroDuration());
  for (const auto& count : observer.RejectionCounts()) actual.insert(std::string(count.reason));
  EXPECT_EQ(actual, expected) << "kRejectionReasons in server/call_observer.cc";
}

TEST(CallObserverTest, CountsRejectionsByReasonAndOthersTogether) {
  CallObserver observer(absl::ZeroDuration());
  const auto count_of = [&](absl::string_view reason) {
    for (const auto& count : observer.RejectionCounts()) {
      if (count.reason == reason) return count.count;
    }
    return std::uint64_t{0};
  };
  observer.OnStreamCut(MakeError(reasons::kQueueFull, "full"));
  observer.OnStreamCut(MakeError(reasons::kQueueFull, "full"));
  observer.OnStreamCut(MakeError(reasons::kShuttingDown, "stops"));
  observer.OnStreamCut(absl::ResourceExhaustedError("without a reason"));
  observer.OnStreamCut(MakeError(reasons::kStoreNotFound, "not a rejection"));
  observer.OnStreamCut(absl::OkStatus());
  EXPECT_EQ(count_of("QUEUE_FULL"), 2u);
  EXPECT_EQ(count_of("SHUTTING_DOWN"), 1u);
  EXPECT_EQ(count_of("OTHER"), 1u);
  EXPECT_EQ(count_of("MEMORY_LIMIT"), 0u);
}

}  // namespace
}  // namespace softlookup::server
