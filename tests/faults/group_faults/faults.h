#ifndef SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_FAULTS_H_
#define SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_FAULTS_H_

#include <vector>

#include "absl/time/time.h"
#include "tests/faults/group_faults/group.h"
#include "tests/faults/group_faults/traffic.h"
#include "tests/testing/random.h"

namespace softlookup::testing {

// What a fault happens to, and what it can draw from.
struct FaultScene {
  Group& group;
  Traffic& traffic;
  Draw draw;
  // How long all of etcd is away.
  absl::Duration etcd_away = absl::Seconds(10);
  // The longest times that were seen until the next write was acknowledged.
  absl::Duration failover, etcd_return;

  int AnyNode() { return static_cast<int>(draw.Int(0, Group::kNodes - 1)); }
  int AnyMember() { return static_cast<int>(draw.Int(0, Group::kMembers - 1)); }
  absl::Duration AnyTime(int seconds_min, int seconds_max) {
    return absl::Milliseconds(draw.Int(1000 * seconds_min, 1000 * seconds_max));
  }
};

// One way in which something goes wrong.
struct FaultKind {
  const char* name;
  // Does it, and mends what does not mend itself: nodes that have no process are started later.
  // Returns false if it could not be done here or now.
  bool (*run)(FaultScene& scene);
  // Whether it can take a minute. Short runs leave it out.
  bool is_long = false;
  // Whether the router and all nodes but one go on, so that lookups through the router do.
  bool leaves_lookups = false;
};

// Kinds by what they happen to.
std::vector<FaultKind> ProcessFaults();
std::vector<FaultKind> SuspensionFaults();
std::vector<FaultKind> RouterFaults();
std::vector<FaultKind> DiskFaults();
std::vector<FaultKind> LinkFaults();
std::vector<FaultKind> MembershipFaults();
// All of the above.
std::vector<FaultKind> AllFaults();

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_FAULTS_H_
