#ifndef SOFTLOOKUP_CORE_ATTENTION_BLOCK_LOOK_H_
#define SOFTLOOKUP_CORE_ATTENTION_BLOCK_LOOK_H_

#include <cstdint>
#include <vector>

#include "core/attention/round_looks.h"

namespace softlookup {

// Chooses the blocks that each look of a round reads, by the balls that hold the blocks' keys. The
// look skips all other blocks: none of their rows can matter.
class BlockLook {
 public:
  // `looks` must outlive this object.
  explicit BlockLook(RoundLooks& looks) : looks_(looks) {}

  // Makes room for the bounds of all blocks. Call this once the looks have begun.
  void Begin();
  // Bounds the logits of whole blocks of the pass, [begin, end), for the looks of a tile. Calls for
  // different tiles or blocks may run at the same time.
  void Bound(std::int64_t begin, std::int64_t end, std::int64_t tile);
  // Chooses the blocks that each of the tile's looks reads. Call this once all blocks are bounded
  // for the tile. Sets the reference of the masses for looks that skip blocks. Calls for different
  // tiles may run at the same time.
  void Choose(std::int64_t tile);

  // Returns bounds on the logits of the rows of each block of the pass, for the look numbered
  // `look`. They are infinite as long as the blocks are not bounded.
  const std::vector<double>& highest_of(std::int64_t look) const {
    return highest_[static_cast<std::size_t>(look)];
  }

 private:
  RoundLooks& looks_;
  std::vector<std::vector<double>> highest_;  // [look][block of the pass]
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_BLOCK_LOOK_H_
