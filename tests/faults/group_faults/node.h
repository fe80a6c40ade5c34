#ifndef SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_NODE_H_
#define SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_NODE_H_

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/testing/cutting_proxy.h"

namespace softlookup::testing {

// A node, whose process comes and goes. It reaches each member of etcd through a proxy of its own,
// and the other nodes reach it through one.
class Node {
 public:
  // Its directory will be in `parent`. `etcd` are the addresses of the members.
  Node(const std::string& name, std::string parent, const std::vector<std::string>& etcd,
       std::uint64_t seed);
  ~Node() { Stop(SIGKILL); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::string& name() const { return name_; }
  // HOST:PORT for clients. The same for ever.
  const std::string& address() const { return address_; }
  // The directory of the data.
  std::string directory() const { return parent_ + "/" + name_; }
  // What the processes have said on standard error so far.
  std::string log() const;
  std::unique_ptr<v1::SoftLookup::Stub> NewStub() const;

  // The ways from other nodes to this one, and from this one to a member.
  CuttingProxy& peer_link() { return peer_link_; }
  CuttingProxy& etcd_link(int member) { return *etcd_links_[member]; }

  void Start();
  void Signal(int signal) const;
  // Sends `signal` and waits for the end. Does nothing if there is no process.
  void Stop(int signal);
  bool is_running() const { return pid_ > 0; }
  // Returns the exit code of a process that has ended by itself, or 128 + the signal that ended it.
  // nullopt: it runs, or there is none.
  std::optional<int> TakeEnd();
  // Removes the directory.
  void Wipe() const;
  // Gives a node that is stopped another name. Its directory is a new one.
  void Rename(const std::string& name);

 private:
  std::string name_;
  const std::string parent_;
  const std::string log_;
  const std::string address_, peer_address_;
  CuttingProxy peer_link_;
  std::vector<std::unique_ptr<CuttingProxy>> etcd_links_;
  pid_t pid_ = -1;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_NODE_H_
