#ifndef SOFTLOOKUP_SERVER_ROUTER_NODE_H_
#define SOFTLOOKUP_SERVER_ROUTER_NODE_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/base/steady_time.h"

namespace softlookup::server {

// A node at one address, as a router calls it. Thread-safe.
//
// The last reference must not go on a thread of gRPC, because the channels end with it (see
// CallSet::Life).
class Node {
 public:
  // One connection at a time is served by one thread of gRPC.
  static constexpr std::size_t kConnections = 2;

  // Begins to connect. `address` is HOST:PORT.
  Node(std::string name, std::string address,
       const std::shared_ptr<grpc::ChannelCredentials>& credentials);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::string& name() const { return name_; }
  const std::string& address() const { return address_; }

  // Whether a connection is open, and the node takes calls there. Begins to connect if none is.
  bool is_connected();
  // The node has refused a call because it stops. It gets no others before it has closed its
  // connections, because it answers none that come while it closes them. But a node that takes
  // long to end its calls is asked again once in a while.
  void NoteStopping();
  // Returns the stub of an open connection, if one is open: in turns, while several calls are in
  // progress. Call OnStart() before, for the call that is to be made.
  grpc::GenericStub& stub();

  // Lets lookups go to other nodes for `time` if there are any.
  void Avoid(absl::Duration time) { avoided_until_ = absl::ToUnixNanos(SteadyNow() + time); }
  bool is_avoided() const { return absl::ToUnixNanos(SteadyNow()) < avoided_until_; }

  // How a call has ended: the node has answered, be it with an error; it was not reached, or the
  // connection broke; or the router needs no answer any more.
  enum class End : std::uint8_t { kAnswered, kFailed, kDropped };
  // Count the calls.
  void OnStart() { in_progress_.fetch_add(1, std::memory_order_relaxed); }
  void OnEnd(End end);
  std::int64_t in_progress() const { return in_progress_.load(std::memory_order_relaxed); }
  std::uint64_t answered() const { return answered_.load(std::memory_order_relaxed); }
  std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }
  // When the node has last answered any call.
  absl::Time last_answer() const { return absl::FromUnixNanos(last_answer_); }

 private:
  struct Connection {
    explicit Connection(std::shared_ptr<grpc::Channel> opened)
        : channel(std::move(opened)), stub(channel) {}

    std::shared_ptr<grpc::Channel> channel;
    grpc::GenericStub stub;
  };

  const std::string name_;
  const std::string address_;
  std::array<std::unique_ptr<Connection>, kConnections> connections_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::int64_t> avoided_until_{0};
  std::atomic<std::int64_t> stops_until_{0};  // 0: it does not stop.
  std::atomic<std::int64_t> last_answer_{0};
  std::atomic<std::int64_t> in_progress_{0};
  std::atomic<std::uint64_t> answered_{0};
  std::atomic<std::uint64_t> failed_{0};
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_NODE_H_
