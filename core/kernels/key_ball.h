#ifndef SOFTLOOKUP_CORE_KERNELS_KEY_BALL_H_
#define SOFTLOOKUP_CORE_KERNELS_KEY_BALL_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "core/kernels/panel.h"

namespace softlookup::kernels {

// A ball that holds keys k: |k - centre| <= radius. Where similar rows were appended together, the
// balls of a block can show that none of its rows matters. No row of the block is read for that.
struct KeyBall {
  const float* centre = nullptr;  // [CentreFloats(key_dim)], 0 past the key's components.
  double centre_norm = 0;         // |centre|
  double radius = 0;
};

// A block has two balls, and each of its keys is in at least one of them. A block often has the end
// of one cluster of rows and the beginning of the next. A single ball would have to hold both
// clusters, and would be large.
inline constexpr int kBlockBalls = 2;
using KeyBalls = std::array<KeyBall, kBlockBalls>;

// A sealed block of fewer rows than this has no balls. Such a block has few rows because a row has
// over 2 KiB. Products with the centres would take too large a part of a first look's time.
inline constexpr std::int64_t kBallRowsMin = 256;

// Returns the number of floats of a centre: key_dim, rounded up to whole vectors.
constexpr std::int64_t CentreFloats(std::int64_t key_dim) {
  return (key_dim + kPanelRows - 1) / kPanelRows * kPanelRows;
}

// Finds balls for the full panels of `block`, which must have at least one full panel. Writes the
// centres to `centres`, which must have room for kBlockBalls * CentreFloats(block.shape.key_dim)
// floats. The bits are the same on all CPUs with fused multiply-adds.
KeyBalls MakeKeyBalls(const BlockView& block, float* centres);

// Sets products[i] to the product of `query` and balls[i]->centre, which have `key_dim` components.
// Sums are formed in float32. If |query| |centre| is below 2^126, a product is off by at most
// key_dim 2^-23 |query| |centre| + 2^-100. The bits are the same on all CPUs with fused
// multiply-adds.
void CentreProducts(const float* query, std::int64_t key_dim,
                    absl::Span<const KeyBall* const> balls, float* products);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_KEY_BALL_H_
