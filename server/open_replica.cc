#include "server/open_replica.h"

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "server/base/data_files.h"
#include "server/base/read_file.h"
#include "server/cluster/peer_credentials.h"
#include "server/cluster/peer_protocol.h"
#include "server/cluster/peer_server.h"
#include "server/cluster/replica_node.h"
#include "server/cluster/seeding.h"
#include "server/flag_text.h"
#include "server/rpc/grpc_port.h"
#include "server/security/tls_credentials.h"
#include "softlookup/replicated_engine.h"

namespace softlookup::server {
namespace {

// A group has five replicas at most, and each of them has one connection to each other one.
const ConnectionBounds kPeerConnections{.connections_max = 64,
                                        .streams_per_connection_max = 32,
                                        .handshake_timeout = absl::Seconds(10),
                                        .keepalive = kPeerKeepalive};

// Returns the contents of a file that a flag names; "" for no file.
absl::StatusOr<std::string> Contents(const std::string& path) {
  if (path.empty()) return std::string();
  return ReadFile(path);
}

// Returns what the replica shows to etcd's members, and what it checks them by.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> EtcdCredentials(const Flags& flags) {
  if (flags.cluster_etcd_ca.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  SOFTLOOKUP_ASSIGN_OR_RETURN(options.pem_root_certs, Contents(flags.cluster_etcd_ca));
  SOFTLOOKUP_ASSIGN_OR_RETURN(options.pem_cert_chain, Contents(flags.cluster_etcd_certificate));
  SOFTLOOKUP_ASSIGN_OR_RETURN(options.pem_private_key, Contents(flags.cluster_etcd_key));
  return grpc::SslCredentials(options);
}

// Returns what replicas show to each other, and what they check each other by.
absl::StatusOr<PeerPem> PemOfPeers(const Flags& flags) {
  PeerPem pem;
  if (flags.cluster_ca.empty()) return pem;
  SOFTLOOKUP_ASSIGN_OR_RETURN(pem.ca, Contents(flags.cluster_ca));
  SOFTLOOKUP_ASSIGN_OR_RETURN(pem.certificate, Contents(flags.cluster_certificate));
  SOFTLOOKUP_ASSIGN_OR_RETURN(pem.key, Contents(flags.cluster_key));
  // An empty authority would let everybody in.
  const absl::Status checked =
      CheckTlsConfig({.certificate = pem.certificate, .private_key = pem.key, .client_ca = pem.ca});
  if (pem.ca.empty()) return absl::InvalidArgumentError("--cluster-ca: the file is empty");
  if (!checked.ok()) {
    // The same check is made of the files for clients.
    return absl::InvalidArgumentError(
        absl::StrReplaceAll(checked.message(), {{"--tls-client-ca", "--cluster-ca"},
                                                {"--tls-certificate", "--cluster-certificate"},
                                                {"--tls-key", "--cluster-key"}}));
  }
  return pem;
}

// Takes the port for other replicas. They are answered once ServePeers() is called.
absl::Status BindForPeers(const Flags& flags, OpenedEngine& opened) {
  if (flags.cluster_listen.empty()) return absl::OkStatus();
  opened.peer_port = std::make_unique<GrpcPort>(kPeerConnections);
  const HostPort listen = *SplitHostPort(flags.cluster_listen);
  const absl::Status bound = opened.peer_port->Bind(listen.host, listen.port);
  if (bound.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("--cluster-listen: cannot listen on ",
                                             flags.cluster_listen, ": ", bound.message()));
}

// Lets other replicas reach this one, and tells them where.
absl::Status ServePeers(const Flags& flags, const ReplicaName& name, const PeerPem& pem,
                        OpenedEngine& opened) {
  if (opened.peer_port == nullptr) return absl::OkStatus();
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      opened.peer_server,
      PeerServer::Start({.add_port =
                             [&](grpc::ServerBuilder& builder) {
                               opened.peer_port->AddTo(builder, PeerServerCredentials(pem));
                             },
                         .name = name,
                         .scratch_directory = absl::StrCat(flags.data_dir, "/", kSeedOutgoing)},
                        *opened.replication));
  SOFTLOOKUP_RETURN_IF_ERROR(opened.peer_port->Start());
  // A port of 0 in --cluster-listen becomes the one in use.
  const std::string listens =
      JoinHostPort(SplitHostPort(flags.cluster_listen)->host, opened.peer_port->port());
  const std::string& address = flags.advertise.empty() ? listens : flags.advertise;
  opened.replication->Advertise(address);
  spdlog::info("listens for other nodes of its group on {}; they reach it at {}", listens, address);
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

absl::StatusOr<OpenedEngine> OpenReplica(const Flags& flags, const EngineOptions& options,
                                         const std::function<bool()>& should_stop) {
  const ReplicaName name{.cluster = flags.cluster, .group = flags.group, .node = flags.node};
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::shared_ptr<grpc::ChannelCredentials> credentials,
                              EtcdCredentials(flags));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const PeerPem pem, PemOfPeers(flags));
  const PeerOptions peers{.cluster = name.cluster,
                          .group = name.group,
                          .node = name.node,
                          .credentials = PeerChannelCredentials(pem)};
  OpenedEngine opened;
  SOFTLOOKUP_RETURN_IF_ERROR(BindForPeers(flags, opened));
  opened.replica_thread = std::make_unique<ReplicaNode>(
      EtcdOptions{.endpoints = absl::StrSplit(flags.cluster_etcd, ','),
                  .credentials = std::move(credentials)},
      peers, [](const std::string& trouble) {
        if (trouble.empty()) return spdlog::info("etcd answers again");
        spdlog::warn("etcd does not answer: {}", trouble);
      });
  SOFTLOOKUP_RETURN_IF_ERROR(
      SeedIfNew(flags.data_dir, name, peers, *opened.replica_thread, should_stop));
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

absl::Status CheckReplicaFiles(const Flags& flags) {
  if (flags.cluster_etcd.empty()) return absl::OkStatus();
  SOFTLOOKUP_RETURN_IF_ERROR(EtcdCredentials(flags).status());
  return PemOfPeers(flags).status();
}

}  // namespace softlookup::server
