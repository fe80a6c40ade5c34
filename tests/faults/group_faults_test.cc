// A group of three replicas on three members of etcd, with a router before it, all of them
// processes, while something goes wrong every few seconds: what was acknowledged is there once,
// what was refused is not, and the replicas stay equal.
//
// In the environment,
// SOFTLOOKUP_TEST_FAULT_SECONDS sets how long faults of all kinds go on,
// SOFTLOOKUP_TEST_FAULT_KIND leaves only the kinds whose names have this text,
// SOFTLOOKUP_TEST_SUSPENSIONS sets how often a process is suspended, and
// SOFTLOOKUP_TEST_SEED sets what is drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/faults/group_faults/contents.h"
#include "tests/faults/group_faults/faults.h"
#include "tests/faults/group_faults/group.h"
#include "tests/faults/group_faults/traffic.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/random.h"

namespace softlookup::testing {
namespace {

constexpr absl::Duration kLongRun = absl::Minutes(5);

int NumberOr(const char* variable, int otherwise) {
  const char* const number = std::getenv(variable);
  return number == nullptr ? otherwise : std::atoi(number);
}

// The kinds that the environment asks for, or those for a run of `time`.
std::vector<FaultKind> FaultsFor(absl::Duration time) {
  std::vector<FaultKind> kinds = AllFaults();
  const char* const text = std::getenv("SOFTLOOKUP_TEST_FAULT_KIND");
  std::erase_if(kinds, [&](const FaultKind& kind) {
    if (text == nullptr) return kind.is_long && time < kLongRun;
    return std::string(kind.name).find(text) == std::string::npos;
  });
  return kinds;
}

// Says what clients were told.
void Report(const Traffic& traffic, const FaultScene& scene) {
  std::cout << traffic.acknowledged() << " writes acknowledged, " << traffic.refused()
            << " refused; " << traffic.lookups() << " lookups, " << traffic.failed_lookups()
            << " failed; " << traffic.own_writes_seen() << " own writes seen\n"
            << "through the router: " << traffic.routed_writes() << " writes acknowledged, "
            << traffic.routed_lookups() << " lookups, " << traffic.failed_routed_lookups()
            << " failed twice, " << traffic.lost_routed_lookups()
            << " of these although it and all nodes but one went on\n"
            << "longest times: " << traffic.longest_gap() << " without an acknowledged write, "
            << scene.failover << " after both leaders were killed, " << scene.etcd_return
            << " after etcd's return\n";
}

class GroupFaultsTest : public ::testing::Test {
 protected:
  GroupFaultsTest() : group_({.cuts = FirstSeed(), .has_small_disks = true}) {}
  ~GroupFaultsTest() override {
    if (HasFailure()) std::cout << "SOFTLOOKUP_TEST_SEED=" << FirstSeed() << "\n" << group_.Logs();
  }

  // Has faults of `kinds` happen, one about every 5 s, for at least `time` and until there were
  // `count`. Each kind comes once before the first one comes again.
  void RunFaults(const std::vector<FaultKind>& kinds, absl::Duration time, int count) {
    ASSERT_NO_FATAL_FAILURE(group_.Start());
    Traffic traffic(group_);
    ASSERT_NO_FATAL_FAILURE(group_.AwaitCopies());
    traffic.Start();
    FaultScene scene{.group = group_, .traffic = traffic, .draw = Draw(FirstSeed())};
    if (time >= kLongRun) scene.etcd_away = absl::Minutes(1);
    std::map<std::string, int> done;
    std::set<std::string> left_out;  // Now and then, or for want of a disk that can be filled.
    int faults = 0;
    std::vector<std::int64_t> order;
    for (const absl::Time end = absl::Now() + time; absl::Now() < end || faults < count;) {
      if (order.empty()) order = scene.draw.Permutation(static_cast<std::int64_t>(kinds.size()));
      const FaultKind& kind = kinds[order.back()];
      order.pop_back();
      const std::uint64_t written = traffic.acknowledged();
      const std::uint64_t failed = traffic.failed_routed_lookups();
      const std::uint64_t lost = traffic.lost_routed_lookups();
      const bool is_expected = kind.leaves_lookups && AllAnswer(group_);
      traffic.ExpectRouted(is_expected);
      std::cout << absl::FormatTime("%H:%M:%E1S", absl::Now(), absl::LocalTimeZone()) << " "
                << kind.name << std::endl;
      if (kind.run(scene)) {
        ++done[kind.name];
        ++faults;
      } else {
        left_out.insert(kind.name);
      }
      LetPass(absl::Seconds(1));
      group_.StartMissing();
      // A fault without traffic around it says nothing.
      ASSERT_TRUE(AwaitThat([&] { return traffic.acknowledged() >= written + kWritesPerFault; }))
          << "after " << kind.name;
      traffic.ExpectRouted(false);
      if (traffic.failed_routed_lookups() > failed) {
        std::cout << "  lookups failed twice through the router: "
                  << traffic.failed_routed_lookups() - failed << std::endl;
      }
      EXPECT_EQ(traffic.lost_routed_lookups(), lost) << "after " << kind.name;
      ASSERT_FALSE(HasFailure());
      LetPass(absl::Seconds(3));
    }
    traffic.Stop();
    const absl::Time healed = absl::Now();
    ASSERT_TRUE(AwaitEqual(group_, traffic, kPatience));
    const absl::Duration until_equal = absl::Now() - healed;
    for (const std::string& kind : left_out) std::cout << "could not be done: " << kind << "\n";
    for (const auto& [kind, times] : done) std::cout << times << " times " << kind << "\n";
    Report(traffic, scene);
    std::cout << "equal " << until_equal << " after the end\n";
    CheckLog(group_, traffic);
    CheckBatches(group_, traffic);
    EXPECT_THAT(traffic.violations(), ::testing::IsEmpty());
    EXPECT_GT(traffic.lookups(), 0u);
    EXPECT_GT(traffic.own_writes_seen(), 0u);
    EXPECT_GT(traffic.routed_writes(), 0u);
    EXPECT_GT(traffic.routed_lookups(), 0u);
  }

 private:
  static constexpr std::uint64_t kWritesPerFault = 50;

  Group group_;
};

TEST_F(GroupFaultsTest, WhatWasAcknowledgedIsThereOnceAndReplicasAreEqual) {
  const absl::Duration time = absl::Seconds(NumberOr("SOFTLOOKUP_TEST_FAULT_SECONDS", 40));
  RunFaults(FaultsFor(time), time, /*count=*/4);
}

TEST_F(GroupFaultsTest, ProcessesThatAreSuspendedLoseNothing) {
  RunFaults(SuspensionFaults(), absl::ZeroDuration(),
            /*count=*/NumberOr("SOFTLOOKUP_TEST_SUSPENSIONS", 2));
}

}  // namespace
}  // namespace softlookup::testing
