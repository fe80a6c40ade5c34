#include "server/rpc/call_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace softlookup::server {
namespace {

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

}  // namespace
}  // namespace softlookup::server
