#include "core/attention/round_looks.h"

#include <utility>

#include "core/attention/precision_path.h"

namespace softlookup {
namespace {

// A task with fewer sketched blocks than this gets no first look. Scanning so few takes about as
// long as a look.
constexpr std::int64_t kSketchedBlocksMin = 4;

}  // namespace

bool MayHaveLooks(const HeadQueries& queries) {
  if (!MayLeaveOut(queries.task(), queries.selects_rows())) return false;
  std::int64_t sketched = 0;
  for (const PositionedBlock& block : queries.task().blocks) {
    if (block.sketch != nullptr && ++sketched == kSketchedBlocksMin) return true;
  }
  return false;
}

void RoundLooks::Begin(const HeadQueryRound& round) {
  round_ = &round;
  looks_.clear();
  tiles_.clear();
  HeadQueries* head_queries = nullptr;
  bool may_serve = false;
  SketchBounds sketches;
  BallsRange balls;
  std::int64_t panel_count = 0, row_count = 0, tile_begin = 0;
  const auto end_tile = [&] {
    const std::int64_t end = std::ssize(looks_);
    if (end > tile_begin) AddTile(tile_begin, end);
    tile_begin = end;
  };
  for (std::size_t q = 0; q < round.refs.size(); ++q) {
    const HeadQueryRef& ref = round.refs[q];
    const HeadQuery& query = round.queries[q];
    if (&ref.task->head_queries() != head_queries) {
      head_queries = &ref.task->head_queries();
      may_serve = MayHaveLooks(*head_queries);
      sketches = {};
      balls = {};
      panel_count = row_count = 0;
      for (const PositionedBlock& block : head_queries->task().blocks) {
        panel_count += block.view.panel_count();
        row_count += block.view.row_count;
        if (!may_serve || block.sketch == nullptr) continue;
        sketches.Add(*block.sketch);
        if (block.sketch->has_balls()) balls.Add(block.sketch->balls);
      }
    }
    if (!may_serve || !kernels::KeysFitSketch(query.magnitude)) continue;
    const ScanPlan plan = head_queries->PlanOf(ref.number);
    const LogitRangeOfRows range = LogitRange(plan, query, sketches.norm_max);
    // With larger bounds, the terms of a bound may leave float32's range.
    const double farthest = query.norm + sketches.norm_max;
    if (!(range.highest < 1e30 && range.lowest > -1e30 && farthest * farthest < 1e30)) continue;
    const LookGoal goal = LookGoalOf(plan);
    if (!CanLeaveOut(plan.options, goal, range, head_queries->task().row_count())) continue;
    if (std::ssize(looks_) - tile_begin == kernels::kTileQueries ||
        (tile_begin < std::ssize(looks_) &&
         !order_.ShareScan(round.refs[looks_.back().query], ref))) {
      end_tile();
    }
    looks_.push_back({.query = q,
                      .goal = goal,
                      .panel_count = panel_count,
                      .sketches = sketches,
                      .range = range,
                      .may_skip_blocks = MaySkipBlocks(plan, query, balls, goal, row_count),
                      .highest = std::vector<double>(static_cast<std::size_t>(blocks_.count()),
                                                     kInfiniteLogit)});
  }
  end_tile();
}

void RoundLooks::AddTile(std::int64_t begin, std::int64_t end) {
  const HeadQueryRef& first = round_->refs[(*this)[begin].query];
  const ScanPlan plan = first.task->head_queries().PlanOf(first.number);
  std::vector<const HeadQuery*> queries;
  std::vector<SketchBounds> sketches;
  for (std::int64_t i = begin; i < end; ++i) {
    Look& look = (*this)[i];
    const HeadQuery& query = QueryOf(look);
    queries.push_back(&query);
    sketches.push_back(look.sketches);
    // A sketch's norms are rounded to nearest, so a key's norm can be a little larger.
    const double norm_max = look.sketches.norm_max * (1 + 0x1p-20);
    look.coarse_part = CoarsePart(plan, look.goal, query, norm_max);
    look.needs_float64 = NeedsFloat64(plan, query, norm_max);
  }
  tiles_.push_back({.begin = begin, .queries = LookTile(plan, std::move(queries), sketches)});
}

std::vector<const PositionedBlock*> RoundLooks::BlocksOf(const Look& look, std::int64_t begin,
                                                         std::int64_t end) const {
  std::vector<const PositionedBlock*> blocks;
  blocks.reserve(static_cast<std::size_t>(end - begin));
  for (std::int64_t block = begin; block < end; ++block) blocks.push_back(BlockOf(look, block));
  return blocks;
}

}  // namespace softlookup
