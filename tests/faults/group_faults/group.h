#ifndef SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_GROUP_H_
#define SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_GROUP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/faults/group_faults/node.h"
#include "tests/faults/group_faults/router.h"
#include "tests/faults/group_faults/small_disk.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {

struct GroupOptions {
  // Links cut their connections after some bytes, drawn from it. nullopt: they do not.
  std::optional<std::uint64_t> cuts;
  // Whether the last node and the last member are on small disks.
  bool has_small_disks = false;
};

// A group of three nodes on three members of etcd, and a router before it, all of them processes.
// Used on one thread.
class Group {
 public:
  static constexpr int kNodes = 3;
  static constexpr int kMembers = 3;

  explicit Group(const GroupOptions& options = {});

  // Founds the group, adds all nodes, and starts the router.
  void Start();
  // Waits until a write needs copies on two nodes. A group that has no write yet needs one.
  void AwaitCopies();

  Node& node(int index) { return *nodes_[index]; }
  const Node& node(int index) const { return *nodes_[index]; }
  Router& router() { return *router_; }
  const Router& router() const { return *router_; }
  EtcdMembers& etcd() { return etcd_; }
  // The disks of the last node and of the last member.
  const SmallDisk& node_disk() const { return node_disk_; }
  const SmallDisk& member_disk() const { return member_disk_; }

  // Starts each node that has no process, and the router. One that has ended by itself is a failure
  // of the test.
  void StartMissing();
  // Makes all links whole again.
  void MendLinks();
  // Has the tool change the group, at one node after another. Returns whether one has done so.
  bool Ask(const std::string& command, const std::string& argument = "");
  // Removes a node from the group, whose process then ends, and puts a new one in its place.
  void ReplaceNode(int index);
  // Removes a member from etcd, and puts a new one in its place.
  void ReplaceMember(int member);

  // The node that etcd says is the primary, and the member that leads etcd. nullopt: none now.
  std::optional<int> Primary();
  std::optional<int> EtcdLeader();
  // Returns a field of the value of a key of the group, such as "node" of "primary". Empty if there
  // is none, or if etcd does not answer.
  std::string Field(const std::string& key, const std::string& field);
  // What the nodes and the router have logged last.
  std::string Logs() const;

 private:
  // Runs etcdctl at one member. Returns its output; nullopt if it has failed.
  std::optional<std::string> AskEtcd(int member, const std::string& arguments);

  SmallDisk node_disk_, member_disk_;
  const TemporaryDirectory parent_;
  EtcdMembers etcd_{kMembers};
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unique_ptr<Router> router_;
  int names_ = 0;  // How many names nodes have had.
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_GROUP_H_
