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
#include "tests/core/replication/simulated_process.h"

namespace softlookup::testing {

// The network between the nodes of a group.
class SimulatedNetwork {
 public:
  // Has the replica that runs on a node do something, if one does.
  using Deliver = std::function<void(int node, absl::AnyInvocable<void(Replica&)> work)>;

  SimulatedNetwork(EventLoop& loop, Deliver deliver) : loop_(loop), deliver_(std::move(deliver)) {}

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
  const Deliver deliver_;
};

// What one process of a node uses of the network. Its callbacks stop when it is destroyed. The
// process must outlive it.
class SimulatedPeers final : public Peers {
 public:
  SimulatedPeers(SimulatedNetwork& network, SimulatedProcess& process, int node)
      : network_(network), process_(process), node_(node) {}

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
    SimulatedProcess* asker;                // Not to be used then.

    static void Answer(const std::shared_ptr<Request>& request, Result result) {
      if (request->alive.expired()) return;
      request->asker->Receive([request, result = std::move(result)]() mutable {
        if (request->alive.expired() || request->done == nullptr) return;
        std::exchange(request->done, nullptr)(std::move(result));
      });
    }
  };

  // Has the process of `name` act `times` times, and passes the first result on.
  template <typename Result>
  void Call(const std::string& name, absl::AnyInvocable<Result(Replica&)> act,
            absl::AnyInvocable<void(Result)> done, int times);
  // What comes of a request that has left the process.
  template <typename Result>
  void OnSent(int to, const std::shared_ptr<Request<Result>>& request, int times);

  SimulatedNetwork& network_;
  SimulatedProcess& process_;
  const int node_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_NETWORK_H_
