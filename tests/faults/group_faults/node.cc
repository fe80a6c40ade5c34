#include "tests/faults/group_faults/node.h"

#include <grpcpp/grpcpp.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace softlookup::testing {

CuttingProxy::Options Cuts(std::optional<std::uint64_t> seed, std::uint64_t link) {
  if (!seed.has_value()) return {};
  return {.seed = *seed + link,
          .cuts = 1'000'000,
          .bytes_to_server_max = 4 << 20,
          .bytes_to_client_max = 4 << 20};
}

Node::Node(const std::string& name, const std::string& parent, const std::vector<std::string>& etcd,
           std::optional<std::uint64_t> cuts)
    : Process(absl::StrCat(parent, "/", name, ".txt")),
      name_(name),
      parent_(std::filesystem::canonical(parent)),
      address_(FreeAddress()),
      peer_address_(FreeAddress()),
      peer_link_(peer_address_, Cuts(cuts, 0)) {
  for (const std::string& member : etcd) {
    const CuttingProxy::Options options = Cuts(cuts, etcd_links_.size() + 1);
    etcd_links_.push_back(std::make_unique<CuttingProxy>(member, options));
  }
}

std::unique_ptr<v1::SoftLookup::Stub> Node::NewStub() const {
  return v1::SoftLookup::NewStub(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
}

void Node::Start() {
  const auto address_of = [](std::string* out, const auto& link) { *out += link->address(); };
  std::vector<std::string> command = power_cut_.Prefix(directory());
  command.insert(command.end(), {program(),
                                 "--data-dir",
                                 directory(),
                                 "--listen",
                                 address_,
                                 "--http-listen",
                                 "127.0.0.1:0",
                                 "--cluster-etcd",
                                 absl::StrJoin(etcd_links_, ",", address_of),
                                 "--cluster",
                                 "c",
                                 "--group",
                                 "g",
                                 "--node",
                                 name_,
                                 "--cluster-listen",
                                 peer_address_,
                                 "--advertise",
                                 peer_link_.address(),
                                 "--threads",
                                 "1",
                                 "--shutdown-grace",
                                 "2"});
  Run(command);
}

void Node::Wipe() const {
  std::filesystem::remove_all(directory());
  power_cut_.Forget(directory());
}

void Node::Rename(const std::string& name) { name_ = name; }

}  // namespace softlookup::testing
