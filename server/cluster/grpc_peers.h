#ifndef SOFTLOOKUP_SERVER_CLUSTER_GRPC_PEERS_H_
#define SOFTLOOKUP_SERVER_CLUSTER_GRPC_PEERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/cluster/call_set.h"
#include "server/cluster/peer_protocol.h"
#include "softlookup/peers.h"

namespace softlookup::server {

// A client of the PeerServers of a group. The functions of Peers must be called on one thread, on
// which `post` has tasks run one after another.
//
// Errors of Peers, beside those that the other replica returns: UNAVAILABLE if it cannot be
// reached, if its address is not known, or if it is asked to stage an entry while it is being sent
// that entry. DEADLINE_EXCEEDED after 60 s of a Fetch, and after 10 s of a Stage and what its bytes
// take at 4 MB/s. INTERNAL if it does not keep to the protocol.
class GrpcPeers final : public Peers {
 public:
  // Called on any thread, also on several at once.
  using Post = std::function<void(absl::AnyInvocable<void()>)>;

  GrpcPeers(PeerOptions options, Post post);
  // Ends all calls, and waits until gRPC is done with them. No callback runs afterwards. Must be
  // called on the thread of the tasks, or when it runs no task. Tasks can still be waiting: each
  // has a part of gRPC, so they must not be destroyed on a thread of gRPC.
  ~GrpcPeers() override;

  // An empty address: it is not known any more.
  void SetAddress(const std::string& node, const std::string& address) override;
  void Stage(const std::string& node, const Entry& entry,
             absl::AnyInvocable<void(absl::Status)> done) override;
  void Fetch(const std::string& node, std::uint64_t sequence, const EntryDigest& digest,
             absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) override;

 private:
  using Stub = cluster::v1::PeerService::Stub;
  struct Node {
    std::string address;
    std::shared_ptr<Stub> stub;  // Has the only channel to the node.
  };
  using EntryOfNode = std::tuple<std::string, std::uint64_t, std::uint64_t>;

  // Returns null if the address of the node is not known.
  std::shared_ptr<Stub> StubOf(const std::string& node) const;
  // Returns a copy of the entry's bytes, which calls that send it to several nodes share.
  std::shared_ptr<const std::string> CopyBytes(const Entry& entry);
  // Returns a function that gRPC's threads may call while a call is in progress. It has a task run
  // on the caller's thread, unless this is gone by then.
  auto PosterIfAlive() const {
    return [this, alive = std::weak_ptr(alive_)](absl::AnyInvocable<void()> task) {
      post_([alive, task = std::move(task)]() mutable {
        if (!alive.expired()) task();
      });
    };
  }

  const PeerOptions options_;
  const Post post_;
  std::map<std::string, Node> nodes_;
  std::set<EntryOfNode> staging_;  // Node, epoch and sequence of each Stage in progress.
  std::weak_ptr<const std::string> last_bytes_;  // Of the entry with last_digest_.
  EntryDigest last_digest_;
  const std::shared_ptr<CallSet> calls_ = std::make_shared<CallSet>();
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_GRPC_PEERS_H_
