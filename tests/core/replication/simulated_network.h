#ifndef SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_NETWORK_H_
#define SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_NETWORK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/replication/replica.h"
#include "softlookup/peers.h"
#include "tests/core/replication/event_loop.h"

namespace softlookup::testing {

// The network between the nodes of a group. Node 0 is called "a", and so on.
class SimulatedNetwork {
 public:
  // Returns the replica that runs on a node; null if none does.
  using ReplicaOn = std::function<Replica*(int node)>;

  SimulatedNetwork(EventLoop& loop, ReplicaOn replica_on)
      : loop_(loop), replica_on_(std::move(replica_on)) {}

  bool is_disturbed = true;  // Whether messages are lost, doubled, late and spoiled.
  std::set<int> cut_nodes;   // Those that do not reach the others.

 private:
  friend class SimulatedPeers;

  // Sometimes changes a byte, as a network does that checks nothing.
  void Spoil(std::string& bytes) {
    if (Happens(0.02)) bytes[0] ^= 1;
  }
  bool Happens(double probability) { return is_disturbed && loop_.Happens(probability); }
  bool IsLost(int from, int to) {
    return cut_nodes.contains(from) || cut_nodes.contains(to) || Happens(0.03);
  }

  EventLoop& loop_;
  const ReplicaOn replica_on_;
};

// What one process of a node uses of the network. Its callbacks stop when it is destroyed.
class SimulatedPeers final : public Peers {
 public:
  SimulatedPeers(SimulatedNetwork& network, int node) : network_(network), node_(node) {}

  void Stage(const std::string& node, const Entry& entry,
             absl::AnyInvocable<void(absl::Status)> done) override;
  void Fetch(const std::string& node, std::uint64_t sequence, const EntryDigest& digest,
             absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) override;

 private:
  template <typename Result>
  struct Request {
    absl::AnyInvocable<Result(Replica&)> act;
    absl::AnyInvocable<void(Result)> done;  // Null after the first answer.
    std::weak_ptr<bool> alive;              // Expired: nobody waits for an answer.

    void Answer(Result result) {
      if (!alive.expired() && done != nullptr) std::exchange(done, nullptr)(std::move(result));
    }
  };

  // Has the process of `name` act `times` times, and passes the first result on.
  template <typename Result>
  void Call(const std::string& name, absl::AnyInvocable<Result(Replica&)> act,
            absl::AnyInvocable<void(Result)> done, int times);

  SimulatedNetwork& network_;
  const int node_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_NETWORK_H_
