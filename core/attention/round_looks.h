#ifndef SOFTLOOKUP_CORE_ATTENTION_ROUND_LOOKS_H_
#define SOFTLOOKUP_CORE_ATTENTION_ROUND_LOOKS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/aligned_blocks.h"
#include "core/attention/block_choice.h"
#include "core/attention/head_query_round.h"
#include "core/attention/logit_bounds.h"
#include "core/attention/look_goal.h"
#include "core/attention/look_tile.h"
#include "core/attention/panel_choice.h"
#include "core/attention/second_look.h"

namespace softlookup {

// What the first look for one head query has to find, and what it has found so far.
struct Look {
  // BeginLooks sets these.
  std::size_t query = 0;  // Index in the round.
  LookGoal goal;
  std::int64_t panel_count = 0;      // Panels of the task's blocks: what a scan of all rows reads.
  std::int64_t block_row_count = 0;  // Rows of the task's blocks.
  // BlocksSummary::groups of the task's blocks. Empty if the query does not attend to all of them.
  absl::Span<const kernels::KeyBalls* const> groups;
  SketchBounds sketches;
  LogitRangeOfRows range;
  // From CoarsePart(): the part of the mass of all rows that may be scored in the fastest
  // arithmetic.
  double coarse_part = 0;
  // From NeedsFloat64(): true if a scan of all rows is likely to score some of them in float64.
  bool needs_float64 = false;
  // From MaySkipBlocks(). If false, BlockLook does not bound the look's blocks.
  bool may_skip_blocks = true;

  // BlockLook sets these.
  BlockChoice blocks;
  // By block of the pass: its index among the blocks that this look reads, or -1. Empty: the look
  // reads all blocks.
  std::vector<std::int32_t> places;

  // SampleLook and PanelLook set this. False: all rows are to be scanned for the head query.
  bool continues = true;
  // PanelLook sets this.
  Candidates candidates;

  bool skips() const { return blocks.read.has_value(); }
  bool Reads(std::int64_t block) const {
    return !skips() || places[static_cast<std::size_t>(block)] >= 0;
  }
};

// Returns true if a second look at the chosen panels is likely to take less time than a scan of all
// rows. `masses` must have the bounds that the choice was made by. panel_count must be the number
// of all panels that the choice was made from: the sample's or the task's.
bool SecondLookPays(const Look& look, const MassChoice& choice, absl::Span<const float> masses,
                    std::int64_t panel_count);

// The looks of a round, in tiles. BeginLooks (look_choice.h) fills it.
class RoundLooks {
 public:
  // Neighbouring looks, from number `begin` on, whose head queries share a scan.
  struct Tile {
    std::int64_t begin = 0;
    LookTile queries;

    std::int64_t end() const { return begin + queries.count(); }
  };

  // `blocks` must outlive this object.
  explicit RoundLooks(const AlignedBlocks& blocks) : blocks_(blocks) {}

  // Removes all looks and tiles. Looks that are added from now on are for head queries of `round`,
  // which must not change as long as the looks go on.
  void Begin(const HeadQueryRound& round);
  void Add(Look look) { looks_.push_back(std::move(look)); }
  // Makes a tile of the looks [begin, end). `begin` must be the end of the tile before, or 0.
  void AddTile(std::int64_t begin, std::int64_t end);

  const AlignedBlocks& blocks() const { return blocks_; }
  std::vector<Look>& all() { return looks_; }
  const std::vector<Look>& all() const { return looks_; }
  Look& operator[](std::int64_t look) { return looks_[static_cast<std::size_t>(look)]; }
  const Look& operator[](std::int64_t look) const { return looks_[static_cast<std::size_t>(look)]; }
  std::deque<Tile>& tiles() { return tiles_; }
  const std::deque<Tile>& tiles() const { return tiles_; }
  std::int64_t tile_count() const { return static_cast<std::int64_t>(tiles_.size()); }
  Tile& tile(std::int64_t index) { return tiles_[static_cast<std::size_t>(index)]; }
  // Returns those of the tiles [begin, end) that have a look that continues, of a task that is not
  // cancelled.
  std::vector<const Tile*> ContinuingTiles(std::int64_t begin, std::int64_t end) const;

  // Returns false if all rows are to be scanned for every head query.
  bool AnyContinues() const {
    return std::ranges::any_of(looks_, [](const Look& look) { return look.continues; });
  }
  bool AnyMaySkipBlocks() const {
    return std::ranges::any_of(looks_, [](const Look& look) { return look.may_skip_blocks; });
  }
  const HeadQuery& QueryOf(const Look& look) const { return round_->queries[look.query]; }
  // Returns false once the task of the look's head query is cancelled.
  bool TaskContinues(const Look& look) const { return round_->refs[look.query].task->Continues(); }
  // Returns true if both head queries are of one task.
  bool ShareTask(const Look& a, const Look& b) const {
    return round_->refs[a.query].task_index == round_->refs[b.query].task_index;
  }
  // Returns the block of the look's task at block `block` of the pass, or null if the task has none
  // there.
  const PositionedBlock* BlockOf(const Look& look, std::int64_t block) const {
    return blocks_.Of(round_->refs[look.query].task_index, block);
  }
  // Returns the block of the pass that the first block of the look's task is part of.
  std::int64_t FirstBlockOf(const Look& look) const {
    return blocks_.FirstOf(round_->refs[look.query].task_index);
  }
  // Returns BlockOf(look, block) for each block of the pass in [begin, end).
  std::vector<const PositionedBlock*> BlocksOf(const Look& look, std::int64_t begin,
                                               std::int64_t end) const;

 private:
  const AlignedBlocks& blocks_;
  const HeadQueryRound* round_ = nullptr;
  std::vector<Look> looks_;
  std::deque<Tile> tiles_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ROUND_LOOKS_H_
