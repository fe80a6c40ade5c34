#include "core/engine/open_on_log.h"

#include <string>
#include <utility>

#include "core/base/status_macros.h"
#include "core/engine/damage_observer.h"
#include "core/replicated_log/replica_directory.h"
#include "core/replicated_log/replicated_log.h"
#include "softlookup/replicated_engine.h"

namespace softlookup {
namespace {

// Opens the log of a server that is no replica.
absl::StatusOr<std::unique_ptr<CommitLog>> OpenLogOfOneServer(const std::string& directory) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::unique_ptr<CommitLog> log, OpenCommitLog(directory));
  SOFTLOOKUP_RETURN_IF_ERROR(ReleaseDirectory(*log));
  return log;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Open(const EngineOptions& options,
                                                     const std::string& directory) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::unique_ptr<CommitLog> log, OpenLogOfOneServer(directory));
  return MakeEngineOnLog(options, std::move(log));
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Open(
    const EngineOptions& options, const std::string& directory,
    absl::FunctionRef<void(const absl::Status&)> on_damage) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::unique_ptr<CommitLog> log, OpenLogOfOneServer(directory));
  return OpenOnLog(options, std::move(log), on_damage);
}

absl::StatusOr<std::unique_ptr<Engine>> OpenOnLog(
    const EngineOptions& options, std::unique_ptr<CommitLog> log,
    absl::FunctionRef<void(const absl::Status&)> on_damage) {
  DamageObserver observer(on_damage);
  std::unique_ptr<Engine> engine = MakeEngineOnLog(options, std::move(log));
  SOFTLOOKUP_RETURN_IF_ERROR(engine->Load(observer));
  return engine;
}

absl::StatusOr<ReplicatedEngine> OpenReplicated(const EngineOptions& options,
                                                const std::string& directory,
                                                ReplicationOptions replication,
                                                ReplicaThread& thread) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::unique_ptr<CommitLog> records, OpenCommitLog(directory));
  EngineOptions member = options;
  member.node = replication.name.node;
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      std::unique_ptr<ReplicatedLog> log,
      ReplicatedLog::Open(std::move(records), std::move(replication), thread));
  ReplicatedEngine opened{.replication = log.get()};
  opened.engine = MakeEngineOnLog(member, std::move(log));
  return opened;
}

}  // namespace softlookup
