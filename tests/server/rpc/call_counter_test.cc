#include "server/rpc/call_counter.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace softlookup::server {
namespace {

TEST(CallCounterTest, IsQuietOnceNoCallIsInProgress) {
  CallCounter calls;
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
