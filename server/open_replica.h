#ifndef SOFTLOOKUP_SERVER_OPEN_REPLICA_H_
#define SOFTLOOKUP_SERVER_OPEN_REPLICA_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/flags.h"
#include "server/open_engine.h"
#include "softlookup/engine.h"

namespace softlookup::server {

// Opens the engine of a server with --cluster-etcd, as OpenEngine() says.
absl::StatusOr<OpenedEngine> OpenReplica(const Flags& flags, const EngineOptions& options,
                                         const std::function<bool()>& should_stop);

// Checks the files that `flags` name for the links to etcd and to the other replicas.
// INVALID_ARGUMENT says what is wrong.
absl::Status CheckReplicaFiles(const Flags& flags);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OPEN_REPLICA_H_
