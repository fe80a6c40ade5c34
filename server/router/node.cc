#include "server/router/node.h"

#include <utility>

#include "server/cluster/peer_protocol.h"

namespace softlookup::server {
namespace {

// How long a node that stops gets no calls, unless it closes its connections before.
constexpr absl::Duration kStopTime = absl::Seconds(1);

}  // namespace

Node::Node(std::string name, std::string address,
           const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : name_(std::move(name)), address_(std::move(address)) {
  for (std::unique_ptr<Connection>& connection : connections_) {
    // The node bounds its answers by its own limit.
    connection =
        std::make_unique<Connection>(OpenPeerChannel(address_, credentials, kNoMessageLimit));
    connection->channel->GetState(/*try_to_connect=*/true);
  }
}

bool Node::is_connected() {
  bool is_connected = false;
  for (const std::unique_ptr<Connection>& connection : connections_) {
    if (connection->channel->GetState(true) == GRPC_CHANNEL_READY) is_connected = true;
  }
  if (!is_connected) stops_until_ = 0;
  const std::int64_t stops_until = stops_until_;
  return is_connected && (stops_until == 0 || absl::ToUnixNanos(SteadyNow()) >= stops_until);
}

void Node::NoteStopping() { stops_until_ = absl::ToUnixNanos(SteadyNow() + kStopTime); }

grpc::GenericStub& Node::stub() {
  // Calls that come one by one share a connection. Then the acknowledgement of an answer travels
  // with the next request, and not by itself.
  if (in_progress() <= 1) next_.store(0, std::memory_order_relaxed);
  const std::size_t first = next_.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kConnections; ++i) {
    Connection& connection = *connections_[(first + i) % kConnections];
    if (connection.channel->GetState(true) == GRPC_CHANNEL_READY) return connection.stub;
  }
  return connections_[first % kConnections]->stub;
}

void Node::OnEnd(End end) {
  in_progress_.fetch_sub(1, std::memory_order_relaxed);
  if (end == End::kFailed) failed_.fetch_add(1, std::memory_order_relaxed);
  if (end != End::kAnswered) return;
  answered_.fetch_add(1, std::memory_order_relaxed);
  last_answer_ = absl::ToUnixNanos(SteadyNow());
}

}  // namespace softlookup::server
