#ifndef SOFTLOOKUP_CORE_ENGINE_JOB_CONTEXT_H_
#define SOFTLOOKUP_CORE_ENGINE_JOB_CONTEXT_H_

#include <optional>

#include "core/base/limits.h"
#include "core/engine/ranking_budget.h"
#include "core/kernels/amx/tile_scan.h"

namespace softlookup {

// What the lookups and Attends of an engine share. Thread-safe.
struct JobContext {
  const Limits& limits;
  // The value of AttentionTask::tiles in every task of the engine.
  const std::optional<kernels::TileUnit> tiles;
  RankingBudget ranking;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_JOB_CONTEXT_H_
