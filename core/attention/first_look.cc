#include "core/attention/first_look.h"

#include <algorithm>
#include <iterator>

#include "core/attention/block_set.h"
#include "core/attention/look_choice.h"
#include "core/base/part_count.h"

namespace softlookup {
namespace {

// A thread bounds this many blocks by their balls before it takes another work item.
constexpr std::int64_t kBoundBlocks = 64;
// A thread looks at kLookBlocks blocks, for kLookTiles tiles, before it takes another work item.
constexpr std::int64_t kLookBlocks = 4;
constexpr std::int64_t kLookTiles = 4;

}  // namespace

FirstLook::FirstLook(const AlignedBlocks& blocks, const HeadQueryOrder& order)
    : blocks_(blocks),
      order_(order),
      looks_(blocks),
      block_look_(looks_),
      sample_look_(looks_),
      panel_look_(looks_, sample_look_) {}

bool FirstLook::Run(const PassThreads& threads, HeadQueryRound& round) {
  BeginLooks(round, order_, looks_);
  if (looks_.tile_count() == 0) return false;
  if (looks_.AnyMaySkipBlocks()) ChooseBlocks(threads);
  sample_look_.Begin();
  if (!LookAtPanels(threads, sample_look_)) return false;
  panel_look_.Begin();
  const bool continues = LookAtPanels(threads, panel_look_);
  CountBlocks();
  for (const Look& look : looks_.all()) {
    if (look.continues) round.candidates[look.query] = &look.candidates;
  }
  return continues;
}

void FirstLook::ChooseBlocks(const PassThreads& threads) {
  block_look_.Begin();
  const std::int64_t tiles = looks_.tile_count();
  const std::int64_t parts = PartCount(blocks_.count(), kBoundBlocks);
  if (block_look_.AnyToBound()) {
    threads.ForEach(parts * tiles, [&](std::int64_t item) {
      const std::int64_t begin = item / tiles * kBoundBlocks;
      block_look_.Bound(begin, std::min(begin + kBoundBlocks, blocks_.count()), item % tiles);
    });
  }
  threads.ForEach(tiles, [this](std::int64_t tile) { block_look_.Choose(tile); });
}

template <typename SampleOrPanelLook>
bool FirstLook::LookAtPanels(const PassThreads& threads, SampleOrPanelLook& look) {
  const std::int64_t tiles = looks_.tile_count();
  const std::int64_t block_count = std::ssize(look.blocks());
  const std::int64_t tile_parts = PartCount(tiles, kLookTiles);
  threads.ForEach(PartCount(block_count, kLookBlocks) * tile_parts, [&](std::int64_t item) {
    const std::int64_t begin = item / tile_parts * kLookBlocks;
    const std::int64_t tile = item % tile_parts * kLookTiles;
    look.LookAt(begin, std::min(begin + kLookBlocks, block_count), tile,
                std::min(tile + kLookTiles, tiles));
  });
  threads.ForEach(tiles, [&](std::int64_t tile) { look.Choose(tile); });
  return looks_.AnyContinues();
}

void FirstLook::CountBlocks() {
  const std::vector<std::int64_t>& blocks = panel_look_.blocks();
  for (const std::int64_t block : blocks) sketched_row_count_ += blocks_.sketched_row_count(block);
  skipped_block_count_ += blocks_.count() - std::ssize(blocks);
}

std::vector<std::int64_t> FirstLook::CandidateBlocks() const {
  BlockSet kept(blocks_.count());
  for (const Look& look : looks_.all()) {
    if (look.continues) kept.AddAll(look.candidates.kept_blocks);
  }
  std::vector<std::int64_t> blocks;
  std::ranges::copy_if(panel_look_.blocks(), std::back_inserter(blocks),
                       [&](std::int64_t block) { return kept.Has(block); });
  return blocks;
}

}  // namespace softlookup
