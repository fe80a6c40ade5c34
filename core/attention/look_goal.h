#ifndef SOFTLOOKUP_CORE_ATTENTION_LOOK_GOAL_H_
#define SOFTLOOKUP_CORE_ATTENTION_LOOK_GOAL_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/attention/attention_task.h"
#include "core/attention/block_scan.h"
#include "core/attention/logit_bounds.h"
#include "core/attention/panel_choice.h"

namespace softlookup {

// Which of the rows that count for a head query a first look may not leave out.
struct LookGoal {
  static constexpr std::int64_t kAllRanks = std::numeric_limits<std::int64_t>::max();

  // True if the answer is a softmax over all rows. They are then left out by their mass. Otherwise
  // the answer needs only the rows below, each of them.
  bool weighs_all = false;
  // The number of rows of the largest logits. kAllRanks: all rows that min_score lets count. 0:
  // none.
  std::int64_t ranks = 0;
  // The logits that min_score asks for.
  LogitThreshold threshold;
  // The number of rows of the lowest positions. They may be listed although their weight is 0.
  std::int64_t first_rows = 0;
  // Whether the scan adds up values. It then takes float64 only where it has to.
  bool sums_values = false;
};

LookGoal LookGoalOf(const ScanPlan& plan);

// Calls visit(b, panels) for the panels of blocks[b] that have any of the first `count` rows that
// the query attends to. Blocks ascend. A block that is null has no rows.
void VisitFirstRows(std::int64_t count, absl::Span<const PositionedBlock* const> blocks,
                    const HeadQuery& query,
                    absl::FunctionRef<void(std::size_t b, kernels::PanelRange panels)> visit);

// Returns false if the task's options ask for what no bound tells: every row has a weight or is
// listed, or logits depend on more than keys.
bool MayLeaveOut(const AttentionTask& task, bool selects_rows);

// Returns the part of the mass that panels may have whose logits are formed in the fastest
// arithmetic, for keys of norms up to norm_max. 0: none may.
double CoarsePart(const ScanPlan& plan, const LookGoal& goal, const HeadQuery& query,
                  double norm_max);

// Returns false if, of row_count rows with such logits, none can be left out.
bool CanLeaveOut(const ResolvedOptions& options, const LookGoal& goal,
                 const LogitRangeOfRows& range, std::uint64_t row_count);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_LOOK_GOAL_H_
