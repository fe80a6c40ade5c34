#ifndef SOFTLOOKUP_SERVER_CLUSTER_PEER_SERVER_H_
#define SOFTLOOKUP_SERVER_CLUSTER_PEER_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "softlookup/peers.h"
#include "softlookup/replication.h"

namespace softlookup::server {

struct PeerServerOptions {
  // Gives the server the port that it takes connections from, with its credentials. May register
  // other services, and change how many calls a connection may have.
  std::function<void(grpc::ServerBuilder&)> add_port;
  ReplicaName name;  // This replica's. Calls that are meant for another one are refused.
  // Where copies for other replicas are made. Created if it is missing, but its parent must exist.
  // What an earlier process has left in it, named seed-*, is removed. No other PeerServer may have
  // it.
  std::string scratch_directory;
  // What the other services need beside what PeerServer needs. 0: there are none.
  int message_bytes_max = 0;            // Of a message.
  std::size_t transport_bytes_max = 0;  // That gRPC holds, such as of messages not here whole.
};

// Answers what the other replicas of a group ask of this one (server/cluster/peers/peers.proto).
class PeerServer {
 public:
  // Limits of all callers together. A call beyond them fails with RESOURCE_EXHAUSTED.
  static constexpr int kCallsMax = 16;
  // Of the entries of all Stage and Fetch calls. A Stage counts with the size that its header
  // announces, until PeerRequests has answered.
  static constexpr std::uint64_t kEntryBytesMax = 2 * std::uint64_t{Entry::kBytesMax};
  static constexpr int kSeedsMax = 1;

  // `requests` must outlive the server. UNAVAILABLE if gRPC does not start, such as for a port that
  // cannot be listened on. The other errors are those of the scratch directory.
  static absl::StatusOr<std::unique_ptr<PeerServer>> Start(PeerServerOptions options,
                                                           PeerRequests& requests);
  // Cancels the calls in progress. Does not wait for callbacks of PeerRequests, which may still
  // come afterwards. But waits for PeerRequests::CopyRecordsTo(), which may take long.
  ~PeerServer();
  PeerServer(const PeerServer&) = delete;
  PeerServer& operator=(const PeerServer&) = delete;

  // The server, for the other services that add_port() has registered.
  const std::shared_ptr<grpc::Server>& grpc_server() const { return server_; }

 private:
  class Service;

  explicit PeerServer(std::unique_ptr<Service> service);

  const std::unique_ptr<Service> service_;
  std::shared_ptr<grpc::Server> server_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_PEER_SERVER_H_
