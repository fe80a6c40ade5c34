#include "server/rpc/call_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "server/rpc/status.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

class CountingStream : public Stream {
 public:
  void Drain() override { ++drains; }
  void Recheck() override { ++rechecks; }
  int drains = 0;
  int rechecks = 0;
};

TEST(CallTrackerTest, DrainsTheStreamsOfNowAndThoseThatCome) {
  CallTracker calls;
  std::vector<std::shared_ptr<CountingStream>> streams;
  for (int i = 0; i < 1000; ++i) {
    streams.push_back(std::make_shared<CountingStream>());
    calls.AddStream(streams.back());
    if (i % 3 != 0) streams.back() = nullptr;  // Over.
  }
  calls.DrainStreams();
  for (const auto& stream : streams) {
    if (stream != nullptr) {
      EXPECT_EQ(stream->drains, 1);
    }
  }
  calls.RecheckStreams();
  for (const auto& stream : streams) {
    if (stream != nullptr) {
      EXPECT_EQ(stream->rechecks, 1);
    }
  }
  const auto late = std::make_shared<CountingStream>();
  calls.AddStream(late);
  EXPECT_EQ(late->drains, 1);
}

TEST(CallTrackerTest, IsQuietOnceNoCallIsInProgress) {
  CallTracker calls;
  calls.OnBegin();
  calls.WaitUntilQuiet(absl::ZeroDuration(), absl::InfinitePast());  // The deadline ends the wait.
  absl::Notification quiet;
  std::thread waiter([&] {
    calls.WaitUntilQuiet(absl::ZeroDuration(), absl::InfiniteFuture());
    quiet.Notify();
  });
  EXPECT_FALSE(quiet.HasBeenNotified());
  calls.OnEnd();
  quiet.WaitForNotification();
  waiter.join();
}

TEST(CancelTokenTest, TheEndOfASleepLeavesWorkThatRunsAlone) {
  CancelToken token;
  absl::Status end;
  token.OnWaitEnd([&](absl::Status status) { end = std::move(status); });
  token.EndWait(ShuttingDown());
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kUnavailable, "stopping"));
  EXPECT_THAT(token.Check(), IsOk());
  token.Cancel();
  EXPECT_THAT(token.Check(), StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST(CancelTokenTest, WorkThatFallsAsleepTooLateIsWokenAtOnce) {
  CancelToken ended, cancelled;
  ended.EndWait(ShuttingDown());
  cancelled.Cancel();
  absl::Status end;
  ended.OnWaitEnd([&](absl::Status status) { end = std::move(status); });
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kUnavailable, ""));
  cancelled.OnWaitEnd([&](absl::Status status) { end = std::move(status); });
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST(CancelTokenTest, ASleepEndsOnce) {
  CancelToken token;
  int ends = 0;
  token.OnWaitEnd([&](const absl::Status&) { ++ends; });
  token.EndWait(ShuttingDown());
  token.EndWait(ShuttingDown());
  token.Cancel();
  EXPECT_EQ(ends, 1);
}

}  // namespace
}  // namespace softlookup::server
