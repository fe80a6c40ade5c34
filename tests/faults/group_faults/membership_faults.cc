// Nodes and members that are replaced for good.
#include "tests/faults/group_faults/contents.h"
#include "tests/faults/group_faults/faults.h"

namespace softlookup::testing {
namespace {

bool ReplaceNode(FaultScene& scene) {
  // Its disk goes, too.
  if (!AwaitEqual(scene.group, scene.traffic, absl::Seconds(30))) return false;
  scene.group.ReplaceNode(scene.AnyNode());
  return true;
}

bool ReplaceMember(FaultScene& scene) {
  scene.group.ReplaceMember(scene.AnyMember());
  return true;
}

}  // namespace

std::vector<FaultKind> MembershipFaults() {
  return {{"a node replaced", ReplaceNode}, {"a member replaced", ReplaceMember}};
}

std::vector<FaultKind> AllFaults() {
  std::vector<FaultKind> all;
  for (const std::vector<FaultKind>& kinds : {ProcessFaults(), SuspensionFaults(), RouterFaults(),
                                              DiskFaults(), LinkFaults(), MembershipFaults()}) {
    all.insert(all.end(), kinds.begin(), kinds.end());
  }
  return all;
}

}  // namespace softlookup::testing
