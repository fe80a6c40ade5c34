#include "server/rpc/time_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <thread>

namespace softlookup::server {
namespace {

using ::testing::AnyOf;

// The words of `struct sched_attr`: size and policy, flags, nice and priority, runtime, and so on.
using Attributes = std::array<std::uint64_t, 6>;

Attributes AttributesOfThisThread() {
  Attributes attributes = {};
  EXPECT_EQ(syscall(SYS_sched_getattr, 0, attributes.data(), sizeof(attributes), 0), 0);
  return attributes;
}

// In a thread of its own, as the change stays.
TEST(TimeSliceTest, OnlyTheSliceChanges) {
  std::thread([] {
    Attributes expected = AttributesOfThisThread();
    AskForShortTimeSlices();
    const Attributes actual = AttributesOfThisThread();
    constexpr std::size_t kRuntime = 3;
    // Kernels before Linux 6.12 have no slices of threads, and report none.
    EXPECT_THAT(actual[kRuntime], AnyOf(0u, 100'000u));
    expected[kRuntime] = actual[kRuntime];
    EXPECT_EQ(actual, expected);
  }).join();
}

TEST(TimeSliceTest, AThreadOfAnotherPolicyKeepsWhatItHas) {
  std::thread([] {
    const sched_param none = {};
    ASSERT_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
    const Attributes before = AttributesOfThisThread();
    AskForShortTimeSlices();
    EXPECT_EQ(AttributesOfThisThread(), before);
  }).join();
}

}  // namespace
}  // namespace softlookup::server
