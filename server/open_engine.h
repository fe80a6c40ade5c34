#ifndef SOFTLOOKUP_SERVER_OPEN_ENGINE_H_
#define SOFTLOOKUP_SERVER_OPEN_ENGINE_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/cluster/peer_server.h"
#include "server/flags.h"
#include "server/rpc/grpc_port.h"
#include "server/rpc/router_calls.h"
#include "softlookup/engine.h"
#include "softlookup/engine_observer.h"
#include "softlookup/replication.h"

namespace softlookup::server {

// An engine, and what makes it a replica of a group.
struct OpenedEngine {
  std::unique_ptr<ReplicaThread> replica_thread;  // Null: the engine is no replica.
  std::unique_ptr<Engine> engine;
  Replication* replication = nullptr;  // Set if and only if replica_thread is.
  // Null: other replicas cannot reach this one.
  std::unique_ptr<GrpcPort> peer_port;
  std::unique_ptr<PeerServer> peer_server;
  // Null if `peer_server` is. Destroyed before it.
  std::unique_ptr<RouterCalls> router_calls;
};

// Opens the engine that `flags` ask for. Its stores are not loaded. A replica that has no records,
// but whose group has some, first gets those of the primary. If a replica can never serve again,
// logs why and sends this process SIGTERM. The errors are those of ChooseKernel, Engine::Open,
// OpenReplicated, SeedIfNew and PeerServer::Start, and INVALID_ARGUMENT if certificates are
// unusable.
//
// This and LoadEngine() call should_stop() a few times a second while a replica waits for others,
// and return CANCELLED once it returns true.
absl::StatusOr<OpenedEngine> OpenEngine(const Flags& flags,
                                        std::shared_ptr<EngineObserver> observer,
                                        const std::function<bool()>& should_stop);

// Loads the stores, and logs progress and damage. A replica first waits until it has all that its
// group has committed, and there is a primary. The errors are those of Engine::Load and
// Replication::AwaitReady.
absl::Status LoadEngine(const OpenedEngine& opened, const std::function<bool()>& should_stop);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OPEN_ENGINE_H_
