#ifndef SOFTLOOKUP_TESTS_INTEGRATION_ROUTER_CLUSTER_H_
#define SOFTLOOKUP_TESTS_INTEGRATION_ROUTER_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "softlookup/client.h"
#include "tests/integration/integration_test.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/server_process.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {

// Into how many ranges a test cuts a store, one after the other. 1: it is in one again. A sanitizer
// watches how the binaries do it, so two numbers are enough for it.
inline std::vector<int> NumbersOfRanges() {
  return BinariesAreSanitized() ? std::vector{3, 1} : std::vector{2, 3, 7, 1};
}

// The nodes of a cluster's groups and a router in front of them, each a real server, with a real
// etcd. Nodes listen for others on loopback addresses, without certificates unless flags say so.
class RouterCluster {
 public:
  explicit RouterCluster(int etcd_members = 1, const std::optional<EtcdTls>& etcd_tls = {})
      : etcd_(etcd_members, etcd_tls) {}

  // Starts the first node of a group.
  void Found(const std::string& group, const std::string& node,
             const std::vector<std::string>& flags = {});
  // Adds a node to the group of `first`, starts it, and waits until more than half of the group
  // must have each entry and all nodes have the last one. `etcd` are the members that it is told;
  // empty: all.
  void Add(const std::string& first, const std::string& node,
           const std::vector<std::string>& etcd = {}, const std::vector<std::string>& flags = {});
  // Starts a node again.
  void Restart(const std::string& node);
  // Waits until all nodes of the group, as `node` knows it, have the last entry.
  void AwaitEqual(const std::string& node);
  void StartRouter(const std::vector<std::string>& flags = {});
  // Waits until the router can call these nodes of the group "g".
  void AwaitConnected(const std::vector<std::string>& nodes);

  // Cuts a store into ranges, or gives them to nodes, such as "n1,n2", by the tool at the router.
  void Split(const std::string& store, int ranges);
  void Rebalance(const std::string& store, const std::string& nodes);

  // What a router needs to find the cluster.
  std::vector<std::string> RouterFlags() const;
  ServerProcess& node(const std::string& name) { return *nodes_.at(name).server; }
  ServerProcess& router() { return *router_; }
  EtcdMembers& etcd() { return etcd_; }
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }

 private:
  struct Node {
    std::string group;
    std::vector<std::string> flags;
    std::unique_ptr<ServerProcess> server;
  };

  void Start(const std::string& group, const std::string& name, const std::string& etcd,
             const std::vector<std::string>& flags);
  void CallTool(std::vector<std::string> arguments);

  const TemporaryDirectory directory_;
  EtcdMembers etcd_;
  std::map<std::string, Node> nodes_;
  std::unique_ptr<ServerProcess> router_;
};

std::shared_ptr<grpc::Channel> ChannelTo(const ServerProcess& server);
std::unique_ptr<v1::SoftLookup::Stub> StubOf(const ServerProcess& server);
Client ClientOf(const ServerProcess& server);
// Reads `name` of a node of the group "g" in a router's metrics; `more` are labels, such as
// `,result="answered"`.
double NodeMetric(const ServerProcess& router, const std::string& name, const std::string& node,
                  const std::string& more = "");

// Expects that a router has answered what the node answers: the status with its details, and the
// messages.
void ExpectSameAnswer(const RawAnswer& routed, const RawAnswer& direct, const std::string& what);

// Requests about a store of dimensions 1 and 1. An append has one row, whose key and value are
// `value`.
v1::AppendRequest OneRow(const std::string& store, float value);
v1::LookupRequest OneLookup(const std::string& store);
// Asks `stub`. A lookup returns the number of rows that the store has.
grpc::Status CreateStore(v1::SoftLookup::Stub& stub, const std::string& store);
grpc::Status DeleteStore(v1::SoftLookup::Stub& stub, const std::string& store);
grpc::Status Append(v1::SoftLookup::Stub& stub, const v1::AppendRequest& request,
                    v1::AppendResponse* response = nullptr);
grpc::Status LookUp(v1::SoftLookup::Stub& stub, const std::string& store, std::uint64_t* rows);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_INTEGRATION_ROUTER_CLUSTER_H_
