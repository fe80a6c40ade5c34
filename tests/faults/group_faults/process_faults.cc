// Processes that end, and processes that stand still.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "absl/time/clock.h"
#include "tests/faults/group_faults/contents.h"
#include "tests/faults/group_faults/faults.h"
#include "tests/testing/passing_time.h"

namespace softlookup::testing {
namespace {

// Waits until a write is acknowledged. Returns how long it has taken.
absl::Duration AwaitWrite(const FaultScene& scene) {
  const absl::Time begin = absl::Now();
  const std::uint64_t before = scene.traffic.acknowledged();
  EXPECT_TRUE(AwaitThat([&] { return scene.traffic.acknowledged() > before; }));
  const absl::Duration time = absl::Now() - begin;
  std::cout << "  the next write was acknowledged after " << time << std::endl;
  return time;
}

bool KillNode(FaultScene& scene) {
  scene.group.node(scene.AnyNode()).Stop(SIGKILL);
  return true;
}

bool StopNode(FaultScene& scene) {
  scene.group.node(scene.AnyNode()).Stop(SIGTERM);
  return true;
}

bool KillTwoNodes(FaultScene& scene) {
  scene.group.node(scene.AnyNode()).Stop(SIGKILL);
  scene.group.node(scene.AnyNode()).Stop(SIGKILL);
  return true;
}

bool KillMember(FaultScene& scene) {
  const int member = scene.AnyMember();
  scene.group.etcd().Kill(member);
  LetPass(absl::Seconds(1));
  scene.group.etcd().Start(member);
  return true;
}

bool MovePrimary(FaultScene& scene) { return scene.group.Ask("move-leader"); }

// The primary and the member that leads etcd are lost at once. The two others of each go on.
bool KillBothLeaders(FaultScene& scene) {
  scene.group.StartMissing();
  const std::optional<int> primary = scene.group.Primary();
  const std::optional<int> leader = scene.group.EtcdLeader();
  if (!primary.has_value() || !leader.has_value()) return false;
  scene.group.node(*primary).Stop(SIGKILL);
  scene.group.etcd().Kill(*leader);
  scene.failover = std::max(scene.failover, AwaitWrite(scene));
  scene.group.etcd().Start(*leader);
  return true;
}

void Suspend(FaultScene& scene, int node) {
  scene.group.node(node).Signal(SIGSTOP);
  LetPass(scene.AnyTime(1, 20));
  scene.group.node(node).Signal(SIGCONT);
}

bool SuspendNode(FaultScene& scene) {
  Suspend(scene, scene.AnyNode());
  return true;
}

bool SuspendPrimary(FaultScene& scene) {
  const std::optional<int> primary = scene.group.Primary();
  if (primary.has_value()) Suspend(scene, *primary);
  return primary.has_value();
}

bool SuspendMember(FaultScene& scene) {
  const int member = scene.AnyMember();
  scene.group.etcd().Freeze(member);
  LetPass(scene.AnyTime(1, 20));
  scene.group.etcd().Thaw(member);
  return true;
}

bool SuspendEtcdLeader(FaultScene& scene) {
  const std::optional<int> leader = scene.group.EtcdLeader();
  if (!leader.has_value()) return false;
  scene.group.etcd().Freeze(*leader);
  LetPass(scene.AnyTime(1, 20));
  scene.group.etcd().Thaw(*leader);
  return true;
}

// While all of etcd stands still, lookups go on, and writes are refused again and again, instead of
// waiting. Afterwards they are taken again.
bool SuspendEtcd(FaultScene& scene) {
  if (!AwaitEqual(scene.group, scene.traffic, absl::Seconds(30))) return false;
  AwaitWrite(scene);
  const std::uint64_t lookups = scene.traffic.lookups();
  const std::uint64_t failed_lookups = scene.traffic.failed_lookups();
  const absl::Time end = absl::Now() + scene.etcd_away;
  for (int member = 0; member < Group::kMembers; ++member) scene.group.etcd().Freeze(member);
  // Writes that wait for a deadline each would be too few.
  constexpr int kRefusals = 100;
  const auto await_refusals = [&] {
    const std::uint64_t refused = scene.traffic.refused();
    EXPECT_TRUE(AwaitThat([&] { return scene.traffic.refused() >= refused + kRefusals; }));
  };
  await_refusals();
  scene.traffic.TakeLongestRefusal();
  EXPECT_TRUE(AwaitThat([&] { return absl::Now() >= end; }));
  await_refusals();
  std::cout << "  later writes were refused within " << scene.traffic.TakeLongestRefusal()
            << std::endl;
  EXPECT_GT(scene.traffic.lookups(), lookups);
  EXPECT_EQ(scene.traffic.failed_lookups(), failed_lookups);
  for (int member = 0; member < Group::kMembers; ++member) scene.group.etcd().Thaw(member);
  scene.etcd_return = std::max(scene.etcd_return, AwaitWrite(scene));
  return true;
}

bool KillRouter(FaultScene& scene) {
  scene.group.router().Stop(SIGKILL);
  LetPass(scene.AnyTime(0, 2));
  scene.group.router().Start();
  return true;
}

bool SuspendRouter(FaultScene& scene) {
  scene.group.router().Signal(SIGSTOP);
  LetPass(scene.AnyTime(1, 20));
  scene.group.router().Signal(SIGCONT);
  return true;
}

}  // namespace

std::vector<FaultKind> ProcessFaults() {
  return {{.name = "a node killed", .run = KillNode, .leaves_lookups = true},
          {.name = "a node stopped", .run = StopNode, .leaves_lookups = true},
          {"two nodes killed", KillTwoNodes},
          {.name = "a member killed", .run = KillMember, .leaves_lookups = true},
          {.name = "the primary moved", .run = MovePrimary, .leaves_lookups = true},
          {.name = "the primary and etcd's leader killed",
           .run = KillBothLeaders,
           .leaves_lookups = true},
          {.name = "all of etcd suspended", .run = SuspendEtcd, .leaves_lookups = true}};
}

std::vector<FaultKind> SuspensionFaults() {
  return {{.name = "a node suspended", .run = SuspendNode, .leaves_lookups = true},
          {.name = "the primary suspended", .run = SuspendPrimary, .leaves_lookups = true},
          {.name = "a member suspended", .run = SuspendMember, .leaves_lookups = true},
          {.name = "etcd's leader suspended", .run = SuspendEtcdLeader, .leaves_lookups = true}};
}

std::vector<FaultKind> RouterFaults() {
  return {{"the router killed", KillRouter}, {"the router suspended", SuspendRouter}};
}

}  // namespace softlookup::testing
