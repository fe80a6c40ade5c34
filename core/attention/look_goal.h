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

  // True if the answer is a softmax over all rows. Panels may then be left out as long as their
  // masses together (panel_choice.h) fit the error budget. The rows that `ranks` and `first_rows`
  // ask for are kept in any case.
  bool weighs_all = false;
  // How many rows of the largest logits to keep. kAllRanks: all rows that min_score lets count.
  std::int64_t ranks = 0;
  // min_score as a logit, with a margin for rounding.
  LogitThreshold threshold;
  // How many rows of the lowest positions to keep. A list of weights that is longer than the number
  // of rows with a weight above 0 goes on with rows of weight 0, by position.
  std::int64_t first_rows = 0;
  // Whether the scan adds up values. If not, a scan of all rows takes float64 throughout. So after
  // a look at all blocks, a second look pays even if few panels are left out.
  bool sums_values = false;
};

LookGoal LookGoalOf(const ScanPlan& plan);

// Most panels that a second look may score in float64 if values are added up, as a part of all
// panels. With more, a scan of all rows is likely to take less time.
inline constexpr double kFinePartMax = 0.25;
// Returns the most panels that may remain for a second look to pay, as a part of all panels. If
// more remain, a second look can pay only where a scan of all rows would score some of them in
// float64.
double KeptPartMax(const LookGoal& goal);

// Calls visit(b, panel) for each panel of blocks[b] that holds any of the query's first `count`
// rows, in order of position. Rows that masks leave out are not among them. A block that is null
// has no rows.
void VisitFirstRows(std::int64_t count, absl::Span<const PositionedBlock* const> blocks,
                    const HeadQuery& query,
                    absl::FunctionRef<void(std::size_t b, std::int64_t panel)> visit);

// Returns false if a first look cannot serve the task, in these cases:
// - Every row has a weight (LINEAR) or is listed (weights ALL without top_k or min_score).
// - Logits depend on ages, or the whole task has a running memory.
// `selects_rows` is HeadQueries::selects_rows().
bool MayLeaveOut(const AttentionTask& task, bool selects_rows);

// Returns the part of the mass of all rows that may be in panels scored in the fastest arithmetic.
// It is 0 if no panel may be scored so. The keys of these panels must have norms of at most
// norm_max.
double CoarsePart(const ScanPlan& plan, const LookGoal& goal, const HeadQuery& query,
                  double norm_max);

// Returns false if the range of logits shows that few of row_count rows, or none, are likely to be
// left out. A look would then not pay.
bool CanLeaveOut(const ResolvedOptions& options, const LookGoal& goal,
                 const LogitRangeOfRows& range, std::uint64_t row_count);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_LOOK_GOAL_H_
