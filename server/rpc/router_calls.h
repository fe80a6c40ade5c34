#ifndef SOFTLOOKUP_SERVER_RPC_ROUTER_CALLS_H_
#define SOFTLOOKUP_SERVER_RPC_ROUTER_CALLS_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>

#include "server/rpc/rpc.h"
#include "server/rpc/rpc_server.h"

namespace softlookup::server {

// Takes the calls of routers, on the port of nodes, where PeerServer answers other nodes. A node
// listens there before it can serve routers. Until Serve() is called, each call of a router ends
// with LOADING. Cancelled calls are not held against a router's connection, which carries those of
// many clients.
class RouterCalls {
 public:
  RouterCalls() : rpcs_([this](Rpc& rpc) { Begin(rpc); }, [](const Rpc&) {}) {}

  // Registers with `builder`, for all methods that no other service of it has. Call this once.
  void AddTo(grpc::ServerBuilder& builder) { rpcs_.AddTo(builder); }
  // Takes calls on `thread_count` threads. `server` was started by that builder. Call this once.
  void Start(std::shared_ptr<grpc::Server> server, int thread_count) {
    rpcs_.Serve(std::move(server), thread_count);
  }

  // Passes new calls to `accept` from now on. What `accept` uses must live until Stop() returns.
  // Call this once.
  void Serve(RpcServer::Accept accept);
  // Ends new calls with SHUTTING_DOWN from now on. Those in progress go on.
  void Refuse() { state_.store(State::kRefusing, std::memory_order_release); }
  // Closes all connections, and cancels the calls that are still in progress soon after, also those
  // of the server's other services. Returns once the calls of routers are over.
  void Stop();

 private:
  enum class State { kLoading, kServing, kRefusing };

  void Begin(Rpc& rpc);

  std::atomic<State> state_{State::kLoading};
  RpcServer::Accept accept_;  // Not changed once state_ is kServing.
  RpcServer rpcs_;            // Declared last, because its threads use the other members.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_ROUTER_CALLS_H_
