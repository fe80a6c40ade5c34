#ifndef SOFTLOOKUP_CORE_ATTENTION_FIRST_LOOK_H_
#define SOFTLOOKUP_CORE_ATTENTION_FIRST_LOOK_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/aligned_blocks.h"
#include "core/attention/block_choice.h"
#include "core/attention/block_scan.h"
#include "core/attention/head_query_order.h"
#include "core/attention/logit_bounds.h"
#include "core/attention/look_goal.h"
#include "core/attention/look_tile.h"
#include "core/attention/panel_choice.h"
#include "core/attention/second_look.h"

namespace softlookup {

// The first of two looks at the rows of a store. It reads the sketches of the keys, and hardly any
// key. It skips blocks that cannot matter, and bounds the logits of each panel of 16 rows in the
// others. The bounds show which panels can matter to the answer. The second look (second_look.h)
// scans these alone.
// docs/decisions/0021-two-looks.md has the proof.
//
// Whether a head query has a look, and which panels remain, depends only on the query and its
// task's options and blocks. Other queries and threads make no difference.
class FirstLook {
 public:
  // `blocks` and `order` must outlive this object.
  FirstLook(const AlignedBlocks& blocks, const HeadQueryOrder& order);
  ~FirstLook();
  FirstLook(const FirstLook&) = delete;
  FirstLook& operator=(const FirstLook&) = delete;

  // Returns true if head queries of the task may gain from a first look.
  static bool MayServe(const HeadQueries& queries);
  // Returns the most bytes that the bounds and places of one head query take.
  std::int64_t BytesPerQuery() const {
    constexpr std::int64_t kBlockBytes = sizeof(double) + sizeof(std::int32_t);
    return blocks_.count() *
           (blocks_.panels_max() * static_cast<std::int64_t>(sizeof(float)) + kBlockBytes);
  }

  // Begins a look for each of the round's head queries that may gain from one. queries[i] is the
  // head query refs[i]. Neither vector may change before the last call of Choose.
  void Begin(const std::vector<HeadQueryRef>& refs, const std::vector<HeadQuery>& queries);
  // The number of tiles of head queries that have a look. 0: all rows are scanned for every head
  // query.
  std::int64_t tile_count() const { return static_cast<std::int64_t>(tiles_.size()); }

  // Bounds the logits of whole blocks of the pass, [begin, end), for the head queries of a tile.
  // Calls for different tiles or blocks may run at the same time.
  void BoundBlocks(std::int64_t begin, std::int64_t end, std::int64_t tile);
  // Call this once all blocks are bounded for the tile. Chooses the blocks that each of the tile's
  // head queries looks at. The head query skips all others: none of their rows can matter. Calls
  // for different tiles may run at the same time.
  void ChooseBlocks(std::int64_t tile);
  // Makes room for the bounds of panels, and sets read_blocks(). Call this once the blocks are
  // chosen for all tiles.
  void BeginPanels();
  // The blocks of the pass that the look of some head query reads, ascending.
  const std::vector<std::int64_t>& read_blocks() const { return read_blocks_; }

  // A look has two parts. The sample comes first: it costs little, and shows whether the rest can
  // pay.
  enum class Part { kSample, kRest };
  // Bounds the panels of the blocks read_blocks()[begin, end) that belong to `part`, for the tiles
  // [tile_begin, tile_end). In Part::kRest, tiles that weigh all rows look at the sample's blocks
  // again, because masses need the reference that the sample gives. Calls for different tiles or
  // blocks may run at the same time.
  void LookAt(Part part, std::int64_t begin, std::int64_t end, std::int64_t tile_begin,
              std::int64_t tile_end);
  // Call this for each tile once all blocks of a part are looked at. Decides for which of the
  // tile's head queries the look continues. All rows are scanned for the others. After Part::kRest,
  // also chooses the candidates. Calls for different tiles may run at the same time.
  void Choose(Part part, std::int64_t tile);

  // Returns false if all rows are to be scanned for every head query.
  bool AnyContinues() const {
    return std::ranges::any_of(looks_, [](const Look& look) { return look.continues; });
  }

  // Returns the blocks of the pass that have candidates of some head query, ascending. Call this
  // after the whole look.
  std::vector<std::int64_t> CandidateBlocks() const;

  // Follows a new order of the round's head queries: the i-th is now the one that was at index
  // order[i]. Call this after the whole look.
  void Sort(absl::Span<const std::int64_t> order);

  // Returns the candidates for the head query at this index of the round, or null if all rows are
  // to be scanned.
  const Candidates* CandidatesOf(std::int64_t query) const {
    const std::int64_t look = look_of_[static_cast<std::size_t>(query)];
    if (look < 0 || !looks_[static_cast<std::size_t>(look)].continues) return nullptr;
    return &looks_[static_cast<std::size_t>(look)].candidates;
  }

 private:
  // The look for one head query.
  struct Look {
    std::size_t query = 0;  // Index in the round.
    LookGoal goal;
    std::int64_t panel_count = 0;  // Panels of the task's blocks: what a scan of all rows reads.
    bool continues = true;         // False: all rows are to be scanned for the head query.
    SketchBounds sketches;
    LogitRangeOfRows range;
    // From CoarsePart(): the part of the mass that may be scored in the fastest arithmetic.
    double coarse_part = 0;
    // From NeedsFloat64(): true if a scan of all rows would score some of them in float64.
    bool needs_float64 = false;
    std::vector<double> highest;  // By block of the pass: the bound that BoundBlocks set.
    BlockChoice blocks;
    // By block of the pass: its index among the blocks that this look reads, or -1. Empty: the look
    // reads all blocks.
    std::vector<std::int32_t> places;
    std::size_t bounds_begin = 0;  // Index in bounds_ of the look's first bound.
    Candidates candidates;

    bool skips() const { return blocks.read.has_value(); }
    bool Reads(std::int64_t block) const {
      return !skips() || places[static_cast<std::size_t>(block)] >= 0;
    }
  };
  // Neighbouring looks, from looks_[begin] on, whose head queries share a scan.
  struct Tile {
    std::int64_t begin = 0;
    LookTile queries;

    std::int64_t end() const { return begin + queries.count(); }
  };

  void LookAtBlock(Part part, const Tile& tile, std::int64_t block_index, PanelBounder& bounder);
  void AddTile(std::int64_t begin, std::int64_t end);
  // Returns true if a second look at the chosen panels is likely to take less time than a scan of
  // all rows. `masses` must have the bounds that the choice was made by. panel_count must be the
  // number of all panels that the choice was made from: the sample's or the task's.
  static bool Saves(const Look& look, const MassChoice& choice, absl::Span<const float> masses,
                    std::int64_t panel_count);
  // Returns the bounds of the sample's panels, without infinite ones, which tell nothing. The bound
  // of a panel of which no row counts is -inf. Returns none if all bounds are -inf.
  std::vector<float> SampleOf(const Look& look) const;
  // Returns false if the sample shows that a look will hardly save time. `number` is the index of
  // the head query in the tile.
  bool SampleSavesMost(const Tile& tile, int number, absl::Span<const float> sample) const;
  // Chooses the candidates of a head query that weighs all rows. Decides whether its look
  // continues.
  void ChooseByMassOf(const Tile& tile, int number);
  // Makes candidates of the panels that hold the first goal.first_rows rows.
  void KeepFirstRows(Look& look);
  // Sets the look's candidates.kept_blocks.
  void FindKeptBlocks(Look& look);
  // Returns the block of the pass at a place among those that the look reads.
  static std::int64_t BlockAt(const Look& look, std::int64_t place) {
    return look.skips() ? (*look.blocks.read)[static_cast<std::size_t>(place)] : place;
  }
  // Scores the panel of the largest finite bound, and a few panels of infinite bounds, in float64.
  // Returns the largest logit and the largest log-sum-exp of a panel. These may come from different
  // panels.
  PanelLogits BestPanel(const ScanPlan& plan, const Look& look,
                        absl::Span<const float> bounds) const;
  // Returns the block of a panel, by the panel's index in the look's bounds.
  const PositionedBlock* RowsAt(const Look& look, std::int64_t panel) const;
  // Returns how many bounds a look has: panels_max() for each block that it reads.
  std::size_t PanelCountOf(const Look& look) const {
    const std::int64_t count =
        look.skips() ? static_cast<std::int64_t>(look.blocks.read->size()) : blocks_.count();
    return static_cast<std::size_t>(count * blocks_.panels_max());
  }
  // Returns the bounds of a look's panels: [block that it reads][panel].
  absl::Span<float> BoundsOf(const Look& look) {
    return absl::MakeSpan(bounds_).subspan(look.bounds_begin, PanelCountOf(look));
  }
  // Returns BlockOf(look, block) for each block of the pass in [begin, end).
  std::vector<const PositionedBlock*> BlocksOf(std::int64_t look, std::int64_t begin,
                                               std::int64_t end) const;
  // Returns the rows that the task of looks_[look] has in a block of the pass, or null.
  const PositionedBlock* BlockOf(std::int64_t look, std::int64_t block) const {
    return blocks_.Of((*refs_)[looks_[static_cast<std::size_t>(look)].query].task_index, block);
  }

  const AlignedBlocks& blocks_;
  const HeadQueryOrder& order_;
  const std::vector<HeadQueryRef>* refs_ = nullptr;
  const std::vector<HeadQuery>* queries_ = nullptr;
  std::vector<std::int64_t> look_of_;  // By head query of the round: its index in looks_, or -1.
  std::vector<Look> looks_;
  std::deque<Tile> tiles_;
  std::vector<std::int64_t> read_blocks_;
  std::vector<float> bounds_;  // [look][block that it reads][panel]
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_FIRST_LOOK_H_
