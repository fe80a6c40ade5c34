#ifndef SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_ROUTER_H_
#define SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_ROUTER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/faults/group_faults/process.h"
#include "tests/testing/cutting_proxy.h"

namespace softlookup::testing {

// A router, whose process comes and goes. Clients reach it through a proxy, and it reaches each
// member of etcd through one. It reaches the nodes as they reach each other.
class Router : public Process {
 public:
  // Its log will be in `directory`. `etcd` are the addresses of the members. `cuts` is as
  // GroupOptions says.
  Router(const std::string& directory, const std::vector<std::string>& etcd,
         std::optional<std::uint64_t> cuts);

  // HOST:PORT of the proxy. The same for ever.
  const std::string& address() const { return client_link_.address(); }
  std::unique_ptr<v1::SoftLookup::Stub> NewStub() const;
  CuttingProxy& client_link() { return client_link_; }
  CuttingProxy& etcd_link(int member) { return *etcd_links_[member]; }

  void Start();
  // How many processes there were. A new one has not seen what has passed the one before.
  int starts() const { return starts_; }

 private:
  const std::string address_;
  CuttingProxy client_link_;
  std::vector<std::unique_ptr<CuttingProxy>> etcd_links_;
  std::atomic<int> starts_ = 0;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_ROUTER_H_
