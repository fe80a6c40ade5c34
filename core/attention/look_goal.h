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

// The rows that a first look must keep for a head query.
struct LookGoal {
  static constexpr std::int64_t kAllRanks = std::numeric_limits<std::int64_t>::max();

  // True if the answer is a softmax over all rows. Panels are then left out as long as their mass
  // fits the error budget. The rows that `ranks` and `first_rows` name are kept in any case.
  bool weighs_all = false;
  // How many rows of the largest logits to keep. kAllRanks: all rows that min_score lets count.
  std::int64_t ranks = 0;
  // min_score as a logit, with a margin for rounding.
  LogitThreshold threshold;
  // How many rows of the lowest positions to keep. A list can reach rows of weight 0, which stand
  // in it by position.
  std::int64_t first_rows = 0;
  // Whether the scan adds up values. A scan that does takes float64 only where it has to.
  bool sums_values = false;
};

LookGoal LookGoalOf(const ScanPlan& plan);

// A second look pays if at most this part of the panels is scored in float64.
inline constexpr double kFinePartMax = 0.25;
// Returns the largest part of the panels that may remain if a second look is to pay. If more
// remain, it pays only where a scan of all rows would take float64.
double KeptPartMax(const LookGoal& goal);

// Calls visit(b, panel) for each panel of blocks[b] that holds any of the first `count` rows that
// count for the query, in order. A block that is null has no rows.
void VisitFirstRows(std::int64_t count, absl::Span<const PositionedBlock* const> blocks,
                    const HeadQuery& query,
                    absl::FunctionRef<void(std::size_t b, std::int64_t panel)> visit);

// Returns false if a first look cannot serve the task. That is so if every row has a weight or is
// listed, if logits depend on ages, or if a running memory takes part. It is also so if a partial
// answer needs rows that a whole answer does not. `selects_rows` is HeadQueries::selects_rows().
bool MayLeaveOut(const AttentionTask& task, bool selects_rows);

// Returns which part of the mass may lie in panels that are scored in the fastest arithmetic, for
// keys of norms up to norm_max.
double CoarsePart(const ScanPlan& plan, const LookGoal& goal, const HeadQuery& query,
                  double norm_max);

// Returns false if no row can be left out of row_count rows whose logits lie in `range`.
bool CanLeaveOut(const ResolvedOptions& options, const LookGoal& goal,
                 const LogitRangeOfRows& range, std::uint64_t row_count);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_LOOK_GOAL_H_
