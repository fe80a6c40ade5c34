#ifndef SOFTLOOKUP_CORE_ATTENTION_FIRST_LOOK_H_
#define SOFTLOOKUP_CORE_ATTENTION_FIRST_LOOK_H_

#include <cstdint>
#include <vector>

#include "core/attention/aligned_blocks.h"
#include "core/attention/block_look.h"
#include "core/attention/head_query_order.h"
#include "core/attention/head_query_round.h"
#include "core/attention/panel_look.h"
#include "core/attention/pass_threads.h"
#include "core/attention/round_looks.h"
#include "core/attention/sample_look.h"

namespace softlookup {

// Finds the panels of 16 rows that can matter to the answers of a round's head queries. This is the
// first of two looks at the rows. The second look (second_look.h) scans these panels, and for some
// head queries whole blocks that have many of them.
//
// BeginLooks decides which head queries get a look. BlockLook finds the blocks that a look can
// skip. If a look can skip no block, SampleLook bounds the logits in every 16th block's panels, and
// ends the look if it is not likely to save time. PanelLook bounds the logits of all panels in
// blocks that are not skipped, and chooses the panels that can matter. It ends a look that leaves
// too many. These classes read balls and sketches of the keys, and hardly any key.
// docs/decisions/0021-two-looks.md has the proof.
//
// Whether a head query has a look, and which panels remain, depends only on the query and its
// task's options and blocks. Other queries and threads make no difference.
class FirstLook {
 public:
  // `blocks` and `order` must outlive this object.
  FirstLook(const AlignedBlocks& blocks, const HeadQueryOrder& order);

  // Returns the most bytes that the bounds and places of one head query take.
  std::int64_t BytesPerQuery() const {
    constexpr std::int64_t kBlockBytes = sizeof(double) + sizeof(std::int32_t);
    return blocks_.count() * kBlockBytes + SampleLook::BoundBytesMax(blocks_) +
           PanelLook::BoundBytesMax(blocks_);
  }

  // Looks at the rows for a round that has begun. Sets round.candidates of each head query for
  // which not all rows are to be scanned. They stay valid until the next call. Returns false if
  // there is no such head query.
  bool Run(const PassThreads& threads, HeadQueryRound& round);

  // Returns the blocks of the pass that have a candidate panel of some head query, ascending. Call
  // this after Run has returned true.
  std::vector<std::int64_t> CandidateBlocks() const;

  // What all looks so far have read and skipped, as in ScannedRows.
  std::int64_t sketched_row_count() const { return sketched_row_count_; }
  std::int64_t skipped_block_count() const { return skipped_block_count_; }

 private:
  void ChooseBlocks(const PassThreads& threads);
  // Calls look.LookAt for all of look.blocks() and all tiles, then look.Choose for each tile.
  // `look` is sample_look_ or panel_look_. Returns false if no look of the round continues.
  template <typename SampleOrPanelLook>
  bool LookAtPanels(const PassThreads& threads, SampleOrPanelLook& look);
  void CountBlocks();

  const AlignedBlocks& blocks_;
  const HeadQueryOrder& order_;
  RoundLooks looks_;
  BlockLook block_look_;
  SampleLook sample_look_;
  PanelLook panel_look_;
  std::int64_t sketched_row_count_ = 0;
  std::int64_t skipped_block_count_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_FIRST_LOOK_H_
