#ifndef SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_NODE_H_
#define SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_NODE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/faults/group_faults/power_cut/power_cut.h"
#include "tests/faults/group_faults/process.h"
#include "tests/testing/cutting_proxy.h"

namespace softlookup::testing {

// What cuts each connection of a link after some bytes, if there is a seed.
CuttingProxy::Options Cuts(std::optional<std::uint64_t> seed, std::uint64_t link);

// A node, whose process comes and goes. It reaches each member of etcd through a proxy of its own,
// and the other nodes and the router reach it through one.
class Node : public Process {
 public:
  // Its directory will be in `parent`. `etcd` are the addresses of the members. `cuts` is as
  // GroupOptions says.
  Node(const std::string& name, const std::string& parent, const std::vector<std::string>& etcd,
       std::optional<std::uint64_t> cuts);

  const std::string& name() const { return name_; }
  // HOST:PORT for clients. The same for ever.
  const std::string& address() const { return address_; }
  // The directory of the data.
  std::string directory() const { return parent_ + "/" + name_; }
  std::unique_ptr<v1::SoftLookup::Stub> NewStub() const;

  // The ways from other nodes to this one, and from this one to a member.
  CuttingProxy& peer_link() { return peer_link_; }
  CuttingProxy& etcd_link(int member) { return *etcd_links_[member]; }

  void Start();
  // Removes the directory.
  void Wipe() const;
  // Takes from the directory of a node that was killed what a power cut could have taken.
  PowerCut::Taken CutPower(Draw& draw) const { return power_cut_.Cut(directory(), draw); }
  // Gives a node that is stopped another name. Its directory is a new one.
  void Rename(const std::string& name);

 private:
  std::string name_;
  const std::string parent_;
  const std::string address_, peer_address_;
  const PowerCut power_cut_;
  CuttingProxy peer_link_;
  std::vector<std::unique_ptr<CuttingProxy>> etcd_links_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_NODE_H_
