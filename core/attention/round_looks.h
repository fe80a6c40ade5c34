#ifndef SOFTLOOKUP_CORE_ATTENTION_ROUND_LOOKS_H_
#define SOFTLOOKUP_CORE_ATTENTION_ROUND_LOOKS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/attention/aligned_blocks.h"
#include "core/attention/block_choice.h"
#include "core/attention/head_query_order.h"
#include "core/attention/head_query_round.h"
#include "core/attention/logit_bounds.h"
#include "core/attention/look_goal.h"
#include "core/attention/look_tile.h"
#include "core/attention/second_look.h"

namespace softlookup {

// What the first look for one head query has to find, and what it has found so far.
struct Look {
  // RoundLooks sets these.
  std::size_t query = 0;  // Index in the round.
  LookGoal goal;
  std::int64_t panel_count = 0;  // Panels of the task's blocks: what a scan of all rows reads.
  SketchBounds sketches;
  LogitRangeOfRows range;
  // From CoarsePart(): the part of the mass that may be scored in the fastest arithmetic.
  double coarse_part = 0;
  // From NeedsFloat64(): true if a scan of all rows would score some of them in float64.
  bool needs_float64 = false;

  // From MaySkipBlocks(). If false, BlockLook does not bound the look's blocks.
  bool may_skip_blocks = true;

  // BlockLook sets these.
  std::vector<double> highest;  // By block of the pass: a bound on logits. At first infinite.
  BlockChoice blocks;
  // By block of the pass: its index among the blocks that this look reads, or -1. Empty: the look
  // reads all blocks.
  std::vector<std::int32_t> places;

  // PanelLook sets these.
  bool continues = true;         // False: all rows are to be scanned for the head query.
  std::size_t bounds_begin = 0;  // Index in PanelLook's bounds of the look's first bound.
  Candidates candidates;

  bool skips() const { return blocks.read.has_value(); }
  bool Reads(std::int64_t block) const {
    return !skips() || places[static_cast<std::size_t>(block)] >= 0;
  }
};

// Returns true if head queries of the task may gain from a first look.
bool MayHaveLooks(const HeadQueries& queries);

// Decides which head queries of a round have a first look, and keeps their looks in tiles.
class RoundLooks {
 public:
  // Neighbouring looks, from number `begin` on, whose head queries share a scan.
  struct Tile {
    std::int64_t begin = 0;
    LookTile queries;

    std::int64_t end() const { return begin + queries.count(); }
  };

  // `blocks` and `order` must outlive this object.
  RoundLooks(const AlignedBlocks& blocks, const HeadQueryOrder& order)
      : blocks_(blocks), order_(order) {}

  // Begins a look for each of the round's head queries that may gain from one. `round` must not
  // change as long as the looks go on.
  void Begin(const HeadQueryRound& round);

  const AlignedBlocks& blocks() const { return blocks_; }
  std::vector<Look>& all() { return looks_; }
  const std::vector<Look>& all() const { return looks_; }
  Look& operator[](std::int64_t look) { return looks_[static_cast<std::size_t>(look)]; }
  const Look& operator[](std::int64_t look) const { return looks_[static_cast<std::size_t>(look)]; }
  std::deque<Tile>& tiles() { return tiles_; }
  const std::deque<Tile>& tiles() const { return tiles_; }
  std::int64_t tile_count() const { return static_cast<std::int64_t>(tiles_.size()); }
  Tile& tile(std::int64_t index) { return tiles_[static_cast<std::size_t>(index)]; }

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
  // Returns the rows that the task of the look's head query has in a block of the pass, or null.
  const PositionedBlock* BlockOf(const Look& look, std::int64_t block) const {
    return blocks_.Of(round_->refs[look.query].task_index, block);
  }
  // Returns BlockOf(look, block) for each block of the pass in [begin, end).
  std::vector<const PositionedBlock*> BlocksOf(const Look& look, std::int64_t begin,
                                               std::int64_t end) const;

 private:
  void AddTile(std::int64_t begin, std::int64_t end);

  const AlignedBlocks& blocks_;
  const HeadQueryOrder& order_;
  const HeadQueryRound* round_ = nullptr;
  std::vector<Look> looks_;
  std::deque<Tile> tiles_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ROUND_LOOKS_H_
