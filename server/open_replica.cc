#include "server/open_replica.h"

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "server/base/data_files.h"
#include "server/base/host_port.h"
#include "server/call_transport.h"
#include "server/cluster/peer_credentials.h"
#include "server/cluster/peer_protocol.h"
#include "server/cluster/peer_server.h"
#include "server/cluster/replica_node.h"
#include "server/cluster/seeding.h"
#include "server/cluster_files.h"
#include "server/rpc/grpc_port.h"
#include "server/rpc/router_calls.h"
#include "softlookup/replicated_engine.h"

namespace softlookup::server {
namespace {

// Each of the other replicas has one connection. Each router has some, which carry the calls of all
// of its clients.
const ConnectionBounds kPeerConnections{.connections_max = kPeerConnectionsMax,
                                        .streams_per_connection_max = 16'384,
                                        .handshake_timeout = absl::Seconds(10),
                                        .keepalive = kPeerKeepalive};

// Takes the port for other nodes. They are answered once ServePeers() is called.
absl::Status BindForPeers(const Flags& flags, OpenedEngine& opened) {
  if (flags.cluster_listen.empty()) return absl::OkStatus();
  opened.peer_port = std::make_unique<GrpcPort>(kPeerConnections);
  const HostPort listen = *SplitHostPort(flags.cluster_listen);
  const absl::Status bound = opened.peer_port->Bind(listen.host, listen.port);
  if (bound.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("--cluster-listen: cannot listen on ",
                                             flags.cluster_listen, ": ", bound.message()));
}

// Lets other replicas and routers reach this node, and tells them where.
absl::Status ServePeers(const Flags& flags, const ReplicaName& name, const PeerPem& pem,
                        OpenedEngine& opened) {
  if (opened.peer_port == nullptr) return absl::OkStatus();
  const CallTransport transport = CallTransportOf(flags);
  opened.router_calls = std::make_unique<RouterCalls>();
  const auto add_port = [&](grpc::ServerBuilder& builder) {
    opened.peer_port->AddTo(builder, PeerServerCredentials(pem));
    opened.router_calls->AddTo(builder);
    builder.SetMaxSendMessageSize(std::numeric_limits<int>::max());
  };
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      opened.peer_server,
      PeerServer::Start({.add_port = add_port,
                         .name = name,
                         .scratch_directory = absl::StrCat(flags.data_dir, "/", kSeedOutgoing),
                         .message_bytes_max = transport.message_bytes_max,
                         .transport_bytes_max = transport.bytes_max},
                        *opened.replication));
  opened.router_calls->Start(opened.peer_server->grpc_server(), transport.thread_count);
  SOFTLOOKUP_RETURN_IF_ERROR(opened.peer_port->Start());
  // A port of 0 in --cluster-listen becomes the one in use.
  const std::string listens =
      JoinHostPort(SplitHostPort(flags.cluster_listen)->host, opened.peer_port->port());
  const std::string& address = flags.advertise.empty() ? listens : flags.advertise;
  opened.replication->Advertise(address);
  spdlog::info("listens for nodes and routers of its cluster on {}; they reach it at {}", listens,
               address);
  return absl::OkStatus();
}

// Called once this node can never serve again as it is.
void EndReplica(const std::string& data_dir, const absl::Status& why) {
  spdlog::error("this node cannot go on as a replica: {}", std::string(why.message()));
  if (absl::IsOutOfRange(why)) {
    const absl::Status noted = SeedAgain(data_dir);
    if (noted.ok()) {
      spdlog::error("the next start copies the records of the primary");
    } else {
      spdlog::error("empty {} before the next start: {}", data_dir, std::string(noted.message()));
    }
  }
  kill(getpid(), SIGTERM);
}

}  // namespace

ReplicaName ReplicaNameOf(const Flags& flags) {
  return {.cluster = flags.cluster, .group = flags.group, .node = flags.node};
}

absl::StatusOr<OpenedEngine> OpenReplica(const Flags& flags, const EngineOptions& options,
                                         const std::function<bool()>& should_stop) {
  const ReplicaName name = ReplicaNameOf(flags);
  SOFTLOOKUP_ASSIGN_OR_RETURN(EtcdOptions etcd, EtcdOptionsOf(flags));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const PeerPem pem, PemOfPeers(flags));
  const PeerOptions peers{.cluster = name.cluster,
                          .group = name.group,
                          .node = name.node,
                          .credentials = PeerChannelCredentials(pem)};
  OpenedEngine opened;
  SOFTLOOKUP_RETURN_IF_ERROR(BindForPeers(flags, opened));
  opened.replica_thread =
      std::make_unique<ReplicaNode>(std::move(etcd), peers, [](const std::string& trouble) {
        if (trouble.empty()) return spdlog::info("etcd answers again");
        spdlog::warn("{}", trouble);
      });
  SOFTLOOKUP_RETURN_IF_ERROR(SeedIfNew(flags.data_dir, name, peers,
                                       flags.founder.empty() || flags.founder == flags.node,
                                       *opened.replica_thread, should_stop));
  const auto on_failure = [data_dir = flags.data_dir](const absl::Status& why) {
    EndReplica(data_dir, why);
  };
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      ReplicatedEngine replicated,
      OpenReplicated(options, flags.data_dir, {.name = name, .on_failure = on_failure},
                     *opened.replica_thread));
  opened.engine = std::move(replicated.engine);
  opened.replication = replicated.replication;
  spdlog::info("is node {} of group {} of cluster {}; etcd: {}", flags.node, flags.group,
               flags.cluster, flags.cluster_etcd);
  SOFTLOOKUP_RETURN_IF_ERROR(ServePeers(flags, name, pem, opened));
  return opened;
}

}  // namespace softlookup::server
