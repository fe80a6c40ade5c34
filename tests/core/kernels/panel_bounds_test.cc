// Bounds from sketches on every instruction set of this machine: against plain loops in float64,
// and bit for bit against themselves.
#include "core/kernels/panel_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/kernels/score_rows.h"
#include "hwy/targets.h"
#include "tests/core/kernels/every_target.h"
#include "tests/core/kernels/sketched_rows.h"
#include "tests/testing/kept_rows.h"
#include "tests/testing/random.h"

namespace softlookup::kernels {
namespace {

using softlookup::testing::Draw;
using softlookup::testing::KeptRows;
using softlookup::testing::MagnitudeOf;
using softlookup::testing::NormalFloats;
using softlookup::testing::PointersTo;
using softlookup::testing::Product;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class PanelBoundsTest : public TargetTest {};

// Packs queries.
SketchQueries Packed(const std::vector<const float*>& queries, std::int64_t dim) {
  SketchQueries packed;
  packed.Pack(queries.data(), static_cast<int>(queries.size()), dim);
  return packed;
}

int CodeOf(const SketchQueries& queries, int query, std::int64_t dim) {
  return static_cast<std::int8_t>(queries.codes(query)[dim / 4] >> (dim % 4 * 8));
}

void ExpectRightQuery(const float* query, std::int64_t dim, const SketchQueries& packed, int q) {
  double norm_square = 0, error_square = 0;
  std::int32_t sum = 0;
  for (std::int64_t i = 0; i < dim; ++i) {
    const int code = CodeOf(packed, q, i);
    ASSERT_LE(std::abs(code), kQueryCodeMax) << i;
    const double coarse = static_cast<double>(packed.unit(q)) * code;
    norm_square += coarse * coarse;
    error_square += (query[i] - coarse) * (query[i] - coarse);
    sum += code;
  }
  for (std::int64_t i = dim; i < (dim + 3) / 4 * 4; ++i) ASSERT_EQ(CodeOf(packed, q, i), 0);
  ASSERT_EQ(packed.excess(q), 128 * sum);
  ASSERT_GE(packed.norm(q), std::sqrt(norm_square));
  ASSERT_GE(packed.error(q), std::sqrt(error_square));
  ASSERT_LE(packed.norm(q), std::sqrt(norm_square) * (1 + 0x1p-19) + 0x1p-148);
  ASSERT_LE(packed.error(q), std::sqrt(error_square) * (1 + 0x1p-19) + 0x1p-148);
  ASSERT_LE(packed.error(q),
            MagnitudeOf(query, dim) / 63 * 0.501 * std::sqrt(static_cast<double>(dim)) + 0x1p-140);
}

TEST(SketchQueriesTest, BoundTheirNormsAndErrors) {
  SketchQueries used;
  for (const std::int64_t dim : {32, 33, 66, 127, 300}) {
    for (const Fill fill : kFills) {
      for (const int count : {1, 3, kTileQueries}) {
        const std::vector<float> queries = Filled(fill, count, dim, 7);
        used.Pack(PointersTo(queries, dim).data(), count, dim);
        ASSERT_EQ(used.count(), count);
        for (int q = 0; q < count; ++q) {
          SCOPED_TRACE(::testing::Message() << "fill " << static_cast<int>(fill) << " dim " << dim);
          ASSERT_NO_FATAL_FAILURE(ExpectRightQuery(&queries[q * dim], dim, used, q));
        }
      }
    }
  }
}

TEST(SketchQueriesTest, ZeroIsExact) {
  const std::vector<float> zero(40);
  const SketchQueries packed = Packed({zero.data()}, 40);
  EXPECT_EQ(packed.unit(0), 0);
  EXPECT_EQ(packed.norm(0), 0);
  EXPECT_EQ(packed.error(0), 0);
  EXPECT_EQ(packed.excess(0), 0);
  for (std::int64_t i = 0; i < 40; ++i) EXPECT_EQ(CodeOf(packed, 0, i), 0);
}

TEST(SketchQueriesTest, TakeTheLargestFloats) {
  const std::vector<float> queries(64, std::numeric_limits<float>::max());
  const SketchQueries packed = Packed({queries.data()}, 64);
  EXPECT_EQ(CodeOf(packed, 0, 63), kQueryCodeMax);
  EXPECT_EQ(packed.norm(0), kInfinity);
  EXPECT_GE(packed.error(0), 0);
}

// The smallest floats have few digits, so that their norms cannot be rounded up by a factor.
TEST(SketchQueriesTest, BoundTheErrorsOfSubnormalQueries) {
  for (const int count : {1, 2, 3, 5, 32}) {
    for (const float size : {0x1p-149f, 0x1p-148f, 0x1.8p-147f, 0x1p-145f, 0x1.54p-140f}) {
      std::vector<float> query(32);
      std::fill_n(query.begin(), count, size);
      SCOPED_TRACE(::testing::Message() << count << " times " << size);
      ASSERT_NO_FATAL_FAILURE(ExpectRightQuery(query.data(), 32, Packed({query.data()}, 32), 0));
    }
  }
}

// What BoundPanels is called with, besides the sketch and the queries.
struct Call {
  PanelBound form = PanelBound::kLargest;
  std::vector<BoundFactors> factors;
  std::vector<float> references;
  BoundTerms terms;
};

// Returns the bounds, [query][panel].
std::vector<float> Bounds(const SketchView& sketch, const SketchQueries& queries,
                          const Call& call) {
  const std::int64_t count = sketch.panel_count;
  std::vector<float> bounds(static_cast<std::size_t>(count * queries.count()),
                            std::numeric_limits<float>::quiet_NaN());
  BoundPanels(call.form, sketch, queries, call.factors.data(),
              call.form == PanelBound::kMass ? call.references.data() : nullptr, call.terms, count,
              bounds.data());
  return bounds;
}

BoundTerms TermsOf(const SketchView& sketch) {
  const std::int64_t stride = sketch.slice_bytes() / 4;
  return {.scales = {.first = sketch.scales(0), .slice_stride = stride},
          .errors = {.first = sketch.errors(0), .slice_stride = stride},
          .norms = {.first = sketch.norms(0), .slice_stride = stride}};
}

// Factors of products, as LogitBounds sets them.
std::vector<BoundFactors> FactorsOf(const SketchQueries& queries, const std::vector<float>& packed,
                                    std::int64_t dim, double norm_max, double factor) {
  std::vector<BoundFactors> factors;
  for (int q = 0; q < queries.count(); ++q) {
    const double norm = NormOf(&packed[static_cast<std::size_t>(q * dim)], dim);
    factors.push_back({.product = static_cast<float>(factor * queries.unit(q)),
                       .error = static_cast<float>(factor * queries.norm(q)),
                       .norm = static_cast<float>(factor * queries.error(q)),
                       .offset = static_cast<float>(0x1p-18 * factor * norm * norm_max)});
  }
  return factors;
}

// The bound of a row by the formula, in float64, and the sum of the sizes of its terms.
struct RowBound {
  double bound = 0;
  double size = 0;
};

RowBound BoundOf(const Sketch& sketch, std::int64_t row, const SketchQueries& queries, int query,
                 const Call& call) {
  std::int64_t dot = 0;
  for (std::int64_t i = 0; i < sketch.view().key_dim; ++i) {
    dot += sketch.code(row, i) * CodeOf(queries, query, i);
  }
  const BoundFactors& factor = call.factors[static_cast<std::size_t>(query)];
  const SketchView::Slot slot = sketch.SlotOf(row);
  const auto term = [slot](const RowFloats& floats) {
    return floats.first == nullptr ? 0.0 : static_cast<double>(floats.at(slot.slice)[slot.lane]);
  };
  RowBound row_bound;
  for (const double part :
       {static_cast<double>(factor.product) * static_cast<double>(dot) * term(call.terms.scales),
        static_cast<double>(factor.error) * term(call.terms.errors),
        static_cast<double>(factor.norm) * term(call.terms.norms), term(call.terms.bias),
        static_cast<double>(factor.offset)}) {
    row_bound.bound += part;
    if (std::isfinite(part)) row_bound.size += std::abs(part);
  }
  return row_bound;
}

// Returns what the bound of a row becomes if it is `by` higher.
double Raised(const RowBound& row, double by, const BoundTerms& terms) {
  const double bound = row.bound + by;
  if (terms.root_divisor == 0) return bound;
  const double root = -std::sqrt(std::max(0.0, -bound)) / terms.root_divisor;
  return root * (by > 0 ? 1 - 0x1p-21 : 1 + 0x1p-21);
}

void ExpectBoundsByTheFormula(const Sketch& sketch, const SketchQueries& queries, Call call) {
  const std::int64_t panel_count = sketch.view().panel_count;
  for (const PanelBound form : {PanelBound::kLargest, PanelBound::kMass}) {
    call.form = form;
    const std::vector<float> bounds = Bounds(sketch.view(), queries, call);
    for (int q = 0; q < queries.count(); ++q) {
      for (std::int64_t panel = 0; panel < panel_count; ++panel) {
        const double bound = bounds[static_cast<std::size_t>(q * panel_count + panel)];
        double low_max = -kInfinity, high_max = -kInfinity, low_mass = 0, high_mass = 0;
        for (std::int64_t row = panel * kPanelRows; row < (panel + 1) * kPanelRows; ++row) {
          const RowBound exact = BoundOf(sketch, row, queries, q, call);
          const double low = Raised(exact, -0x1p-20 * exact.size, call.terms);
          const double high = Raised(exact, 0x1p-20 * exact.size, call.terms);
          low_max = std::max(low_max, low);
          high_max = std::max(high_max, high);
          const double reference = call.references[static_cast<std::size_t>(q)];
          const double rounding = 0x1p-20 * std::abs(reference);
          low_mass += std::exp(low - reference - rounding);
          high_mass += std::exp(std::max(high - reference + rounding, -87.0));
        }
        SCOPED_TRACE(::testing::Message() << "query " << q << " panel " << panel);
        if (form == PanelBound::kLargest) {
          ASSERT_GE(bound, low_max);
          ASSERT_LE(bound, high_max);
        } else {
          ASSERT_GE(bound, low_mass) << "largest " << high_max;
          if (bound < kInfinity) {
            ASSERT_LE(bound, kMassExcess * high_mass * (1 + 3e-4));
          } else {
            ASSERT_GE(high_max - call.references[static_cast<std::size_t>(q)], 87);
          }
        }
      }
    }
  }
}

TEST_P(PanelBoundsTest, BoundsAreThoseOfTheFormula) {
  for (const Fill fill : {Fill::kNormal, Fill::kMixed, Fill::kZeros, Fill::kOneLarge}) {
    for (const std::int64_t dim : {32, 45, 130}) {
      const KeptRows rows = RowsOf(fill, 23 * kPanelRows, dim, StorageType::kFloat32, 3);
      const Sketch sketch(rows);
      for (const int count : {1, 6}) {
        const std::vector<float> packed = NormalFloats(count * dim, 11);
        const SketchQueries queries = Packed(PointersTo(packed, dim), dim);
        Draw draw(static_cast<std::uint64_t>(dim + count));
        const std::vector<float> bias = draw.Normal(23 * kPanelRows, 10);
        Call call{.terms = TermsOf(sketch.view())};
        // Such that some rows have terms of a few units.
        const double factor = 20 / sketch.view().norm_max;
        call.factors = FactorsOf(queries, packed, dim, sketch.view().norm_max, factor);
        for (int q = 0; q < count; ++q) {
          call.references.push_back(static_cast<float>(draw.Real(-20, 80)));
        }
        SCOPED_TRACE(::testing::Message() << "fill " << static_cast<int>(fill) << " dim " << dim);
        ASSERT_NO_FATAL_FAILURE(ExpectBoundsByTheFormula(sketch, queries, call));
        call.terms.bias = {.first = bias.data(), .slice_stride = kPanelRows};
        ASSERT_NO_FATAL_FAILURE(ExpectBoundsByTheFormula(sketch, queries, call));
        call.terms.norms = {};
        ASSERT_NO_FATAL_FAILURE(ExpectBoundsByTheFormula(sketch, queries, call));
        call.terms.root_divisor = 0.3f;
        ASSERT_NO_FATAL_FAILURE(ExpectBoundsByTheFormula(sketch, queries, call));
      }
    }
  }
}

TEST_P(PanelBoundsTest, LargestBoundsAreAboveTheProductsByAtMostTheGap) {
  for (const StorageType storage : {StorageType::kFloat32, StorageType::kBfloat16}) {
    for (const Fill fill : kFills) {
      for (const Fill query_fill : {Fill::kNormal, Fill::kOneLarge, Fill::kAlike}) {
        for (const std::int64_t dim : {32, 63, 300}) {
          constexpr int kQueries = 5;
          const KeptRows rows = RowsOf(fill, 5 * kPanelRows, dim, storage, 3);
          const Sketch sketch(rows);
          std::vector<float> packed = Filled(query_fill, kQueries, dim, 11);
          std::copy_n(rows.key(21), dim, packed.begin());  // One is a key.
          const SketchQueries queries = Packed(PointersTo(packed, dim), dim);
          constexpr double kFactor = 0.37;
          Call call{.terms = TermsOf(sketch.view())};
          call.factors = FactorsOf(queries, packed, dim, sketch.view().norm_max, kFactor);
          const std::vector<float> bounds = Bounds(sketch.view(), queries, call);
          for (int q = 0; q < kQueries; ++q) {
            const float* const query = &packed[static_cast<std::size_t>(q * dim)];
            // Of what float32 holds.
            if (kFactor * NormOf(query, dim) * sketch.view().norm_max > 1e30) continue;
            for (std::int64_t panel = 0; panel < 5; ++panel) {
              double largest = -kInfinity, highest = -kInfinity;
              for (std::int64_t row = panel * kPanelRows; row < (panel + 1) * kPanelRows; ++row) {
                const double product = kFactor * Product(query, rows.key(row), dim);
                const double gap =
                    2 * kFactor *
                    (queries.norm(q) * sketch.error(row) + queries.error(q) * sketch.norm(row));
                largest = std::max(largest, product);
                highest = std::max(highest, product + gap);
              }
              const double bound = bounds[static_cast<std::size_t>(q * 5 + panel)];
              const double rounding =
                  0x1p-17 * kFactor * NormOf(query, dim) * sketch.view().norm_max;
              ASSERT_GE(bound, largest)
                  << static_cast<int>(fill) << " " << static_cast<int>(query_fill) << " " << dim;
              ASSERT_LE(bound, highest + rounding + std::abs(highest) * 0x1p-20)
                  << static_cast<int>(fill) << " " << static_cast<int>(query_fill) << " " << dim;
            }
          }
        }
      }
    }
  }
}

// Codes are as large as they get, in the longest key.
TEST_P(PanelBoundsTest, SumsOfCodesDoNotOverflow) {
  constexpr std::int64_t kDim = 65536;
  std::vector<float> keys(kPanelRows * kDim);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = i / kDim % 2 == 0 || (i / kDim % 4 == 1 && i % 2 == 1) ? 127.0f : -127.0f;
  }
  const KeptRows rows({.key_dim = kDim, .value_dim = 1}, kPanelRows, keys,
                      NormalFloats(kPanelRows, 1));
  const Sketch sketch(rows);
  for (const float sign : {1.0f, -1.0f}) {
    const std::vector<float> query(kDim, sign * 63);
    const SketchQueries queries = Packed({query.data()}, kDim);
    const Call call{.factors = {{.product = 1}}, .terms = TermsOf(sketch.view())};
    EXPECT_EQ(Bounds(sketch.view(), queries, call)[0], 127.0f * 63 * kDim);
  }
}

// A panel with given bounds: the bias of its rows.
class PanelOfBounds {
 public:
  PanelOfBounds() : rows_({.key_dim = 32, .value_dim = 1}, kPanelRows, 1), sketch_(rows_) {}

  float Mass(const std::vector<float>& bounds, float reference) const {
    return Bound(PanelBound::kMass, bounds, reference);
  }
  float Largest(const std::vector<float>& bounds) const {
    return Bound(PanelBound::kLargest, bounds, 0);
  }

 private:
  float Bound(PanelBound form, std::vector<float> bounds, float reference) const {
    bounds.resize(kPanelRows, -kInfinity);
    const std::vector<float> query(32);
    Call call{
        .form = form, .factors = {{}}, .references = {reference}, .terms = TermsOf(sketch_.view())};
    call.terms.bias = {.first = bounds.data(), .slice_stride = kPanelRows};
    return Bounds(sketch_.view(), Packed({query.data()}, 32), call)[0];
  }

  KeptRows rows_;
  Sketch sketch_;
};

TEST_P(PanelBoundsTest, MassIsAtLeastTheSumAndAtMostSixteenthsMore) {
  const PanelOfBounds panel;
  Draw draw(5);
  for (int round = 0; round < 2000; ++round) {
    const int count = static_cast<int>(draw.Int(1, kPanelRows));
    const double size = draw.Real(0, 85), offset = draw.Real(-1000, 1000);
    const auto reference = static_cast<float>(offset);
    std::vector<float> bounds;
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      bounds.push_back(static_cast<float>(draw.Real(-size, size) + offset));
      sum += std::exp(static_cast<double>(bounds.back()) - reference);
    }
    const float mass = panel.Mass(bounds, reference);
    const double rounded = std::exp(0x1p-20 * (size + 2 * std::abs(offset)));
    ASSERT_GE(mass, sum / rounded);
    ASSERT_LE(mass, kMassExcess * sum * rounded + (kPanelRows - count) * 2e-38);
  }
}

TEST_P(PanelBoundsTest, MassOfRowsFarBelowTheReferenceIsTiny) {
  const PanelOfBounds panel;
  const double least = std::exp(-87);
  for (const float far : {-87.0f, -87.2f, -88.0f, -100.0f, -1000.0f, -1e9f, -1e38f, -kInfinity}) {
    const float mass = panel.Mass(std::vector<float>(kPanelRows, far), 0);
    EXPECT_GE(mass, 16 * std::exp(static_cast<double>(far))) << far;
    EXPECT_LE(mass, kMassExcess * 16 * least) << far;
    EXPECT_NEAR(panel.Mass({0, far, far}, 0), 1, 0.001) << far;
  }
}

TEST_P(PanelBoundsTest, MassOfARowFarAboveTheReferenceIsInfinite) {
  const PanelOfBounds panel;
  for (const float far : {89.0f, 90.0f, 100.0f, 710.0f, 1e9f, 1e38f}) {
    ASSERT_EQ(panel.Mass({far, far}, 0), kInfinity) << far;
    ASSERT_EQ(panel.Mass({far}, 0), kInfinity) << far;
    ASSERT_EQ(panel.Mass({0, -5, far}, 0), kInfinity) << far;
    ASSERT_EQ(panel.Mass({0, far - 1000}, -1000), kInfinity) << far;
  }
  // In between, it is either infinite or right.
  for (float near = 86.5f; near < 89; near += 0.01f) {
    ASSERT_GE(panel.Mass({near}, 0), std::exp(static_cast<double>(near))) << near;
  }
}

TEST_P(PanelBoundsTest, RowsThatDoNotCountHaveNoPart) {
  const PanelOfBounds panel;
  EXPECT_EQ(panel.Largest({}), -kInfinity);
  EXPECT_EQ(panel.Largest({-kInfinity, -3, -kInfinity, -5}), -3);
  EXPECT_EQ(panel.Largest({-kInfinity, -1e30f}), -1e30f);
  EXPECT_LE(panel.Mass({}, 0), 16 * 2e-38);
  EXPECT_LE(panel.Mass({}, -1e30f), 16 * 2e-38);
  EXPECT_NEAR(panel.Mass({-kInfinity, -3}, -3), 1, 0.001);
}

// Calls over many panels and queries, whose bounds have every sign and size.
class ManyBounds {
 public:
  static constexpr std::int64_t kDim = 67, kPanels = 29;

  ManyBounds()
      : rows_(RowsOf(Fill::kNormal, kPanels * kPanelRows, kDim, StorageType::kFloat32, 3)),
        sketch_(rows_),
        queries_(NormalFloats(kTileQueries * kDim, 5)),
        bias_(NormalFloats(kPanels * kPanelRows, 6)) {
    const SketchQueries packed = Packed(PointersTo(queries_, kDim), kDim);
    call_.factors = FactorsOf(packed, queries_, kDim, sketch_.view().norm_max, 0.3);
    call_.references = NormalFloats(kTileQueries, 7);
    call_.terms = TermsOf(sketch_.view());
    call_.terms.bias = {.first = bias_.data(), .slice_stride = kPanelRows};
  }

  // Returns the bounds of the queries [first, first + count).
  std::vector<float> Get(PanelBound form, bool is_root, int first = 0,
                         int count = kTileQueries) const {
    const std::vector<const float*> pointers = PointersTo(queries_, kDim);
    const SketchQueries packed =
        Packed({pointers.begin() + first, pointers.begin() + first + count}, kDim);
    Call call = call_;
    call.form = form;
    call.factors.erase(call.factors.begin(), call.factors.begin() + first);
    call.references.erase(call.references.begin(), call.references.begin() + first);
    if (is_root) call.terms.root_divisor = 0.7f;
    return Bounds(sketch_.view(), packed, call);
  }

 private:
  KeptRows rows_;
  Sketch sketch_;
  std::vector<float> queries_;
  std::vector<float> bias_;
  Call call_;
};

void ExpectSameBits(const std::vector<float>& bounds, const std::vector<float>& expected) {
  ASSERT_EQ(bounds.size(), expected.size());
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(bounds[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << i << ": " << bounds[i] << " and " << expected[i];
  }
}

TEST_P(PanelBoundsTest, LargestBoundsHaveTheSameBitsOnEveryTargetThatFuses) {
  if (!FusesMultiplyAdds()) GTEST_SKIP() << "rounds otherwise";
  const ManyBounds many;
  for (const bool is_root : {false, true}) {
    hwy::SetSupportedTargetsForTest(0);  // The best there is.
    const std::vector<float> expected = many.Get(PanelBound::kLargest, is_root);
    hwy::SetSupportedTargetsForTest(GetParam());
    ExpectSameBits(many.Get(PanelBound::kLargest, is_root), expected);
  }
}

TEST_P(PanelBoundsTest, MassesHaveTheSameBitsOnEveryTargetThatFuses) {
  if (!FusesMultiplyAdds()) GTEST_SKIP() << "rounds otherwise";
  const ManyBounds many;
  for (const bool is_root : {false, true}) {
    hwy::SetSupportedTargetsForTest(0);  // The best there is.
    const std::vector<float> expected = many.Get(PanelBound::kMass, is_root);
    hwy::SetSupportedTargetsForTest(GetParam());
    ExpectSameBits(many.Get(PanelBound::kMass, is_root), expected);
  }
}

TEST_P(PanelBoundsTest, BoundsHaveTheSameBitsAloneAndTogether) {
  const ManyBounds many;
  for (const PanelBound form : {PanelBound::kLargest, PanelBound::kMass}) {
    for (const bool is_root : {false, true}) {
      const std::vector<float> all = many.Get(form, is_root);
      for (int count = 1; count <= kTileQueries; ++count) {
        const int first = (kTileQueries - count) / 2;
        const std::vector<float> some = many.Get(form, is_root, first, count);
        const auto begin = all.begin() + first * ManyBounds::kPanels;
        ASSERT_NO_FATAL_FAILURE(ExpectSameBits(some, {begin, begin + count * ManyBounds::kPanels}))
            << count << " queries";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, PanelBoundsTest, EveryTarget(), TargetName);

}  // namespace
}  // namespace softlookup::kernels
