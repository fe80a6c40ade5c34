#ifndef SOFTLOOKUP_CORE_ENGINE_OPEN_ON_LOG_H_
#define SOFTLOOKUP_CORE_ENGINE_OPEN_ON_LOG_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/storage/commit_log.h"
#include "softlookup/engine.h"

namespace softlookup {

// Makes an engine on a log that is open. Its stores are not loaded.
std::unique_ptr<Engine> MakeEngineOnLog(const EngineOptions& options,
                                        std::unique_ptr<CommitLog> log);

// Does the same as Engine::Open with `on_damage`, but with a log that is open already.
absl::StatusOr<std::unique_ptr<Engine>> OpenOnLog(
    const EngineOptions& options, std::unique_ptr<CommitLog> log,
    absl::FunctionRef<void(const absl::Status&)> on_damage);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_OPEN_ON_LOG_H_
