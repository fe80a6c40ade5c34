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
// Whether a head query is looked at, and which panels remain, depends only on the query, its task's
// options and its task's blocks. It depends neither on other queries nor on threads.
class FirstLook {
 public:
  // Both must outlive this object.
  FirstLook(const AlignedBlocks& blocks, const HeadQueryOrder& order);
  ~FirstLook();
  FirstLook(const FirstLook&) = delete;
  FirstLook& operator=(const FirstLook&) = delete;

  // Returns true if head queries of the task may gain from a first look.
  static bool MayServe(const TaskAnswer& task);
  // Returns the most bytes that the bounds and places of one head query take.
  std::int64_t BytesPerQuery() const {
    constexpr std::int64_t kBlockBytes = sizeof(double) + sizeof(std::int32_t);
    return blocks_.count() *
           (blocks_.panels_max() * static_cast<std::int64_t>(sizeof(float)) + kBlockBytes);
  }

  // Takes those of a round's head queries that may gain. Neither vector may change before the last
  // call of Choose.
  void Begin(const std::vector<HeadQueryRef>& refs, const std::vector<HeadQuery>& queries);
  // The number of tiles of head queries that have a look. 0: all rows are scanned for every head
  // query.
  std::int64_t tile_count() const { return static_cast<std::int64_t>(tiles_.size()); }

  // Bounds the logits of whole blocks of the pass, [begin, end), for the head queries of a tile.
  // Calls for different tiles or blocks may run at the same time.
  void BoundBlocks(std::int64_t begin, std::int64_t end, std::int64_t tile);
  // Call this once all blocks are bounded for the tile. Chooses the blocks that its head queries
  // look at. The others are skipped: none of their rows can matter. Calls for different tiles may
  // run at the same time.
  void ChooseBlocks(std::int64_t tile);
  // Makes room for the bounds of panels. Call this once the blocks are chosen for all tiles.
  void BeginPanels();
  // The blocks of the pass that some head query looks at, ascending.
  const std::vector<std::int64_t>& read_blocks() const { return read_blocks_; }

  // A look has two parts. The sample comes first: it costs little, and shows whether the rest can
  // pay.
  enum class Part { kSample, kRest };
  // Looks at those of the blocks read_blocks()[begin, end) that belong to the part, for the tiles
  // [tile_begin, tile_end). With the rest, tiles that weigh all rows look at the sample's blocks
  // again. Calls for different tiles or blocks may run at the same time.
  void LookAt(Part part, std::int64_t begin, std::int64_t end, std::int64_t tile_begin,
              std::int64_t tile_end);
  // Call this for each tile once all blocks of a part are looked at. Decides which of the tile's
  // head queries continue. All rows are scanned for the others. After the rest, also chooses the
  // candidates. Calls for different tiles may run at the same time.
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
    std::int64_t panel_count = 0;  // Of the task's blocks: what a scan of all rows goes through.
    bool continues = true;
    SketchBounds sketches;
    LogitRangeOfRows range;
    // As CoarsePart says.
    double coarse_part = 0;
    bool needs_float64 = false;   // As NeedsFloat64() says for the longest key.
    std::vector<double> highest;  // By block of the pass, as in block_choice.h.
    BlockChoice blocks;
    // By block of the pass: its place among the blocks that are read, or -1. Empty: all are read.
    std::vector<std::int32_t> places;
    std::size_t bounds_begin = 0;  // In bounds_.
    Candidates candidates;

    bool skips() const { return blocks.read.has_value(); }
    bool Reads(std::int64_t block) const {
      return !skips() || places[static_cast<std::size_t>(block)] >= 0;
    }
  };
  // Neighbouring looks, from `begin` on, whose head queries share a scan.
  struct Tile {
    std::int64_t begin = 0;
    LookTile queries;

    std::int64_t end() const { return begin + queries.count(); }
  };

  void LookAtBlock(Part part, const Tile& tile, std::int64_t block, PanelBounder& bounder);
  void AddTile(std::int64_t begin, std::int64_t end);
  // Returns true if a second look that keeps this choice of panels takes less time than a scan of
  // all rows. `masses` has the bounds that the choice was made by: of the sample or of all panels.
  // panel_count is the number of these panels, those included of which no row counts.
  static bool Saves(const Look& look, const MassChoice& choice, absl::Span<const float> masses,
                    std::int64_t panel_count);
  // Returns the bounds of the sample's panels but those of which nothing is known: -inf if no row
  // counts. Empty if none has such a row.
  std::vector<float> SampleOf(const Look& look) const;
  // Returns false if the sample shows that a look will hardly save time.
  bool SampleSavesMost(const Tile& tile, int number, absl::Span<const float> sample) const;
  void ChooseByMassOf(const Tile& tile, int number);
  // Makes candidates of the panels that hold the first goal.first_rows rows.
  void KeepFirstRows(Look& look);
  // Sets the look's candidates.kept_blocks.
  void FindKeptBlocks(Look& look);
  // Returns the block of the pass at a place among those that the look reads.
  static std::int64_t BlockAt(const Look& look, std::int64_t place) {
    return look.skips() ? (*look.blocks.read)[static_cast<std::size_t>(place)] : place;
  }
  // Scores panels of the largest bounds in float64: that of the largest finite bound, and a few of
  // infinite ones. Returns the largest maximum and the largest log-sum-exp, possibly of two panels.
  PanelLogits BestPanel(const ScanPlan& plan, const Look& look,
                        absl::Span<const float> bounds) const;
  // Returns the block of a panel, by its index in a look's bounds.
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
  // Returns the blocks [begin, end) of the pass, as BlockOf does.
  std::vector<const PositionedBlock*> BlocksOf(std::int64_t look, std::int64_t begin,
                                               std::int64_t end) const;
  const PositionedBlock* BlockOf(std::int64_t look, std::int64_t block) const {
    return blocks_.Of((*refs_)[looks_[static_cast<std::size_t>(look)].query].task_index, block);
  }

  const AlignedBlocks& blocks_;
  const HeadQueryOrder& order_;
  const std::vector<HeadQueryRef>* refs_ = nullptr;
  const std::vector<HeadQuery>* queries_ = nullptr;
  std::vector<std::int64_t> look_of_;  // By head query of the round. -1: none.
  std::vector<Look> looks_;
  std::deque<Tile> tiles_;
  std::vector<std::int64_t> read_blocks_;
  std::vector<float> bounds_;  // [look][block that it reads][panel]
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_FIRST_LOOK_H_
