#ifndef SOFTLOOKUP_SERVER_OPEN_ENGINE_H_
#define SOFTLOOKUP_SERVER_OPEN_ENGINE_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/flags.h"
#include "softlookup/engine.h"
#include "softlookup/engine_observer.h"
#include "softlookup/replication.h"

namespace softlookup::server {

// An engine, and what makes it a replica of a group.
struct OpenedEngine {
  std::unique_ptr<ReplicaThread> replica_thread;  // Null: the engine is no replica.
  std::unique_ptr<Engine> engine;
  Replication* replication = nullptr;  // Set if and only if replica_thread is.
};

// Opens the engine that `flags` ask for. Its stores are not loaded. If it is a replica and can
// never serve again, logs why and sends this process SIGTERM. The errors are those of ChooseKernel,
// Engine::Open and OpenReplicated, and INVALID_ARGUMENT if etcd's certificates are unusable.
absl::StatusOr<OpenedEngine> OpenEngine(const Flags& flags,
                                        std::shared_ptr<EngineObserver> observer);

// Loads the stores, and logs progress and damage. A replica first waits until it is the primary.
// While it waits, it calls should_stop() a few times a second, and returns CANCELLED once that
// returns true. The other errors are those of Engine::Load and Replication::AwaitPrimary.
absl::Status LoadEngine(const OpenedEngine& opened, const std::function<bool()>& should_stop);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_OPEN_ENGINE_H_
