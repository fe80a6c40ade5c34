#ifndef SOFTLOOKUP_CORE_ATTENTION_SAMPLE_LOOK_H_
#define SOFTLOOKUP_CORE_ATTENTION_SAMPLE_LOOK_H_

#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/positioned_block.h"
#include "core/attention/round_looks.h"

namespace softlookup {

// Bounds the panels of a sample of the blocks for each look of a round that reads all blocks. The
// sample costs little. It shows whether a look at all blocks can save time, and gives the reference
// of the masses (panel_choice.h).
//
// A look that skips blocks needs no sample: BlockLook has set its reference, and skipping blocks
// saves more time than the look takes.
class SampleLook {
 public:
  // `looks` must outlive this object.
  explicit SampleLook(RoundLooks& looks) : looks_(looks), blocks_(looks.blocks()) {}

  // Returns the most bytes that the bounds of one look take.
  static std::int64_t BoundBytesMax(const AlignedBlocks& blocks);
  // Returns true if the block is in the sample of looks that read all blocks.
  static bool IsSampled(const PositionedBlock& block) { return block.number % kStride == 0; }

  // Sets blocks(), and makes room for the bounds of their panels. Call this once the blocks are
  // chosen for all looks.
  void Begin();
  // The blocks of the pass that are in the sample of some look, ascending.
  const std::vector<std::int64_t>& blocks() const { return sampled_blocks_; }

  // Bounds the panels of blocks()[begin, end) for the tiles [tile_begin, tile_end). Calls for
  // different tiles or blocks may run at the same time.
  void LookAt(std::int64_t begin, std::int64_t end, std::int64_t tile_begin, std::int64_t tile_end);
  // Call this for each tile once all of blocks() are looked at. Of the tile's looks that read all
  // blocks, decides which continue, and sets the reference of their masses. All rows are scanned
  // for the others. Calls for different tiles may run at the same time.
  void Choose(std::int64_t tile);

  // Copies the sample's bounds on logits for the look numbered `index`, which reads all blocks, to
  // their places in `bounds`: [block of the pass][panel]. Call this once Choose has run for all
  // tiles.
  void CopyTo(std::int64_t index, absl::Span<float> bounds) const;

 private:
  // The sample is made of the blocks whose numbers are multiples of this.
  static constexpr std::int64_t kStride = 16;

  // Returns the bounds of the sample's panels for the look looks_[index], without those of +inf,
  // which tell nothing. A bound of -inf is that of a panel without rows that count. Returns none if
  // all are -inf.
  std::vector<float> SampleOf(std::int64_t index) const;
  // Returns false if the sample shows that the look is not likely to save time. `number` is the
  // index of the look's head query in the tile.
  bool SavesMost(const RoundLooks::Tile& tile, int number, absl::Span<const float> sample) const;
  // Returns the index in bounds_ of the bounds of a sampled block's panels, for the look
  // looks_[index]. `place` is the block's index in sampled_blocks_.
  std::int64_t BoundsOffset(std::int64_t index, std::int64_t place) const {
    return (index * std::ssize(sampled_blocks_) + place) * blocks_.panels_max();
  }

  RoundLooks& looks_;
  const AlignedBlocks& blocks_;
  std::vector<std::int64_t> sampled_blocks_;
  std::vector<std::int64_t> places_;  // By block of the pass: its index in sampled_blocks_, or -1.
  std::vector<float> bounds_;         // [look][block of sampled_blocks_][panel]
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_SAMPLE_LOOK_H_
