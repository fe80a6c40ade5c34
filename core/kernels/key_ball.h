#ifndef SOFTLOOKUP_CORE_KERNELS_KEY_BALL_H_
#define SOFTLOOKUP_CORE_KERNELS_KEY_BALL_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "core/kernels/panel.h"

namespace softlookup::kernels {

// A ball that holds keys k: |k - centre| <= radius for each of them. If similar rows were appended
// together, the balls of a block can show that none of its rows matters to a query. No row of the
// block is read for that.
struct KeyBall {
  const float* centre = nullptr;  // [CentreFloats(key_dim)], 0 past the key's components.
  double centre_norm = 0;         // |centre|
  double radius = 0;
};

// The number of balls of a block that has any. Each of the block's keys is in at least one of them.
// A block often has the end of one cluster of rows and the beginning of the next. A single ball
// would have to hold both clusters, and would be large.
inline constexpr int kBlockBalls = 2;
using KeyBalls = std::array<KeyBall, kBlockBalls>;

// A sealed block of fewer rows than this has no balls. Such a block has few rows because a row has
// over 2 KiB. Products with the centres would take too large a part of a first look's time.
inline constexpr std::int64_t kBallRowsMin = 256;

// Returns the number of floats of a centre: key_dim, rounded up to a multiple of kPanelRows.
constexpr std::int64_t CentreFloats(std::int64_t key_dim) {
  return (key_dim + kPanelRows - 1) / kPanelRows * kPanelRows;
}

// Returns balls that together hold the keys in the full panels of `block`, which must have at least
// one full panel. Writes the centres to `centres`, which must have room for kBlockBalls centres of
// CentreFloats(block.shape.key_dim) floats each. The balls have the same bits on all CPUs with
// fused multiply-adds.
KeyBalls MakeKeyBalls(const BlockView& block, float* centres);

// Neighbouring blocks form groups of this many. If each block of a group has balls, the group has
// balls, too. They can show with two products that none of its blocks matters to a query.
inline constexpr std::int64_t kBallGroupBlocks = 8;

// Returns balls that together hold all that is in `members`: the balls of a group's blocks. Writes
// the centres to `centres`, as MakeKeyBalls does. The balls have the same bits on all CPUs.
KeyBalls MakeGroupBalls(absl::Span<const KeyBall> members, std::int64_t key_dim, float* centres);

// Sets products[i] to the dot product of `query`, which has `key_dim` components, and
// balls[i]->centre. Sums are formed in float32. If |query| |centre| is below 2^126, a product is
// off by at most key_dim 2^-23 |query| |centre| + 2^-100. The products have the same bits on all
// CPUs with fused multiply-adds.
void CentreProducts(const float* query, std::int64_t key_dim,
                    absl::Span<const KeyBall* const> balls, float* products);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_KEY_BALL_H_
