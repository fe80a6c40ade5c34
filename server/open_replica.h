#ifndef SOFTLOOKUP_SERVER_OPEN_REPLICA_H_
#define SOFTLOOKUP_SERVER_OPEN_REPLICA_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/flags.h"
#include "server/open_engine.h"
#include "softlookup/engine.h"
#include "softlookup/replication.h"

namespace softlookup::server {

// Connections that nodes and routers may have to a node at the same time.
inline constexpr std::size_t kPeerConnectionsMax = 256;

// The name of a server with --cluster-etcd.
ReplicaName ReplicaNameOf(const Flags& flags);

// Opens the engine of a server with --cluster-etcd, as OpenEngine() says.
absl::StatusOr<OpenedEngine> OpenReplica(const Flags& flags, const EngineOptions& options,
                                         const std::function<bool()>& should_stop);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OPEN_REPLICA_H_
