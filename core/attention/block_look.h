#ifndef SOFTLOOKUP_CORE_ATTENTION_BLOCK_LOOK_H_
#define SOFTLOOKUP_CORE_ATTENTION_BLOCK_LOOK_H_

#include <cstdint>
#include <vector>

#include "core/attention/round_looks.h"

namespace softlookup {

// Chooses the blocks that each look of a round reads, by the balls that hold the blocks' keys. The
// look skips all other blocks: their rows have no effect on the answer, or one within the error
// budget.
class BlockLook {
 public:
  // `looks` must outlive this object.
  explicit BlockLook(RoundLooks& looks) : looks_(looks) {}

  // Makes room for the bounds of all blocks. Call this once the looks have begun.
  void Begin();
  // Returns false if Bound has nothing to do.
  bool AnyToBound() const;
  // Bounds the logits of whole blocks of the pass, [begin, end), for the looks of a tile that may
  // skip blocks. Leaves out looks over groups of blocks, which Choose bounds. Calls for different
  // tiles or blocks may run at the same time.
  void Bound(std::int64_t begin, std::int64_t end, std::int64_t tile);
  // Chooses the blocks that each of the tile's looks reads. Call this once all blocks are bounded
  // for the tile. Sets the reference of the masses for looks that skip blocks. Calls for different
  // tiles may run at the same time.
  void Choose(std::int64_t tile);

  // Returns an upper bound on the logits of each block of the pass, for the look numbered `look`. A
  // bound is infinite if it was not set or the block has no balls. After Choose, the bound of
  // a block with some of the query's first goal.first_rows rows is infinite, too.
  const std::vector<double>& highest_of(std::int64_t look) const {
    return highest_[static_cast<std::size_t>(look)];
  }

 private:
  RoundLooks& looks_;
  std::vector<std::vector<double>> highest_;  // [look][block of the pass]
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_BLOCK_LOOK_H_
