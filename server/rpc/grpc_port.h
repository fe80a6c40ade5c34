#ifndef SOFTLOOKUP_SERVER_RPC_GRPC_PORT_H_
#define SOFTLOOKUP_SERVER_RPC_GRPC_PORT_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/observability/line_limiter.h"
#include "server/rpc/connection_listener.h"
#include "server/rpc/open_connections.h"

namespace softlookup::server {

// Bounds on the connections of gRPC's clients.
struct ConnectionBounds {
  std::size_t connections_max = 0;     // Connections that are open at the same time.
  int streams_per_connection_max = 0;  // Calls in progress on one connection.
  absl::Duration handshake_timeout;    // Time that a client has for the handshakes.
  // A connection gets a keepalive PING after this time without any bytes from its client.
  absl::Duration keepalive;
};

// The port of gRPC's clients: accepts their connections, passes them to gRPC, and keeps their
// number and each of them within bounds. Can cut a connection.
class GrpcPort {
 public:
  explicit GrpcPort(const ConnectionBounds& bounds)
      : bounds_(bounds), open_connections_(bounds.connections_max) {}

  // As ConnectionListener::Bind().
  absl::Status Bind(const std::string& host, int port) { return listener_.Bind(host, port); }
  int port() const { return listener_.port(); }
  // Whether only this machine can reach the port. Call this after Bind().
  bool is_loopback() const { return listener_.is_loopback(); }

  // Makes the server of `builder` take connections from this port and keep each of them within
  // bounds. Their handshakes use `credentials`. Call this once, before the server starts.
  void AddTo(grpc::ServerBuilder& builder,
             const std::shared_ptr<grpc::ServerCredentials>& credentials);
  // Begins to accept. Call this once, when the server has started. UNAVAILABLE if no descriptor is
  // free.
  absl::Status Start();
  // Stops accepting and closes the port. Open connections stay.
  void Stop() { listener_.Stop(); }

  // Ends the connection of `peer`, an address in gRPC's notation, if it is open. Logs that, at most
  // once a second for all connections together. `why` completes the sentence "cut the connection of
  // PEER, which ...". Thread-safe.
  void Cut(const std::string& peer, absl::string_view why);

 private:
  const ConnectionBounds bounds_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  OpenConnections open_connections_;
  ConnectionListener listener_{open_connections_};  // Passes connections to the acceptor.
  LineLimiter cut_lines_{1};
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_GRPC_PORT_H_
