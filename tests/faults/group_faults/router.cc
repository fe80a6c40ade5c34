#include "tests/faults/group_faults/router.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_join.h"
#include "tests/faults/group_faults/node.h"

namespace softlookup::testing {

Router::Router(const std::string& directory, const std::vector<std::string>& etcd,
               std::optional<std::uint64_t> cuts)
    : Process(directory + "/router.txt"), address_(FreeAddress()), client_link_(address_, {}) {
  for (const std::string& member : etcd) {
    const CuttingProxy::Options options = Cuts(cuts, etcd_links_.size() + 1);
    etcd_links_.push_back(std::make_unique<CuttingProxy>(member, options));
  }
}

std::unique_ptr<v1::SoftLookup::Stub> Router::NewStub() const {
  grpc::ChannelArguments arguments;
  // So that a client is not still waiting when the router is back.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::SoftLookup::NewStub(grpc::CreateCustomChannel(
      client_link_.address(), grpc::InsecureChannelCredentials(), arguments));
}

void Router::Start() {
  const auto address_of = [](std::string* out, const auto& link) { *out += link->address(); };
  Run({program(), "--router", "--listen", address_, "--http-listen", "127.0.0.1:0",
       "--cluster-etcd", absl::StrJoin(etcd_links_, ",", address_of), "--cluster", "c",
       "--shutdown-grace", "2"});
  ++starts_;
}

}  // namespace softlookup::testing
