#ifndef SOFTLOOKUP_CORE_ATTENTION_PANEL_LOOK_H_
#define SOFTLOOKUP_CORE_ATTENTION_PANEL_LOOK_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/round_looks.h"
#include "core/attention/sample_look.h"
#include "core/attention/second_look.h"

namespace softlookup {

// Chooses the candidate panels of each look that SampleLook has not ended, by bounds that sketches
// give on the logits or masses of panels. Ends looks that cannot save time.
class PanelLook {
 public:
  // Both must outlive this object. `sample` must be over `looks`.
  PanelLook(RoundLooks& looks, const SampleLook& sample);
  ~PanelLook();
  PanelLook(const PanelLook&) = delete;
  PanelLook& operator=(const PanelLook&) = delete;

  // Returns the most bytes that the bounds of one look take.
  static std::int64_t BoundBytesMax(const AlignedBlocks& blocks);

  // Sets blocks(), and gives each look that continues room for the bounds of its panels. Call this
  // once SampleLook::Choose() has run for all tiles.
  void Begin();
  // The blocks of the pass that some look reads, ascending. Those of looks that ended with their
  // sample are included.
  const std::vector<std::int64_t>& blocks() const { return read_blocks_; }

  // Bounds the panels of blocks()[begin, end) for the tiles [tile_begin, tile_end). Begin() has
  // copied the bounds of the sample's blocks, if the tile's looks have a sample. A tile that weighs
  // all rows bounds these blocks again, because masses need a reference that is known only after
  // the sample. Calls for different tiles or blocks may run at the same time.
  void LookAt(std::int64_t begin, std::int64_t end, std::int64_t tile_begin, std::int64_t tile_end);
  // Call this for each tile once all of blocks() are looked at. Decides which of the tile's looks
  // continue, and chooses their candidates. All rows are scanned for the others. Calls for
  // different tiles may run at the same time.
  void Choose(std::int64_t tile);

 private:
  // Sets read_blocks_.
  void FindReadBlocks();
  // Chooses the candidates of looks_[index], whose goal weighs all rows. Decides whether the look
  // continues.
  void ChooseByMassOf(const RoundLooks::Tile& tile, std::int64_t index);
  // Does the same for a look whose goal does not weigh all rows.
  void ChooseByRankOf(const RoundLooks::Tile& tile, std::int64_t index);
  // Makes candidates of the panels that hold the first goal.first_rows rows: sets their bounds to
  // infinity.
  void KeepFirstRows(std::int64_t index);
  // Sets the look's candidates.kept_blocks.
  void FindKeptBlocks(std::int64_t index);
  // Scores a few panels in float64: the one of the largest finite bound, and some of infinite
  // bounds. `bounds` are on masses. Returns the largest logit and the largest log-sum-exp of a
  // panel. These may come from different panels.
  PanelLogits BestPanel(const ScanPlan& plan, const Look& look,
                        absl::Span<const float> bounds) const;
  // Returns the block of a panel, by the panel's index in the look's bounds.
  const PositionedBlock* RowsAt(const Look& look, std::int64_t panel) const;

  // Returns the place of a block of the pass among those that the look reads.
  static std::int64_t PlaceOf(const Look& look, std::int64_t block) {
    return look.skips() ? look.places[static_cast<std::size_t>(block)] : block;
  }
  // Returns the block of the pass at a place among those that the look reads.
  static std::int64_t BlockAt(const Look& look, std::int64_t place) {
    return look.skips() ? (*look.blocks.read)[static_cast<std::size_t>(place)] : place;
  }
  // Returns how many bounds a look has: panels_max() for each block that it reads.
  std::size_t PanelCountOf(const Look& look) const {
    const std::int64_t count =
        look.skips() ? static_cast<std::int64_t>(look.blocks.read->size()) : blocks_.count();
    return static_cast<std::size_t>(count * blocks_.panels_max());
  }
  // Returns the bounds of the panels of looks_[index]: [block that it reads][panel]. The look must
  // continue.
  absl::Span<float> BoundsOf(std::int64_t index) {
    return absl::MakeSpan(bounds_).subspan(bounds_begins_[static_cast<std::size_t>(index)],
                                           PanelCountOf(looks_[index]));
  }

  RoundLooks& looks_;
  const SampleLook& sample_;
  const AlignedBlocks& blocks_;
  std::vector<std::int64_t> read_blocks_;
  std::vector<float> bounds_;  // [look that continues][block that it reads][panel]
  // By look: the index in bounds_ of its first bound. 0 for a look that does not continue.
  std::vector<std::size_t> bounds_begins_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_PANEL_LOOK_H_
