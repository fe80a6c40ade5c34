#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_REPLICATED_ENGINE_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_REPLICATED_ENGINE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "softlookup/engine.h"
#include "softlookup/replication.h"

namespace softlookup {

struct ReplicatedEngine {
  std::unique_ptr<Engine> engine;
  Replication* replication = nullptr;  // The engine owns it.
};

// Opens the directory as Engine::Open() does, as that of a replica. Call Engine::Load() once
// AwaitReady() has returned OK. From then on a write is made once etcd has named it as the next
// of the group, which it does for the primary alone. Other writes are refused with STORAGE_FAILED.
// A write whose outcome is unknown after 10 s gets STORAGE_FAILED, too, and the message says so.
// Lookups go on without etcd.
//
// The first replica of a group founds it. A directory that was no replica's before becomes that of
// this one, with all its stores. `thread` must outlive the engine. Also DIRECTORY_IN_USE if the
// directory belongs to another replica.
absl::StatusOr<ReplicatedEngine> OpenReplicated(const EngineOptions& options,
                                                const std::string& directory,
                                                ReplicationOptions replication,
                                                ReplicaThread& thread);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_REPLICATED_ENGINE_H_
