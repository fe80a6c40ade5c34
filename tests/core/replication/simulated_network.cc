#include "tests/core/replication/simulated_network.h"

#include "tests/core/replication/node_name.h"

namespace softlookup::testing {

void SimulatedPeers::Stage(const std::string& node, const Entry& entry,
                           absl::AnyInvocable<void(absl::Status)> done) {
  Entry sent = entry;
  network_.Spoil(sent.bytes);
  Call<absl::Status>(
      node, [sent = std::move(sent)](Replica& replica) { return replica.OnStage(sent); },
      std::move(done), network_.Happens(0.05) ? 2 : 1);
}

void SimulatedPeers::Fetch(const std::string& node, std::uint64_t sequence,
                           const EntryDigest& digest,
                           absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) {
  Call<absl::StatusOr<std::string>>(
      node,
      [network = &network_, sequence, digest](Replica& replica) {
        absl::StatusOr<std::string> bytes = replica.OnFetch(sequence, digest);
        if (bytes.ok()) network->Spoil(*bytes);
        return bytes;
      },
      std::move(done), 1);
}

template <typename Result>
void SimulatedPeers::Call(const std::string& name, absl::AnyInvocable<Result(Replica&)> act,
                          absl::AnyInvocable<void(Result)> done, int times) {
  const std::shared_ptr<Request<Result>> request(new Request<Result>{
      .act = std::move(act), .done = std::move(done), .alive = alive_, .asker = &process_});
  process_.Send([this, to = NodeNumber(name), request, times] {
    if (!request->alive.expired()) OnSent(to, request, times);
  });
}

template <typename Result>
void SimulatedPeers::OnSent(int to, const std::shared_ptr<Request<Result>>& request, int times) {
  EventLoop& loop = network_.loop_;
  const absl::Duration timeout = loop.Between(absl::Seconds(1), absl::Seconds(3));
  loop.After(timeout,
             [request] { Request<Result>::Answer(request, absl::UnavailableError("no answer")); });
  for (int i = 0; i < times; ++i) {
    if (network_.IsLost(node_, to)) continue;
    // Some messages take longer than their timeout.
    const bool is_slow = network_.Happens(0.05);
    const absl::Duration delay =
        loop.Between(absl::Milliseconds(1), absl::Seconds(is_slow ? 20 : 0.05));
    loop.After(delay, [network = &network_, from = node_, to, request] {
      network->deliver_(to, [network, from, request](Replica& replica) {
        // This reads no clock, so the process does not stop before it answers.
        Result result = request->act(replica);
        if (network->is_disturbed && network->cut_nodes.contains(from)) return;
        if (network->Happens(0.03)) return;
        const bool is_late = network->Happens(0.1);
        network->loop_.After(
            network->loop_.Between(absl::Milliseconds(1), absl::Seconds(is_late ? 3 : 0.05)),
            [request, result = std::move(result)]() mutable {
              Request<Result>::Answer(request, std::move(result));
            });
      });
    });
  }
}

}  // namespace softlookup::testing
