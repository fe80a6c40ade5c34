// The bounds of panels by a sketch, against float64 logits.
#include "core/attention/logit_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/score_pair.h"
#include "tests/core/kernels/sketched_rows.h"
#include "tests/testing/kept_rows.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;
using testing::Draw;
using testing::KeptRows;
using testing::MagnitudeOf;
using testing::NormalFloats;
using testing::Product;

constexpr Score kScores[] = {Score::kDot, Score::kScaledDot, Score::kCosine, Score::kEuclidean,
                             Score::kSquaredEuclidean};

// Panels of keys with a sketch, and what a pass would know of them.
class SketchedRows {
 public:
  SketchedRows(std::int64_t key_dim, std::vector<float> keys,
               StorageType storage = StorageType::kFloat32)
      : row_count_(static_cast<std::int64_t>(keys.size()) / key_dim),
        rows_({.key_dim = key_dim, .value_dim = 1, .storage = storage}, row_count_, std::move(keys),
              NormalFloats(row_count_, 1)),
        sketch_(rows_) {
    block_.view = rows_.view();
    block_.position_count = row_count_;
    block_.sketch = &sketch_.view();
  }

  // Only rows with allowed[r] count.
  void Allow(const std::vector<bool>& allowed) {
    mask_.assign(kernels::kBlockRowsMax / 64, 0);
    for (std::size_t r = 0; r < allowed.size(); ++r) {
      if (allowed[r]) mask_[r / 64] |= std::uint64_t{1} << (r % 64);
    }
    block_.row_mask = mask_.data();
  }

  std::int64_t key_dim() const { return sketch().key_dim; }
  std::int64_t panel_count() const { return sketch().panel_count; }
  const float* key(std::int64_t row) const { return rows_.key(row); }
  const PositionedBlock& block() const { return block_; }
  const kernels::SketchView& sketch() const { return sketch_.view(); }
  bool fit() const { return kernels::KeysFitSketch(rows_.view().key_magnitude); }

 private:
  std::int64_t row_count_;
  KeptRows rows_;
  kernels::Sketch sketch_;
  std::vector<std::uint64_t> mask_;
  PositionedBlock block_;
};

HeadQuery QueryOf(const std::vector<float>& components) {
  const auto dim = static_cast<std::int64_t>(components.size());
  return {.components = components.data(),
          .magnitude = MagnitudeOf(components.data(), dim),
          .norm = std::sqrt(Product(components.data(), components.data(), dim))};
}

// A query's bounds of the panels of some rows.
struct QueryBounds {
  LogitBounds bounds;
  std::vector<float> largest;  // By panel.
  bool is_known = false;       // False: a first look would not be made.
};

QueryBounds BoundRows(const SketchedRows& rows, const ScanPlan& plan,
                      const std::vector<float>& components) {
  const HeadQuery query = QueryOf(components);
  SketchBounds sketches;
  sketches.Add(rows.sketch());
  // No look is made beyond what float32 bounds hold, be it logits or the squares of distances.
  const double farthest = query.norm + sketches.norm_max;
  const bool is_euclidean = plan.options.score == Score::kEuclidean;
  const bool fits = rows.fit() && kernels::KeysFitSketch(query.magnitude) &&
                    LogitRange(plan, query, sketches.norm_max).lowest > -1e30 &&
                    LogitRange(plan, query, sketches.norm_max).highest < 1e30 &&
                    (!is_euclidean || farthest * farthest < 1e30);
  if (!fits) return {};
  kernels::SketchQueries packed;
  packed.Pack(&query.components, 1, rows.key_dim());
  QueryBounds found{.bounds = LogitBounds(plan, query, packed, 0, sketches), .is_known = true};
  SketchTerms terms;
  terms.Prepare(plan, rows.block());
  found.largest.resize(static_cast<std::size_t>(rows.panel_count()));
  kernels::BoundPanels(kernels::PanelBound::kLargest, rows.sketch(), packed,
                       &found.bounds.factors(), nullptr, terms.terms(), rows.panel_count(),
                       found.largest.data());
  return found;
}

ScanPlan PlanOf(Score score, double temperature, const SketchedRows& rows) {
  return {.options = {.score = score, .temperature = temperature},
          .key_dims = {.begin = 0, .count = rows.key_dim()}};
}

// Checks a query's bounds of each panel against the logits of its rows.
void ExpectTrueBounds(const SketchedRows& rows, const std::vector<float>& components, Score score,
                      double temperature) {
  const ScanPlan plan = PlanOf(score, temperature, rows);
  const QueryBounds found = BoundRows(rows, plan, components);
  if (!found.is_known) return;
  const auto [lowest, highest, likely] =
      LogitRange(plan, QueryOf(components), rows.sketch().norm_max);
  SCOPED_TRACE(::testing::Message() << "score " << static_cast<int>(score) << " temperature "
                                    << temperature << " dim " << rows.key_dim());
  for (std::int64_t panel = 0; panel < rows.panel_count(); ++panel) {
    double largest = -kInfiniteLogit;
    for (std::int64_t row = panel * kPanelRows; row < (panel + 1) * kPanelRows; ++row) {
      if (!rows.block().MayCount(row)) continue;
      const double logit =
          ScorePair(score, components.data(), rows.key(row), rows.key_dim()) / temperature;
      ASSERT_GE(logit, lowest - std::abs(lowest) * 0x1p-20);
      ASSERT_LE(logit, highest + std::abs(highest) * 0x1p-20);
      largest = std::max(largest, logit);
    }
    const double bound = found.largest[static_cast<std::size_t>(panel)];
    SCOPED_TRACE(::testing::Message() << "panel " << panel << " gap " << found.bounds.gap());
    if (largest == -kInfiniteLogit) {
      ASSERT_EQ(bound, -kInfiniteLogit);
      continue;
    }
    ASSERT_GE(bound, largest);
    ASSERT_LE(found.bounds.LowerOf(bound), largest);
    ASSERT_LE(bound - found.bounds.gap(), largest + std::abs(bound) * 0x1p-22);
  }
}

void ExpectTrueBoundsOfAllScores(const SketchedRows& rows, const std::vector<float>& components) {
  for (const Score score : kScores) {
    for (const double temperature : {1e-6, 0.01, 1.0, 37.0, 1e6}) {
      ASSERT_NO_FATAL_FAILURE(ExpectTrueBounds(rows, components, score, temperature));
    }
  }
}

// Queries of every kind: random, a key, the opposite of one, near one, one large component.
std::vector<std::vector<float>> QueriesNear(const SketchedRows& rows, float size) {
  const std::int64_t dim = rows.key_dim();
  std::vector<std::vector<float>> queries;
  for (const std::uint64_t seed : {1, 2}) queries.push_back(NormalFloats(dim, seed, size));
  for (const std::int64_t row : {7, 20}) {
    queries.emplace_back(rows.key(row), rows.key(row) + dim);
    queries.push_back(queries.back());
    for (float& component : queries.back()) component = -component;
    queries.emplace_back(rows.key(row), rows.key(row) + dim);
    const std::vector<float> noise = NormalFloats(dim, 3, size * 1e-3);
    for (std::int64_t i = 0; i < dim; ++i) queries.back()[i] += noise[i];
  }
  queries.emplace_back(dim, size);
  queries.emplace_back(dim, 1e-4f * size);
  queries.back()[static_cast<std::size_t>(dim / 2)] = size;
  return queries;
}

TEST(LogitBoundsTest, HoldForKeysOfEverySize) {
  for (const StorageType storage : {StorageType::kFloat32, StorageType::kBfloat16}) {
    for (const std::int64_t dim : {32, 47, 150}) {
      for (const int exponent : {-59, -20, 0, 20, 57}) {
        const float size = std::ldexp(1.0f, exponent);
        const SketchedRows rows(dim, NormalFloats(64 * dim, 5, size), storage);
        for (const std::vector<float>& query : QueriesNear(rows, size)) {
          ASSERT_NO_FATAL_FAILURE(ExpectTrueBoundsOfAllScores(rows, query)) << exponent;
        }
        ASSERT_NO_FATAL_FAILURE(ExpectTrueBoundsOfAllScores(rows, NormalFloats(dim, 8))) << size;
      }
    }
  }
}

TEST(LogitBoundsTest, HoldForKeysOfMixedSizes) {
  constexpr std::int64_t kDim = 40;
  for (const int spread : {3, 30, 140}) {
    Draw draw(static_cast<std::uint64_t>(spread));
    std::vector<float> keys = draw.Normal(96 * kDim);
    for (std::size_t r = 0; r < 96; ++r) {
      const int exponent = static_cast<int>(draw.Int(-spread, 0));
      for (std::size_t i = r * kDim; i < (r + 1) * kDim; ++i) {
        keys[i] = std::ldexp(keys[i], r == 7 ? 0 : exponent);
      }
    }
    const SketchedRows rows(kDim, keys);
    for (const std::vector<float>& query : QueriesNear(rows, 1)) {
      ASSERT_NO_FATAL_FAILURE(ExpectTrueBoundsOfAllScores(rows, query)) << spread;
    }
  }
}

// Codes have no error here, so nothing but the slack for roundings is between a bound and a logit.
TEST(LogitBoundsTest, HoldForKeysAndQueriesThatAreTheirCodes) {
  for (const std::int64_t dim : {32, 255, 1000}) {
    Draw draw(static_cast<std::uint64_t>(dim));
    for (const double unit : {0.7, 1 / 3.0, 1e5, 1e-5}) {
      std::vector<float> keys(static_cast<std::size_t>(32 * dim));
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::int64_t code = i % static_cast<std::size_t>(dim) == 0 ? 127 : draw.Int(100, 127);
        keys[i] = static_cast<float>(unit * static_cast<double>(code));
      }
      const SketchedRows rows(dim, keys);
      std::vector<float> query(static_cast<std::size_t>(dim));
      for (float& component : query) {
        component = static_cast<float>(0.9 * static_cast<double>(draw.Int(60, 63)));
      }
      query[0] = static_cast<float>(0.9 * 63);
      ASSERT_NO_FATAL_FAILURE(ExpectTrueBoundsOfAllScores(rows, query)) << unit;
      for (float& component : query) component = -component;
      ASSERT_NO_FATAL_FAILURE(ExpectTrueBoundsOfAllScores(rows, query)) << unit;
      const std::vector<float> key(rows.key(3), rows.key(3) + dim);
      ASSERT_NO_FATAL_FAILURE(ExpectTrueBoundsOfAllScores(rows, key)) << unit;
    }
  }
}

// The cosine of a zero key is 0, whatever the query.
TEST(LogitBoundsTest, HoldForZeroKeys) {
  constexpr std::int64_t kDim = 32;
  for (const std::int64_t zeros : {1, 16, 40, 63}) {
    std::vector<float> keys = NormalFloats(64 * kDim, 5);
    std::fill_n(keys.begin(), zeros * kDim, 0.0f);
    const SketchedRows rows(kDim, keys);
    for (const std::vector<float>& query : QueriesNear(rows, 1)) {
      ASSERT_NO_FATAL_FAILURE(ExpectTrueBoundsOfAllScores(rows, query)) << zeros;
    }
  }
}

TEST(LogitBoundsTest, HoldForKeysOfTinyNormBesideLargeOnes) {
  constexpr std::int64_t kDim = 64;
  for (const float tiny :
       {1e-10f, 1e-20f, 0x1p-110f, 0x1p-119f, 0x1p-123f, 0x1p-128f, 0x1p-140f, 0x1p-149f}) {
    for (const float large : {1.0f, 0x1p-59f, 0x1p57f}) {
      std::vector<float> keys = NormalFloats(64 * kDim, 5, large);
      for (const std::size_t row : {0, 1, 17, 18, 19, 33}) {
        for (std::size_t i = row * kDim; i < (row + 1) * kDim; ++i) {
          keys[i] = keys[i] / large * tiny;
        }
      }
      // A panel of nothing else.
      for (std::size_t i = 48 * kDim; i < keys.size(); ++i) {
        keys[i] = i % 3 == 0 ? tiny : -tiny / 2;
      }
      const SketchedRows rows(kDim, keys);
      for (std::vector<float>& query : QueriesNear(rows, 1)) {
        ASSERT_NO_FATAL_FAILURE(ExpectTrueBoundsOfAllScores(rows, query)) << tiny << " " << large;
      }
    }
  }
}

TEST(LogitBoundsTest, HoldForTheRowsThatCount) {
  constexpr std::int64_t kDim = 33;
  SketchedRows rows(kDim, NormalFloats(96 * kDim, 5));
  Draw draw(3);
  for (const double chance : {0.0, 0.05, 0.5, 1.0}) {
    std::vector<bool> allowed(96);
    for (std::size_t row = 0; row < 96; ++row) allowed[row] = draw.Chance(chance);
    for (std::size_t row = 32; row < 48; ++row) allowed[row] = false;
    rows.Allow(allowed);
    for (const std::vector<float>& query : QueriesNear(rows, 1)) {
      ASSERT_NO_FATAL_FAILURE(ExpectTrueBoundsOfAllScores(rows, query)) << chance;
    }
  }
}

// The bounds would be of no use if they were not near the logits.
TEST(LogitBoundsTest, AreNearTheLogits) {
  constexpr std::int64_t kDim = 128;
  const SketchedRows rows(kDim, NormalFloats(512 * kDim, 5));
  const std::vector<float> query = NormalFloats(kDim, 6);
  for (const Score score : {Score::kDot, Score::kScaledDot, Score::kCosine}) {
    const ScanPlan plan = PlanOf(score, 1, rows);
    const QueryBounds found = BoundRows(rows, plan, query);
    const double highest = LogitRange(plan, QueryOf(query), rows.sketch().norm_max).highest;
    EXPECT_LE(found.bounds.gap(), 0.06 * highest) << static_cast<int>(score);
    EXPECT_LE(found.bounds.LowerOf(1), 1) << static_cast<int>(score);
    EXPECT_GE(found.bounds.LowerOf(1), 1 - 0.061 * highest) << static_cast<int>(score);
  }
  EXPECT_EQ(BoundRows(rows, PlanOf(Score::kEuclidean, 1, rows), query).bounds.gap(),
            kInfiniteLogit);
}

TEST(LogitBoundsTest, TermsAreMadeAnewForEachBlock) {
  constexpr std::int64_t kDim = 32;
  const SketchedRows rows(kDim, NormalFloats(64 * kDim, 5));
  SketchedRows masked(kDim, NormalFloats(64 * kDim, 6));
  masked.Allow(std::vector<bool>(64));
  const std::vector<float> query = NormalFloats(kDim, 7);
  SketchTerms used;
  for (const Score score : kScores) {
    const ScanPlan plan = PlanOf(score, 2, rows);
    used.Prepare(plan, masked.block());
    used.Prepare(plan, rows.block());
    const QueryBounds expected = BoundRows(rows, plan, query);
    kernels::SketchQueries packed;
    const float* components = query.data();
    packed.Pack(&components, 1, kDim);
    std::vector<float> bounds(4);
    kernels::BoundPanels(kernels::PanelBound::kLargest, rows.sketch(), packed,
                         &expected.bounds.factors(), nullptr, used.terms(), 4, bounds.data());
    EXPECT_EQ(bounds, expected.largest) << static_cast<int>(score);
  }
}

TEST(SketchBoundsTest, AreThoseOfAllSketches) {
  const SketchedRows small(32, NormalFloats(32 * 32, 5, 1e-3));
  const SketchedRows large(32, NormalFloats(32 * 32, 6, 10));
  SketchBounds bounds;
  bounds.Add(small.sketch());
  EXPECT_EQ(bounds.norm_max, small.sketch().norm_max);
  bounds.Add(large.sketch());
  EXPECT_EQ(bounds.norm_max, large.sketch().norm_max);
  EXPECT_EQ(bounds.error_max, large.sketch().error_max);
  EXPECT_EQ(bounds.relative_error_max,
            std::max(small.sketch().relative_error_max, large.sketch().relative_error_max));
}

}  // namespace
}  // namespace softlookup
