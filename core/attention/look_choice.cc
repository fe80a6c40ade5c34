#include "core/attention/look_choice.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "core/attention/block_choice.h"
#include "core/attention/look_goal.h"
#include "core/attention/precision_path.h"

namespace softlookup {
namespace {

// A task with fewer blocks that have sketches than this gets no first look. Scanning so few blocks
// takes about as long as a look.
constexpr std::int64_t kSketchedBlocksMin = 4;

// Returns the look for a head query, whose number in its task is `number`. Returns nothing if the
// head query cannot gain from a look. Look::query is left to the caller.
std::optional<Look> LookFor(HeadQueries& head_queries, std::int64_t number,
                            const HeadQuery& query) {
  if (!MayHaveLooks(head_queries) || !kernels::KeysFitSketch(query.magnitude)) return std::nullopt;
  const BlocksSummary& blocks = head_queries.summary();
  const ScanPlan plan = head_queries.PlanOf(number);
  const LogitRangeOfRows range = LogitRange(plan, query, blocks.sketches.norm_max);
  // With larger bounds, the terms of a bound may leave float32's range.
  const double farthest = query.norm + blocks.sketches.norm_max;
  if (!(range.highest < 1e30 && range.lowest > -1e30 && farthest * farthest < 1e30)) {
    return std::nullopt;
  }
  const LookGoal goal = LookGoalOf(plan);
  const AttentionTask& task = head_queries.task();
  const std::uint64_t row_count =
      std::min(static_cast<std::uint64_t>(blocks.row_count), task.end - task.begin);
  if (!CanLeaveOut(plan.options, goal, range, row_count)) {
    return std::nullopt;
  }
  // A sketch's norms are rounded to nearest, so a key's norm can be a little larger.
  const double norm_max = blocks.sketches.norm_max * (1 + 0x1p-20);
  return Look{.goal = goal,
              .panel_count = blocks.panel_count,
              .block_row_count = blocks.row_count,
              .groups = blocks.IsWithin(query) ? absl::MakeConstSpan(blocks.groups)
                                               : absl::Span<const kernels::KeyBalls* const>(),
              .sketches = blocks.sketches,
              .range = range,
              .coarse_part = CoarsePart(plan, goal, query, norm_max),
              .needs_float64 = NeedsFloat64(plan, query, norm_max),
              .may_skip_blocks = MaySkipBlocks(plan, query, blocks.balls, goal, blocks.row_count)};
}

}  // namespace

bool MayHaveLooks(const HeadQueries& queries) {
  return queries.summary().sketched_count >= kSketchedBlocksMin &&
         MayLeaveOut(queries.task(), queries.selects_rows());
}

void BeginLooks(const HeadQueryRound& round, const HeadQueryOrder& order, RoundLooks& looks) {
  looks.Begin(round);
  for (std::size_t q = 0; q < round.refs.size(); ++q) {
    const HeadQueryRef& ref = round.refs[q];
    std::optional<Look> look = LookFor(ref.task->head_queries(), ref.number, round.queries[q]);
    if (!look) continue;
    look->query = q;
    looks.Add(*std::move(look));
  }
  const std::int64_t count = std::ssize(looks.all());
  std::int64_t begin = 0;
  for (std::int64_t end = 1; end <= count; ++end) {
    if (end < count && end - begin < kernels::kTileQueries &&
        order.ShareScan(round.refs[looks[end - 1].query], round.refs[looks[end].query])) {
      continue;
    }
    looks.AddTile(begin, end);
    begin = end;
  }
}

}  // namespace softlookup
