// Links between clients, the router, nodes, and etcd.
#include <functional>

#include "tests/faults/group_faults/faults.h"
#include "tests/testing/passing_time.h"

namespace softlookup::testing {
namespace {

// Calls `visit` with some links: those to one node from the others and the router, that from
// clients to the router, or those to members, which are one link, all of one node or of the router,
// or all of one member.
void VisitSome(FaultScene& scene, const std::function<void(CuttingProxy&)>& visit) {
  Group& group = scene.group;
  const int node = scene.AnyNode();
  const int member = scene.AnyMember();
  switch (scene.draw.Int(0, 5)) {
    case 0:
      return visit(group.node(node).peer_link());
    case 1:
      return visit(group.node(node).etcd_link(member));
    case 2:
      for (int i = 0; i < Group::kMembers; ++i) visit(group.node(node).etcd_link(i));
      return;
    case 3:
      for (int i = 0; i < Group::kNodes; ++i) visit(group.node(i).etcd_link(member));
      return visit(group.router().etcd_link(member));
    case 4:
      return visit(group.router().client_link());
    case 5:
      for (int i = 0; i < Group::kMembers; ++i) visit(group.router().etcd_link(i));
      return;
  }
}

bool Degrade(FaultScene& scene, const CuttingProxy::Link& link) {
  VisitSome(scene, [&](CuttingProxy& proxy) { proxy.SetLink(link); });
  LetPass(scene.AnyTime(1, 15));
  scene.group.MendLinks();
  return true;
}

bool CutLinks(FaultScene& scene) {
  VisitSome(scene, [](CuttingProxy& proxy) { proxy.CutAll(); });
  return true;
}

bool BlackHole(FaultScene& scene) {
  return Degrade(scene, {.passes_to_server = false, .passes_to_client = false});
}

bool NoAnswers(FaultScene& scene) { return Degrade(scene, {.passes_to_client = false}); }

bool NoRequests(FaultScene& scene) { return Degrade(scene, {.passes_to_server = false}); }

bool SlowLinks(FaultScene& scene) {
  return Degrade(scene, {.bytes_per_second = scene.draw.Int(1'000, 20'000)});
}

}  // namespace

std::vector<FaultKind> LinkFaults() {
  return {{"links cut", CutLinks},
          {"links that are black holes", BlackHole},
          {"links without answers", NoAnswers},
          {"links without requests", NoRequests},
          {"slow links", SlowLinks}};
}

}  // namespace softlookup::testing
