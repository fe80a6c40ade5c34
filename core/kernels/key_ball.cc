#include "core/kernels/key_ball.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/base/check.h"
#include "core/kernels/panel_rows.h"
#include "core/kernels/score_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/key_ball.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Must come first.
#include "core/kernels/vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

// Adds up 16 lanes. On every target, each addition has the same two operands, so the sum has the
// same bits.
HWY_INLINE float SumOfLanes(const FloatVec* sums) {
  constexpr hn::CappedTag<float, 4> d4;
  alignas(64) float lanes[kPanelRows];
  for (int v = 0; v < kVecsPerPanel; ++v) hn::Store(sums[v], FloatTag(), lanes + v * kLanes);
  const auto low = hn::Add(hn::Load(d4, lanes), hn::Load(d4, lanes + 8));
  const auto high = hn::Add(hn::Load(d4, lanes + 4), hn::Load(d4, lanes + 12));
  hn::Store(hn::Add(low, high), d4, lanes);
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

// `query` and the centres have `count` floats, a multiple of kPanelRows.
void CentreProductsOneTarget(const float* HWY_RESTRICT query, std::size_t count,
                             absl::Span<const KeyBall* const> balls, float* HWY_RESTRICT products) {
  const FloatTag d;
  for (std::size_t i = 0; i < balls.size(); ++i) {
    const float* HWY_RESTRICT centre = balls[i]->centre;
    FloatVec sums[kVecsPerPanel];
    for (int v = 0; v < kVecsPerPanel; ++v) sums[v] = hn::Zero(d);
    for (std::size_t at = 0; at < count; at += kPanelRows) {
      for (int v = 0; v < kVecsPerPanel; ++v) {
        const std::size_t from = at + v * kLanes;
        sums[v] = hn::MulAdd(hn::LoadU(d, query + from), hn::LoadU(d, centre + from), sums[v]);
      }
    }
    products[i] = SumOfLanes(sums);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::kernels {

HWY_EXPORT(CentreProductsOneTarget);

namespace {

using Squares = std::array<double, kScratchStride>;

// Returns the squared distance from `point` of each key in the full panels.
Squares SquaresFrom(const BlockView& block, const float* point) {
  Squares squares;
  ScoreRowsFloat64(Term::kSquaredDifference, block, {.begin = 0, .end = block.full_panel_count},
                   {.begin = 0, .count = block.shape.key_dim}, &point, 1, squares.data());
  return squares;
}

std::vector<float> KeyOf(const BlockView& block, std::int64_t row) {
  PanelRowReader reader(block.shape);
  const PanelRow read = reader.Read(block, row);
  std::vector<float> key;
  for (std::int64_t i = 0; i < block.shape.key_dim; ++i)
    key.push_back(read.key[i * read.key_stride]);
  return key;
}

// Returns the rows of the full panels in two parts. Finds two rows that are far from each other,
// and puts each row into the part of the nearer one. The second part is empty if all keys are
// equal.
std::array<std::vector<std::int64_t>, kBlockBalls> SplitRows(const BlockView& block) {
  const std::int64_t row_count = block.full_panel_count * kPanelRows;
  const auto farthest = [row_count](const Squares& squares) {
    return std::max_element(squares.begin(), squares.begin() + row_count) - squares.begin();
  };
  const auto squares_from_row = [&block](std::int64_t row) {
    return SquaresFrom(block, KeyOf(block, row).data());
  };
  const Squares from_one = squares_from_row(farthest(squares_from_row(0)));
  const Squares from_other = squares_from_row(farthest(from_one));
  std::array<std::vector<std::int64_t>, kBlockBalls> parts;
  for (std::int64_t row = 0; row < row_count; ++row) {
    parts[from_one[row] <= from_other[row] ? 0 : 1].push_back(row);
  }
  return parts;
}

// Returns a ball that holds the keys of `rows`. Writes its centre to `centre`.
KeyBall MakeBall(const BlockView& block, absl::Span<const std::int64_t> rows, float* centre) {
  // Any point may be the centre: a centre near the mean of the keys only makes the radius smaller.
  // The mean of up to kSampleMax keys is close enough.
  constexpr std::size_t kSampleMax = 64;
  const std::size_t step = (rows.size() + kSampleMax - 1) / kSampleMax;
  const auto dim = static_cast<std::size_t>(block.shape.key_dim);
  std::vector<double> sums(dim);
  PanelRowReader reader(block.shape);
  double sampled = 0;
  for (std::size_t at = 0; at < rows.size(); at += step, ++sampled) {
    const PanelRow row = reader.Read(block, rows[at]);
    for (std::size_t i = 0; i < dim; ++i) {
      sums[i] += row.key[static_cast<std::int64_t>(i) * row.key_stride];
    }
  }
  std::fill_n(centre, CentreFloats(block.shape.key_dim), 0.0f);
  double norm_square = 0;
  for (std::size_t i = 0; i < dim; ++i) {
    centre[i] = static_cast<float>(sums[i] / sampled);
    norm_square += static_cast<double>(centre[i]) * centre[i];
  }
  const Squares squares = SquaresFrom(block, centre);
  double farthest = 0;
  for (const std::int64_t row : rows) farthest = std::max(farthest, squares[row]);
  // The factor covers the roundings of the sums and of the root, which are far smaller.
  return {.centre = centre,
          .centre_norm = std::sqrt(norm_square),
          .radius = std::sqrt(farthest) * (1 + 0x1p-30)};
}

double DistanceOf(const float* a, const double* b, std::int64_t count) {
  double square = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    square += difference * difference;
  }
  return std::sqrt(square);
}

// Returns a ball that holds `members`. Writes its centre to `centre`.
KeyBall MakeBallOfBalls(absl::Span<const KeyBall* const> members, std::int64_t key_dim,
                        float* centre) {
  // Each step moves the centre to the farthest point of all members by a smaller part of the way.
  // So it comes close to the centre of the smallest ball (Badoiu and Clarkson, "Smaller core-sets
  // for balls", 2003). Any centre would do.
  constexpr int kSteps = 16;
  std::vector<double> middle(members[0]->centre, members[0]->centre + key_dim);
  const auto reach_of = [&](const KeyBall* ball) {
    return DistanceOf(ball->centre, middle.data(), key_dim) + ball->radius;
  };
  for (int step = 1; step <= kSteps; ++step) {
    const KeyBall& far = **std::ranges::max_element(members, {}, reach_of);
    const double distance = DistanceOf(far.centre, middle.data(), key_dim);
    if (distance == 0) break;  // The ball around `far` holds all members.
    const double part = (1 + far.radius / distance) / (step + 1);
    for (std::int64_t i = 0; i < key_dim; ++i) middle[i] += part * (far.centre[i] - middle[i]);
  }
  std::fill_n(centre, CentreFloats(key_dim), 0.0f);
  double norm_square = 0;
  for (std::int64_t i = 0; i < key_dim; ++i) {
    centre[i] = static_cast<float>(middle[i]);
    middle[i] = centre[i];
    norm_square += middle[i] * middle[i];
  }
  // The factor covers the roundings, which are far smaller.
  return {.centre = centre,
          .centre_norm = std::sqrt(norm_square),
          .radius = reach_of(*std::ranges::max_element(members, {}, reach_of)) * (1 + 0x1p-30)};
}

}  // namespace

KeyBalls MakeKeyBalls(const BlockView& block, float* centres) {
  SOFTLOOKUP_CHECK(block.full_panel_count > 0) << "a ball without keys";
  const auto parts = SplitRows(block);
  KeyBalls balls;
  for (int b = 0; b < kBlockBalls; ++b) {
    balls[b] = MakeBall(block, parts[b].empty() ? parts[0] : parts[b],
                        centres + b * CentreFloats(block.shape.key_dim));
  }
  return balls;
}

KeyBalls MakeGroupBalls(absl::Span<const KeyBall> members, std::int64_t key_dim, float* centres) {
  SOFTLOOKUP_CHECK(!members.empty()) << "a ball without balls";
  const auto distance_from = [key_dim](const KeyBall& from) {
    return [point = std::vector<double>(from.centre, from.centre + key_dim), key_dim](
               const KeyBall& ball) { return DistanceOf(ball.centre, point.data(), key_dim); };
  };
  // As SplitRows does: two centres that are far from each other, and each ball with the nearer one.
  const auto from_one =
      distance_from(*std::ranges::max_element(members, {}, distance_from(members[0])));
  const auto from_other = distance_from(*std::ranges::max_element(members, {}, from_one));
  std::array<std::vector<const KeyBall*>, kBlockBalls> parts;
  for (const KeyBall& ball : members) {
    parts[from_one(ball) <= from_other(ball) ? 0 : 1].push_back(&ball);
  }
  KeyBalls balls;
  for (int b = 0; b < kBlockBalls; ++b) {
    balls[b] = MakeBallOfBalls(parts[b].empty() ? parts[0] : parts[b], key_dim,
                               centres + b * CentreFloats(key_dim));
  }
  return balls;
}

void CentreProducts(const float* query, std::int64_t key_dim,
                    absl::Span<const KeyBall* const> balls, float* products) {
  std::vector<float> padded(static_cast<std::size_t>(CentreFloats(key_dim)));
  std::copy_n(query, key_dim, padded.begin());
  HWY_DYNAMIC_DISPATCH(CentreProductsOneTarget)(padded.data(), padded.size(), balls, products);
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
