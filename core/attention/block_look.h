#ifndef SOFTLOOKUP_CORE_ATTENTION_BLOCK_LOOK_H_
#define SOFTLOOKUP_CORE_ATTENTION_BLOCK_LOOK_H_

#include <cstdint>

#include "core/attention/round_looks.h"

namespace softlookup {

// Chooses the blocks that each look of a round reads, by the balls that hold the blocks' keys. The
// look skips all other blocks: none of their rows can matter.
//
// Calls for different tiles of looks may run at the same time.
class BlockLook {
 public:
  // `looks` must outlive this object.
  explicit BlockLook(RoundLooks& looks) : looks_(looks) {}

  // Bounds the logits of whole blocks of the pass, [begin, end), for the looks of a tile. Calls for
  // different blocks may run at the same time.
  void Bound(std::int64_t begin, std::int64_t end, std::int64_t tile);
  // Chooses the blocks that each of the tile's looks reads. Call this once all blocks are bounded
  // for the tile. Sets the reference of the masses for looks that skip blocks.
  void Choose(std::int64_t tile);

 private:
  RoundLooks& looks_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_BLOCK_LOOK_H_
