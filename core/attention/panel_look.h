#ifndef SOFTLOOKUP_CORE_ATTENTION_PANEL_LOOK_H_
#define SOFTLOOKUP_CORE_ATTENTION_PANEL_LOOK_H_

#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/look_tile.h"
#include "core/attention/panel_choice.h"
#include "core/attention/round_looks.h"
#include "core/attention/second_look.h"

namespace softlookup {

// Chooses the candidate panels of each look of a round, by bounds that sketches give on the logits
// or masses of panels. Ends looks that cannot save time.
class PanelLook {
 public:
  // `looks` must outlive this object.
  explicit PanelLook(RoundLooks& looks);
  ~PanelLook();
  PanelLook(const PanelLook&) = delete;
  PanelLook& operator=(const PanelLook&) = delete;

  // Returns the most bytes of bounds that one look takes.
  static std::int64_t BoundBytesMax(const AlignedBlocks& blocks);

  // Makes room for the bounds of the sample's panels, and sets read_blocks(). Call this once the
  // blocks are chosen for all looks.
  void Begin();
  // Makes room for the bounds of all panels, for the looks that continue. Call this between the two
  // parts.
  void BeginRest();
  // The blocks of the pass that some look reads, ascending.
  const std::vector<std::int64_t>& read_blocks() const { return read_blocks_; }

  // A look has two parts. The sample comes first: it costs little, and shows whether the rest can
  // pay.
  enum class Part { kSample, kRest };
  // The blocks of the pass that `part` reads for some look, ascending.
  const std::vector<std::int64_t>& blocks_of(Part part) const {
    return part == Part::kSample ? sampled_blocks_ : read_blocks_;
  }
  // Bounds the panels of the blocks blocks_of(part)[begin, end) for the tiles
  // [tile_begin, tile_end). In Part::kRest, tiles that weigh all rows look at the sample's blocks
  // again, because masses need the reference that the sample gives. Calls for different tiles or
  // blocks may run at the same time.
  void LookAt(Part part, std::int64_t begin, std::int64_t end, std::int64_t tile_begin,
              std::int64_t tile_end);
  // Call this for each tile once all blocks of a part are looked at. Decides for which of the
  // tile's head queries the look continues. All rows are scanned for the others. After Part::kRest,
  // also chooses the candidates. Calls for different tiles may run at the same time.
  void Choose(Part part, std::int64_t tile);

 private:
  void LookAtBlock(Part part, const RoundLooks::Tile& tile, std::int64_t block_index,
                   PanelBounder& bounder);
  // Returns true if a second look at the chosen panels is likely to take less time than a scan of
  // all rows. `masses` must have the bounds that the choice was made by. panel_count must be the
  // number of all panels that the choice was made from: the sample's or the task's.
  static bool Saves(const Look& look, const MassChoice& choice, absl::Span<const float> masses,
                    std::int64_t panel_count);
  // Returns the bounds of the sample's panels for the look looks_[index], without infinite ones,
  // which tell nothing. The bound of a panel of which no row counts is -inf. Returns none if all
  // bounds are -inf.
  std::vector<float> SampleOf(std::int64_t index) const;
  // Returns false if the sample shows that a look will hardly save time. `number` is the index of
  // the head query in the tile.
  bool SampleSavesMost(const RoundLooks::Tile& tile, int number,
                       absl::Span<const float> sample) const;
  // Copies the bounds of the sample of looks_[index], which reads all blocks, to their places in
  // `bounds`.
  void CopySample(std::int64_t index, absl::Span<float> bounds) const;
  // Chooses the candidates of a head query that weighs all rows. Decides whether its look
  // continues.
  void ChooseByMassOf(const RoundLooks::Tile& tile, int number);
  // Makes candidates of the panels that hold the first goal.first_rows rows.
  void KeepFirstRows(Look& look);
  // Sets the look's candidates.kept_blocks.
  void FindKeptBlocks(Look& look);
  // Returns the index in samples_ of the bounds of a sampled block's panels, for the look
  // looks_[index]. `place` is the block's index in sampled_blocks_.
  std::int64_t SampleOffset(std::int64_t index, std::int64_t place) const {
    return (index * std::ssize(sampled_blocks_) + place) * blocks_.panels_max();
  }
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
  // Returns the bounds of a look's panels: [block that it reads][panel]. The look must continue.
  absl::Span<float> BoundsOf(const Look& look) {
    return absl::MakeSpan(bounds_).subspan(look.bounds_begin, PanelCountOf(look));
  }

  RoundLooks& looks_;
  const AlignedBlocks& blocks_;
  std::vector<std::int64_t> read_blocks_;
  // The blocks of the pass that are in the sample of some look, ascending.
  std::vector<std::int64_t> sampled_blocks_;
  // By block of the pass: its index in sampled_blocks_, or -1.
  std::vector<std::int64_t> sample_places_;
  std::vector<float> samples_;  // [look][block of sampled_blocks_][panel]
  std::vector<float> bounds_;   // [look that continues][block that it reads][panel]
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_PANEL_LOOK_H_
