#include "client/tool/interrupt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "absl/synchronization/notification.h"

namespace softlookup::tool {
namespace {

using ::testing::ExitedWithCode;
using ::testing::KilledBySignal;

TEST(InterruptGuardTest, TheFirstSignalOnlySetsTheFlag) {
  for (const int signal : {SIGINT, SIGTERM}) {
    InterruptGuard guard;
    EXPECT_FALSE(guard.interrupted());
    raise(signal);
    EXPECT_TRUE(guard.interrupted());
  }
}

TEST(InterruptGuardTest, TheSecondSignalOfEitherKindEndsTheProcess) {
  for (const int first : {SIGINT, SIGTERM}) {
    for (const int second : {SIGINT, SIGTERM}) {
      EXPECT_EXIT(
          {
            InterruptGuard guard;
            raise(first);
            raise(second);
            std::_Exit(0);
          },
          KilledBySignal(second), "");
    }
  }
}

TEST(InterruptGuardTest, RearmedItTakesOneSignalMore) {
  EXPECT_EXIT(
      {
        InterruptGuard guard;
        raise(SIGINT);
        guard.Rearm();
        raise(SIGINT);
        std::_Exit(guard.interrupted() ? 7 : 0);
      },
      ExitedWithCode(7), "");
}

TEST(InterruptGuardTest, AnIgnoredSignalStaysIgnored) {
  EXPECT_EXIT(
      {
        signal(SIGTERM, SIG_IGN);
        InterruptGuard guard;
        raise(SIGTERM);
        raise(SIGTERM);
        std::_Exit(guard.interrupted() ? 0 : 7);
      },
      ExitedWithCode(7), "");
}

TEST(InterruptGuardTest, AReadThatWaitsGoesOnOrFails) {
  for (const auto reads : {InterruptGuard::Reads::kGoOn, InterruptGuard::Reads::kFail}) {
    const InterruptGuard guard(reads);
    struct sigaction action = {};
    sigaction(SIGINT, nullptr, &action);
    EXPECT_EQ((action.sa_flags & SA_RESTART) != 0, reads == InterruptGuard::Reads::kGoOn);
  }
}

TEST(InterruptActionTest, ASignalRunsItAlsoOneThatCameBefore) {
  for (const bool comes_before : {false, true}) {
    const InterruptGuard guard;
    absl::Notification ran;
    if (comes_before) raise(SIGINT);
    const InterruptAction action([&] { ran.Notify(); });
    if (!comes_before) raise(SIGINT);
    ran.WaitForNotification();
  }
}

TEST(InterruptActionTest, WithoutASignalItDoesNotRun) {
  const InterruptGuard guard;
  bool ran = false;
  {
    const InterruptAction action([&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

TEST(InterruptGuardTest, HandlersAreRestored) {
  struct sigaction before = {}, after = {};
  sigaction(SIGINT, nullptr, &before);
  { const InterruptGuard guard; }
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

}  // namespace
}  // namespace softlookup::tool
