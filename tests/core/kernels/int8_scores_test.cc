// Products with INT8 keys in integers, on every instruction set of this machine: against float64,
// and bit for bit against plain loops and themselves.
#include "core/kernels/int8_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "hwy/targets.h"
#include "tests/core/kernels/every_target.h"
#include "tests/testing/kept_rows.h"
#include "tests/testing/random.h"

namespace softlookup::kernels {
namespace {

using softlookup::testing::KeptRows;
using softlookup::testing::MagnitudeOf;
using softlookup::testing::NormalFloats;
using softlookup::testing::PointersTo;
using softlookup::testing::Product;

std::vector<DotUnit> UnitsHere() {
  std::vector<DotUnit> units = {DotUnit::kPortable};
  if (VnniIsUsable()) units.push_back(DotUnit::kVnni);
  return units;
}

PanelShape Int8Shape(std::int64_t key_dim) {
  return {.key_dim = key_dim, .value_dim = 3, .storage = StorageType::kInt8};
}

// Of the components `dims`; NaN where there is no row.
template <typename Sum>
std::vector<Sum> Scores(DotUnit unit, const KeptRows& rows, PanelRange panels, DimRange dims,
                        const std::vector<const float*>& queries) {
  DigitQueries packed;
  packed.Pack(queries.data(), static_cast<int>(queries.size()), dims.count);
  std::vector<Sum> sums(queries.size() * kScratchStride, std::numeric_limits<Sum>::quiet_NaN());
  ScoreInt8Rows(unit, rows.view(), panels, dims.begin, packed, sums.data());
  return sums;
}

double NormOf(const float* components, std::int64_t dim) {
  return std::sqrt(Product(components, components, dim));
}

// The largest error of all scores, over its bound.
template <typename Sum>
double WorstScore(DotUnit unit, const KeptRows& rows, DimRange dims,
                  const std::vector<float>& queries) {
  const std::vector<const float*> pointers = PointersTo(queries, dims.count);
  const std::vector<Sum> sums = Scores<Sum>(unit, rows, rows.panels(), dims, pointers);
  double worst = 0;
  for (std::size_t q = 0; q < pointers.size(); ++q) {
    for (std::int64_t r = 0; r < rows.view().row_count; ++r) {
      const float* key = rows.key(r) + dims.begin;
      const double norms = NormOf(pointers[q], dims.count) * NormOf(key, dims.count);
      double bound = ScoreErrorInInt8(dims.count, MagnitudeOf(pointers[q], dims.count),
                                      MagnitudeOf(key, dims.count), norms);
      if (sizeof(Sum) == sizeof(float)) bound += kInt8FloatError * norms;
      const double error =
          std::abs(sums[q * kScratchStride + r] - Product(pointers[q], key, dims.count));
      // Float64 itself may be off; a NaN is the worst.
      worst = error <= bound * 1e9 ? std::max(worst, error / (bound + 1e-13 * norms + 1e-300))
                                   : std::numeric_limits<double>::infinity();
      if (std::isinf(worst)) return worst;
    }
  }
  return worst;
}

class Int8ScoresTest : public TargetTest {};

TEST_P(Int8ScoresTest, KeepTheirBoundAroundEveryWidth) {
  int queries_more = 0;
  for (const DotUnit unit : UnitsHere()) {
    for (const std::int64_t dim : {1, 2, 3, 4, 5, 15, 16, 17, 31, 100, 128, 131, 1024, 1030}) {
      for (const std::int64_t row_count : {1, 15, 17, 63, 64, 65, 130}) {
        const KeptRows rows(Int8Shape(dim), row_count, 7);
        const std::vector<float> queries = NormalFloats(dim * (queries_more + 1), 11);
        queries_more = (queries_more + 1) % kTileQueries;
        ASSERT_LE(WorstScore<double>(unit, rows, rows.key_dims(), queries), 1)
            << dim << ", " << row_count;
        if (dim > kInt8FloatDimMax) continue;
        ASSERT_LE(WorstScore<float>(unit, rows, rows.key_dims(), queries), 1)
            << dim << ", " << row_count;
      }
    }
  }
}

TEST_P(Int8ScoresTest, TakeAnyPartOfAKey) {
  const KeptRows rows(Int8Shape(90), 70, 3);
  for (const DotUnit unit : UnitsHere()) {
    for (const DimRange dims :
         {DimRange{.begin = 1, .count = 30}, DimRange{.begin = 30, .count = 45},
          DimRange{.begin = 59, .count = 31}}) {
      const std::vector<float> queries = NormalFloats(dims.count * 7, 5);
      EXPECT_LE(WorstScore<double>(unit, rows, dims, queries), 1) << dims.begin;
      EXPECT_LE(WorstScore<float>(unit, rows, dims, queries), 1) << dims.begin;
    }
  }
}

// The largest and the smallest components that can stand side by side. Nearly all have one sign, so
// that roundings add up and sums are as large as they get.
TEST_P(Int8ScoresTest, KeepTheirBoundWhereComponentsAreExtreme) {
  constexpr std::int64_t kDim = 1024, kRows = 20;
  for (const double size : {0x1p-49, 1.0, 0x1p49}) {
    std::vector<float> keys(kDim * kRows), queries(kDim * 5);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      keys[i] = static_cast<float>(size) * (i % 3 == 0 ? 1.0f : 0.996f);
    }
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const double of_largest[] = {1, 0x1.fffffep-1, 0x1.fffffep-8, 0x1p-31, -1e-37};
      queries[i] = static_cast<float>(size * of_largest[i * 7 % 5]);
    }
    const KeptRows rows(Int8Shape(kDim), kRows, keys, NormalFloats(kRows * 3, 1));
    ASSERT_TRUE(KeysFitInt8Dots(static_cast<float>(size), rows.view().key_magnitude));
    for (const DotUnit unit : UnitsHere()) {
      EXPECT_LE(WorstScore<double>(unit, rows, rows.key_dims(), queries), 1) << size;
      EXPECT_LE(WorstScore<float>(unit, rows, rows.key_dims(), queries), 1) << size;
    }
  }
}

// The only error is that of the query's rounding, and it is as large as can be: nearly half a unit
// of each component but the first, where keys are 0. One row has the smallest keys that float32
// holds.
TEST_P(Int8ScoresTest, ComeNearTheirBound) {
  constexpr std::int64_t kDim = 65536, kRows = 20;
  std::vector<float> keys(kDim * kRows, 1.0f), query(kDim, 0x1.fep-32f);
  for (std::int64_t r = 0; r < kRows; ++r) keys[r * kDim] = 0;
  for (std::int64_t i = 1; i < kDim; ++i) keys[7 * kDim + i] = 0x1p-149f;
  query[0] = 1;
  const KeptRows rows(Int8Shape(kDim), kRows, keys, NormalFloats(kRows * 3, 1));
  for (const DotUnit unit : UnitsHere()) {
    const double worst = WorstScore<double>(unit, rows, rows.key_dims(), query);
    EXPECT_LE(worst, 1);
    EXPECT_GE(worst, 0.6);
  }
}

// The 32-bit sums are as large as they can be.
TEST_P(Int8ScoresTest, DoNotOverflowInTheLongestKey) {
  constexpr std::int64_t kDim = 65536, kRows = 17;
  std::vector<float> keys(kDim * kRows), query(kDim);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i / kDim % 2 == 0 ? 127.0f : -127.0f;
  // Digits of 127 and then -128 three times.
  for (std::size_t i = 0; i < query.size(); ++i) query[i] = 127 * 0x1p24f - 128 * 0x10101;
  const KeptRows rows(Int8Shape(kDim), kRows, keys, NormalFloats(kRows * 3, 1));
  for (const DotUnit unit : UnitsHere()) {
    for (const float sign : {1.0f, -1.0f}) {
      for (float& component : query) component = sign * std::abs(component);
      EXPECT_LE(WorstScore<double>(unit, rows, rows.key_dims(), query), 1);
    }
  }
}

TEST_P(Int8ScoresTest, AreZeroWhereAKeyOrAQueryIs) {
  const KeptRows rows(Int8Shape(40), 20, std::vector<float>(40 * 20), NormalFloats(20 * 3, 1));
  const KeptRows others(Int8Shape(40), 20, 1);
  const std::vector<float> zero(40), query = NormalFloats(40, 2);
  for (const DotUnit unit : UnitsHere()) {
    for (std::int64_t r = 0; r < 32; ++r) {  // And where there is no row.
      EXPECT_EQ(Scores<float>(unit, rows, rows.panels(), rows.key_dims(), {query.data()})[r], 0);
      EXPECT_EQ(Scores<float>(unit, others, rows.panels(), rows.key_dims(), {zero.data()})[r], 0);
    }
  }
}

template <typename Sum>
void ExpectSameBits(const std::vector<Sum>& sums, const std::vector<Sum>& expected) {
  using Bits = std::conditional_t<sizeof(Sum) == 4, std::uint32_t, std::uint64_t>;
  ASSERT_EQ(sums.size(), expected.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    ASSERT_EQ(std::bit_cast<Bits>(sums[i]), std::bit_cast<Bits>(expected[i])) << i;
  }
}

TEST_P(Int8ScoresTest, HaveTheSameBitsByAnyUnitAndTarget) {
  for (const std::int64_t dim : {19, 128}) {
    const KeptRows rows(Int8Shape(dim), 150, 3);
    const std::vector<float> queries = NormalFloats(dim * kTileQueries, 5);
    const std::vector<const float*> pointers = PointersTo(queries, dim);
    hwy::SetSupportedTargetsForTest(0);  // The best there is.
    const auto floats =
        Scores<float>(UnitsHere().back(), rows, rows.panels(), rows.key_dims(), pointers);
    const auto doubles =
        Scores<double>(UnitsHere().back(), rows, rows.panels(), rows.key_dims(), pointers);
    hwy::SetSupportedTargetsForTest(GetParam());
    for (const DotUnit unit : UnitsHere()) {
      ExpectSameBits(Scores<float>(unit, rows, rows.panels(), rows.key_dims(), pointers), floats);
      ExpectSameBits(Scores<double>(unit, rows, rows.panels(), rows.key_dims(), pointers), doubles);
    }
  }
}

template <typename Sum>
void ExpectSameBitsAloneAndTogether(DotUnit unit, const KeptRows& rows,
                                    const std::vector<float>& queries) {
  const DimRange dims = rows.key_dims();
  const std::vector<const float*> pointers = PointersTo(queries, dims.count);
  for (const int count : {2, 3, 4, 7, kTileQueries}) {
    const auto together =
        Scores<Sum>(unit, rows, rows.panels(), dims, {pointers.begin(), pointers.begin() + count});
    for (int q = 0; q < count; ++q) {
      const std::vector<Sum> of_query(together.begin() + q * kScratchStride,
                                      together.begin() + (q + 1) * kScratchStride);
      ExpectSameBits(Scores<Sum>(unit, rows, rows.panels(), dims, {pointers[q]}), of_query);
      // A panel at a time, too.
      for (std::int64_t panel = 0; panel < rows.panels().end; ++panel) {
        const auto alone =
            Scores<Sum>(unit, rows, {.begin = panel, .end = panel + 1}, dims, {pointers[q]});
        for (std::int64_t r = panel * kPanelRows; r < (panel + 1) * kPanelRows; ++r) {
          ASSERT_EQ(alone[r], of_query[r]) << count << " queries, row " << r;
        }
      }
    }
  }
}

TEST_P(Int8ScoresTest, HaveTheSameBitsAloneAndTogether) {
  constexpr std::int64_t kDim = 67;
  const KeptRows rows(Int8Shape(kDim), 100, 3);
  const std::vector<float> queries = NormalFloats(kTileQueries * kDim, 5);
  for (const DotUnit unit : UnitsHere()) {
    ExpectSameBitsAloneAndTogether<float>(unit, rows, queries);
    ExpectSameBitsAloneAndTogether<double>(unit, rows, queries);
  }
}

TEST_P(Int8ScoresTest, HaveTheSameBitsFromUsedMemoryAndWhileFetching) {
  DigitQueries used;
  for (const std::int64_t dim : {200, 19, 64, 33}) {
    const KeptRows rows(Int8Shape(dim), 150, 3);
    const std::vector<float> queries = NormalFloats(dim * 5, static_cast<std::uint64_t>(dim));
    const std::vector<const float*> pointers = PointersTo(queries, dim);
    used.Pack(pointers.data(), 5, dim);
    for (const DotUnit unit : UnitsHere()) {
      std::vector<float> sums(5 * kScratchStride, std::numeric_limits<float>::quiet_NaN());
      ScoreInt8Rows(unit, rows.view(), rows.panels(), 0, used, sums.data(),
                    KeysOf(rows.view(), rows.panels()));
      ExpectSameBits(sums, Scores<float>(unit, rows, rows.panels(), rows.key_dims(), pointers));
    }
  }
}

TEST(Int8ScoresRangeTest, LeavesOutWhatFloat32DoesNotHold) {
  EXPECT_TRUE(KeysFitInt8Dots(1, 1));
  EXPECT_TRUE(KeysFitInt8Dots(0, 0));
  EXPECT_FALSE(KeysFitInt8Dots(1e38f, 1));
  EXPECT_FALSE(KeysFitInt8Dots(1, 1e38f));
  EXPECT_FALSE(KeysFitInt8Dots(1e-38f, 1));
  EXPECT_FALSE(KeysFitInt8Dots(1, 1e-38f));
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, Int8ScoresTest, EveryTarget(), TargetName);

}  // namespace
}  // namespace softlookup::kernels
