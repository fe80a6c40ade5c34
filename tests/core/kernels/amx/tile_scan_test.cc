// Scores and sums by tiles, on every instruction set of this machine: against float64, and bit for
// bit against themselves. AMX is compared with plain loops where there is any.
#include "core/kernels/amx/tile_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/amx/tile_operands.h"
#include "core/kernels/amx/tiles.h"
#include "core/kernels/panel_rows.h"
#include "core/kernels/sum_values.h"
#include "hwy/targets.h"
#include "tests/core/kernels/every_target.h"
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

constexpr double kInfinity = std::numeric_limits<double>::infinity();

PackedBlock Pack(const KeptRows& rows) {
  PackedBlock packed;
  packed.Pack(rows.view(), rows.panels(), rows.key_dims(), rows.value_dims());
  return packed;
}

template <typename Sum>
std::vector<Sum> Scores(const PackedBlock& packed, PanelRange panels,
                        const std::vector<const float*>& queries) {
  PackedQueries packed_queries;
  packed_queries.Pack(queries.data(), static_cast<int>(queries.size()), packed.key_dim());
  std::vector<Sum> sums(queries.size() * kScratchStride);
  ScoreRowsInTiles(TileUnit::kPortable, packed, panels, packed_queries, sums.data());
  return sums;
}

std::vector<double> Sums(const PackedBlock& packed, PanelRange panels,
                         const std::vector<float>& weights, int query_count) {
  std::vector<double> sums(query_count * PaddedValueDim(packed.value_dim()));
  SumValuesInTiles(TileUnit::kPortable, packed, panels, weights.data(), query_count, sums.data());
  return sums;
}

// Returns random weights of row_count rows. Those of all other rows are NaN, because nothing may
// read them.
std::vector<float> RandomWeights(std::int64_t row_count, int query_count, std::uint64_t seed) {
  std::vector<float> weights(query_count * kScratchStride, std::numeric_limits<float>::quiet_NaN());
  Draw draw(seed);
  for (int q = 0; q < query_count; ++q) {
    for (std::int64_t r = 0; r < (row_count + kPanelRows - 1) / kPanelRows * kPanelRows; ++r) {
      const double weight = std::exp2(-draw.Real(0, 40));
      weights[q * kScratchStride + r] = static_cast<float>(draw.Chance(0.2) ? -weight : weight);
    }
    weights[q * kScratchStride + draw.Int(0, row_count - 1)] = 1;
  }
  return weights;
}

// The largest error among all scores, over its bound.
template <typename Sum>
double WorstScore(const KeptRows& block, const std::vector<float>& queries) {
  const std::int64_t dim = block.view().shape.key_dim;
  const std::vector<const float*> pointers = PointersTo(queries, dim);
  const std::vector<Sum> sums = Scores<Sum>(Pack(block), block.panels(), pointers);
  double worst = 0;
  for (std::size_t q = 0; q < pointers.size(); ++q) {
    const double bound =
        ScoreErrorInTiles(dim, MagnitudeOf(pointers[q], dim), block.view().key_magnitude);
    for (std::int64_t r = 0; r < block.view().row_count; ++r) {
      const double expected = Product(pointers[q], block.key(r), dim);
      // The second term is the error of `expected` itself.
      double allowed = bound + dim * 0x1p-52 * std::abs(expected) + 1e-300;
      if (sizeof(Sum) == 4) allowed += 0x1.02p-23 * std::abs(expected);
      const double error = std::abs(sums[q * kScratchStride + r] - expected);
      worst = std::isfinite(error) ? std::max(worst, error / allowed) : kInfinity;
    }
  }
  return worst;
}

// The same of sums of values.
double WorstSum(const KeptRows& block, const std::vector<float>& weights, int query_count) {
  const std::int64_t dim = block.view().shape.value_dim;
  const std::int64_t row_count = block.view().row_count;
  const std::vector<double> sums = Sums(Pack(block), block.panels(), weights, query_count);
  double worst = 0;
  for (int q = 0; q < query_count; ++q) {
    const float* of_query = weights.data() + q * kScratchStride;
    double term_sum = 0, largest_term = 0;
    for (std::int64_t r = 0; r < row_count; ++r) {
      const double term =
          std::abs(static_cast<double>(of_query[r])) * MagnitudeOf(block.value(r), dim);
      term_sum += term;
      largest_term = std::max(largest_term, term);
    }
    const double bound = SumErrorInTiles(row_count, largest_term, term_sum);
    for (std::int64_t i = 0; i < dim; ++i) {
      double expected = 0;
      for (std::int64_t r = 0; r < row_count; ++r) {
        expected += static_cast<double>(of_query[r]) * block.value(r)[i];
      }
      const double error = std::abs(sums[q * PaddedValueDim(dim) + i] - expected);
      worst = std::isfinite(error) ? std::max(worst, error / bound) : kInfinity;
    }
  }
  return worst;
}

// TDPBSSD as Intel's manual defines it, for tiles of 64 bytes a row.
void DotByDefinition(int rows, const Tile& a, const Tile& b, SumTile& sums) {
  for (int m = 0; m < rows; ++m) {
    for (int k = 0; k < kTileRows; ++k) {
      for (int n = 0; n < kTileColumns; ++n) {
        for (int i = 0; i < 4; ++i) {
          sums.sums[m][n] += std::int32_t{a.bytes[m][4 * k + i]} * b.bytes[k][4 * n + i];
        }
      }
    }
  }
}

Tile RandomTile(Draw& draw) {
  Tile tile;
  for (auto& row : tile.bytes) {
    for (std::int8_t& byte : row) {
      byte = static_cast<std::int8_t>(draw.Chance(0.1) ? -128 : draw.Int(-128, 127));
    }
  }
  return tile;
}

template <class Tiles>
void ExpectTheDefinition() {
  Draw draw(1);
  for (const int rows : {1, 2, 7, 15, 16}) {
    const Tile a = RandomTile(draw), b = RandomTile(draw), other_b = RandomTile(draw);
    SumTile sums, others, expected = {}, expected_others = {};
    for (auto& row : sums.sums) std::fill(row, row + kTileColumns, 5);
    for (int m = rows; m < kTileRows; ++m) std::fill_n(expected.sums[m], kTileColumns, 5);
    Tiles tiles;
    tiles.Configure(rows);
    tiles.template Zero<0>();
    tiles.template Zero<4>();
    tiles.template Load<5>(a);
    tiles.template Load<6>(b);
    tiles.template Load<7>(other_b);
    tiles.template Dot<0, 5, 6>();
    tiles.template Dot<4, 5, 7>();
    tiles.template Dot<0, 5, 7>();
    tiles.template Store<0>(sums);
    tiles.template Store<4>(others);
    tiles.Release();
    DotByDefinition(rows, a, b, expected);
    DotByDefinition(rows, a, other_b, expected);
    DotByDefinition(rows, a, other_b, expected_others);
    for (int m = 0; m < kTileRows; ++m) {
      for (int n = 0; n < kTileColumns; ++n) {
        ASSERT_EQ(sums.sums[m][n], expected.sums[m][n]) << rows << ": " << m << ", " << n;
        if (m < rows) {
          ASSERT_EQ(others.sums[m][n], expected_others.sums[m][n]);
        }
      }
    }
  }
}

TEST(TilesTest, PortableTilesDoWhatTheInstructionIsDefinedToDo) {
  ExpectTheDefinition<PortableTiles>();
}

TEST(TilesTest, AmxDoesWhatTheInstructionIsDefinedToDo) {
  if (!AmxIsUsable()) GTEST_SKIP() << WhyNotAmx();
#if defined(__x86_64__)
  ExpectTheDefinition<AmxTiles>();
#endif
}

TEST(TilesTest, AmxPassesItsSelfCheckWhereItIsUsable) {
  EXPECT_EQ(AmxPassesSelfCheck(), AmxIsUsable());
  if (!AmxIsUsable()) GTEST_SKIP() << WhyNotAmx();
}

TEST(TilesTest, WhatIsTooLargeOrTooSmallDoesNotFit) {
  EXPECT_TRUE(KeysFitTiles(kTileKeyDimMax, 1, 1));
  EXPECT_TRUE(KeysFitTiles(1, 0, 1e15f));
  EXPECT_TRUE(KeysFitTiles(1, 1e-15f, 0));
  EXPECT_FALSE(KeysFitTiles(kTileKeyDimMax + 1, 1, 1));
  EXPECT_FALSE(KeysFitTiles(1, 1e38f, 1));
  EXPECT_FALSE(KeysFitTiles(1, 1, 1e-38f));
  EXPECT_TRUE(ValuesFitTiles(0));
  EXPECT_TRUE(ValuesFitTiles(1e-15f));
  EXPECT_FALSE(ValuesFitTiles(1e-38f));
  EXPECT_FALSE(ValuesFitTiles(3e38f));
}

class TileScanTest : public TargetTest {};

TEST_P(TileScanTest, ScoresKeepTheirBoundAroundEveryWidth) {
  constexpr StorageType kTypes[] = {StorageType::kFloat32, StorageType::kBfloat16,
                                    StorageType::kInt8};
  int i = 0;
  for (const std::int64_t dim : {1, 2, 15, 16, 17, 63, 64, 65, 100, 128, 130, 256, 300}) {
    for (const std::int64_t row_count : {1, 15, 17, 64, 130}) {
      const KeptRows block({.key_dim = dim, .value_dim = 3, .storage = kTypes[i % 3]}, row_count,
                           7);
      const std::vector<float> queries = NormalFloats(dim * (i % kTileQueries + 1), 11);
      ASSERT_LE(WorstScore<double>(block, queries), 1) << dim << ", " << row_count;
      if (dim <= kTileFloatDimMax) {
        ASSERT_LE(WorstScore<float>(block, queries), 1) << dim << ", " << row_count;
      }
      ++i;
    }
  }
}

// Equal terms have equal errors, which add up instead of cancelling.
TEST_P(TileScanTest, ScoresOfEqualTermsKeepTheirBoundAndComeNearIt) {
  constexpr std::int64_t kDim = 160;
  double worst = 0;
  // Right below and above a power of two, less the margin; integers of long runs of bits.
  for (const float size : {1.0f, 0x1.fdp0f, 0x1.fffffep0f, 0x1.010102p0f, 1.1f}) {
    for (const float component : {0.1f, 1 / 3.0f, 0x1.fefefep-9f, 0x1.fdfdfep-8f, 0x1.01010p-8f}) {
      for (const float sign : {1.0f, -1.0f}) {
        std::vector<float> key(kDim, component), query(kDim, component * sign);
        key[0] = query[0] = size;
        const KeptRows block({.key_dim = kDim, .value_dim = 1}, 1, key, {1});
        worst = std::max(worst, WorstScore<double>(block, query));
        ASSERT_LE(worst, 1) << size << ", " << component;
        ASSERT_LE(WorstScore<float>(block, query), 1) << size << ", " << component;
      }
    }
  }
  EXPECT_GE(worst, 0.5);
}

TEST_P(TileScanTest, ScoresOfComponentsOfEverySizeKeepTheirBound) {
  constexpr std::int64_t kDim = 70, kRows = 40;
  Draw draw(5);
  const auto floats = [&](std::int64_t count) {
    std::vector<float> components(count);
    for (float& x : components) {
      x = static_cast<float>(draw.Real(-1, 1) * std::exp2(draw.Real(-60, 40)));
    }
    return components;
  };
  const KeptRows block({.key_dim = kDim, .value_dim = 1}, kRows, floats(kRows * kDim),
                       std::vector<float>(kRows, 1));
  const std::vector<float> queries = floats(kTileQueries * kDim);
  EXPECT_LE(WorstScore<double>(block, queries), 1);
  EXPECT_LE(WorstScore<float>(block, queries), 1);
}

// Rows that are next to nothing, in a block that fits.
TEST_P(TileScanTest, TinyRowsAndZerosScoreFinitely) {
  constexpr std::int64_t kDim = 20;
  constexpr float kSizes[] = {1,      0,      std::numeric_limits<float>::denorm_min(),
                              1e-40f, 1e-38f, 1e-30f};
  std::vector<float> keys;
  for (const float size : kSizes) keys.insert(keys.end(), kDim, size);
  const KeptRows block({.key_dim = kDim, .value_dim = 1}, std::size(kSizes), keys,
                       std::vector<float>(std::size(kSizes), 0));
  std::vector<float> queries(2 * kDim, 0);
  std::fill_n(queries.begin(), kDim, 0.75f);
  EXPECT_LE(WorstScore<double>(block, queries), 1);
  EXPECT_LE(WorstScore<float>(block, queries), 1);
  const auto sums = Scores<float>(Pack(block), block.panels(), PointersTo(queries, kDim));
  EXPECT_EQ(sums[0], 15);
  EXPECT_EQ(sums[1], 0);
  EXPECT_EQ(sums[kPanelRows - 1], 0);  // No row.
  EXPECT_EQ(sums[kScratchStride], 0);
  // Scales follow small rows down to 2^-90; from there on, a step is 2^-121.
  EXPECT_NEAR(sums[5] / (15 * 1e-30), 1, 1e-3);
  // All values are zero.
  EXPECT_EQ(Sums(Pack(block), block.panels(), std::vector<float>(kScratchStride, 1), 1)[0], 0);
}

TEST_P(TileScanTest, ReadsOneHeadOfSomePanels) {
  const KeptRows block({.key_dim = 30, .value_dim = 40}, 200, 3);
  const std::vector<float> query = NormalFloats(9, 5);
  const PanelRange packed_panels{.begin = 5, .end = 13}, panels{.begin = 10, .end = 12};
  PackedBlock packed;
  packed.Pack(block.view(), packed_panels, {.begin = 17, .count = 9}, {.begin = 5, .count = 18});
  const auto sums = Scores<double>(packed, panels, {query.data()});
  for (std::int64_t r = 0; r < 208; ++r) {
    const bool inside = r >= 160 && r < 192;
    const double expected = inside ? Product(query.data(), block.key(r) + 17, 9) : 0;
    ASSERT_NEAR(sums[r], expected, inside ? 1e-6 : 0) << r;
  }
  std::vector<float> weights(kScratchStride, std::numeric_limits<float>::quiet_NaN());
  std::fill(weights.begin() + 160, weights.begin() + 192, 0.5f);
  const auto value_sums = Sums(packed, panels, weights, 1);
  for (std::int64_t i = 0; i < 18; ++i) {
    double expected = 0;
    for (std::int64_t r = 160; r < 192; ++r) expected += 0.5 * block.value(r)[5 + i];
    ASSERT_NEAR(value_sums[i], expected, 2e-5) << i;
  }
}

TEST_P(TileScanTest, BitsDoNotDependOnNeighboursOrPanels) {
  constexpr std::int64_t kDim = 100, kRows = 150, kValueDim = 37;
  for (const StorageType storage :
       {StorageType::kFloat32, StorageType::kBfloat16, StorageType::kInt8}) {
    const KeptRows block({.key_dim = kDim, .value_dim = kValueDim, .storage = storage}, kRows, 3);
    const PackedBlock packed = Pack(block);
    const std::vector<float> queries = NormalFloats(kTileQueries * kDim, 5);
    const std::vector<const float*> pointers = PointersTo(queries, kDim);
    const auto together = Scores<double>(packed, block.panels(), pointers);
    const auto floats = Scores<float>(packed, block.panels(), pointers);
    const std::vector<float> weights = RandomWeights(kRows, kTileQueries, 9);
    const auto sums = Sums(packed, block.panels(), weights, kTileQueries);
    for (int q = 0; q < kTileQueries; ++q) {
      for (std::int64_t panel = 0; panel < block.panels().end; ++panel) {
        const PanelRange one{.begin = panel, .end = panel + 1};
        PackedBlock packed_alone;
        packed_alone.Pack(block.view(), one, block.key_dims(), {});
        const auto alone = Scores<double>(packed_alone, one, {pointers[q]});
        const auto float_alone = Scores<float>(packed, one, {pointers[q]});
        for (std::int64_t r = panel * kPanelRows; r < (panel + 1) * kPanelRows; ++r) {
          ASSERT_EQ(alone[r], together[q * kScratchStride + r]);
          ASSERT_EQ(float_alone[r], floats[q * kScratchStride + r]);
        }
      }
      const std::vector<float> own(weights.begin() + q * kScratchStride,
                                   weights.begin() + (q + 1) * kScratchStride);
      const auto alone = Sums(packed, block.panels(), own, 1);
      for (std::int64_t i = 0; i < kValueDim; ++i) {
        ASSERT_EQ(alone[i], sums[q * PaddedValueDim(kValueDim) + i]);
      }
    }
  }
}

TEST_P(TileScanTest, BitsAreThoseOfEveryInstructionSet) {
  for (const StorageType storage :
       {StorageType::kFloat32, StorageType::kBfloat16, StorageType::kInt8}) {
    const KeptRows block({.key_dim = 77, .value_dim = 19, .storage = storage}, 90, 3);
    const std::vector<float> queries = NormalFloats(5 * 77, 5);
    const std::vector<const float*> pointers = PointersTo(queries, 77);
    const std::vector<float> weights = RandomWeights(90, 5, 9);
    const auto scores = Scores<double>(Pack(block), block.panels(), pointers);
    const auto floats = Scores<float>(Pack(block), block.panels(), pointers);
    const auto sums = Sums(Pack(block), block.panels(), weights, 5);
    hwy::SetSupportedTargetsForTest(0);  // The best there is.
    EXPECT_EQ(Scores<double>(Pack(block), block.panels(), pointers), scores);
    EXPECT_EQ(Scores<float>(Pack(block), block.panels(), pointers), floats);
    const auto best = Sums(Pack(block), block.panels(), weights, 5);
    for (int q = 0; q < 5; ++q) {
      for (int i = 0; i < 19; ++i) EXPECT_EQ(best[q * 32 + i], sums[q * 32 + i]);
    }
    hwy::SetSupportedTargetsForTest(GetParam());
  }
}

TEST_P(TileScanTest, SumsKeepTheirBoundAroundEveryWidth) {
  constexpr StorageType kTypes[] = {StorageType::kFloat32, StorageType::kBfloat16,
                                    StorageType::kInt8};
  int i = 0;
  for (const std::int64_t dim : {1, 3, 15, 16, 17, 48, 63, 130, 300}) {
    for (const std::int64_t row_count : {1, 16, 17, 63, 64, 65, 300, 1024}) {
      const KeptRows block({.key_dim = 1, .value_dim = dim, .storage = kTypes[i % 3]}, row_count,
                           7);
      const int query_count = i % kTileQueries + 1;
      ASSERT_LE(WorstSum(block, RandomWeights(row_count, query_count, 13), query_count), 1)
          << dim << ", " << row_count;
      ++i;
    }
  }
}

// One row of weight 1 beside equal ones of small weights: roundings that are alike add up.
TEST_P(TileScanTest, SumsOfEqualSmallWeightsKeepTheirBoundAndComeNearIt) {
  double worst = 0;
  for (const std::int64_t row_count : {512, 1024}) {
    // Their integers' low digits are the largest, of one sign, or next to nothing.
    for (const double weight :
         {0x7f7fp0 / kWeightSteps, 0x8080p0 / kWeightSteps, 1e-3, 3e-5, 1e-9, 0.4 / kWeightSteps}) {
      for (const double value : {0x7f7f7fp0 / kValueSteps, 0x8080p0 / kValueSteps, 0.9999, 0.3}) {
        for (const float magnitude : {1.0f, 0.7f}) {
          std::vector<float> values(row_count,
                                    static_cast<float>(std::min(value, 1.0)) * -magnitude);
          values[0] = magnitude;
          const KeptRows block({.key_dim = 1, .value_dim = 1}, row_count,
                               std::vector<float>(row_count, 1), values);
          std::vector<float> weights(kScratchStride, static_cast<float>(weight));
          weights[0] = 1;
          worst = std::max(worst, WorstSum(block, weights, 1));
          ASSERT_LE(worst, 1) << row_count << " rows of weight " << weight << ", value " << value;
        }
      }
    }
  }
  EXPECT_GE(worst, 0.4);
  EXPECT_LE(SumErrorInTiles(kBlockRowsMax, 1, 1), 1.3e-6);
}

// The value of such a row can be of any size: deleted rows, and rows that a filter leaves out, stay
// in their block.
TEST_P(TileScanTest, ARowOfNoOrLittleWeightTakesNothingFromTheOthers) {
  constexpr std::int64_t kRows = 1024;
  for (const float size : {1e3f, 1e6f, 1e9f, 1e15f}) {
    std::vector<float> values(kRows, 1.05f);
    values[3] = size;
    const KeptRows block({.key_dim = 1, .value_dim = 1}, kRows, std::vector<float>(kRows, 1),
                         values);
    std::vector<float> weights(kScratchStride, 1);
    weights[3] = 0;
    const double others = 1023 * static_cast<double>(1.05f);
    EXPECT_NEAR(Sums(Pack(block), block.panels(), weights, 1)[0], others, 1e-6 * others);
    weights[3] = 1 / size;
    EXPECT_NEAR(Sums(Pack(block), block.panels(), weights, 1)[0], others + 1, 1e-6 * others);
  }
}

TEST_P(TileScanTest, SumsAreAddedToWhatIsThere) {
  const KeptRows block({.key_dim = 1, .value_dim = 2}, 3, {1, 1, 1}, {1, -1, 0.5f, 0.25f, 1, 1});
  const std::vector<float> weights = {1, 0.5f, 0};
  std::vector<float> of_rows(kScratchStride);
  std::copy(weights.begin(), weights.end(), of_rows.begin());
  std::vector<double> sums(PaddedValueDim(2), 100);
  SumValuesInTiles(TileUnit::kPortable, Pack(block), block.panels(), of_rows.data(), 1,
                   sums.data());
  EXPECT_NEAR(sums[0], 101.25, 1e-6);
  EXPECT_NEAR(sums[1], 99.125, 1e-6);
}

TEST_P(TileScanTest, RowsOfWeightZeroChangeNoBit) {
  constexpr std::int64_t kRows = 70, kDim = 20;
  std::vector<float> values = NormalFloats(kRows * kDim, 3);
  values[0] = 10;  // The magnitude, in both.
  std::vector<float> others = values;
  std::vector<float> weights = RandomWeights(kRows, 1, 3);
  for (const std::int64_t row : {1, 17, 69}) {
    weights[row] = 0;
    std::fill_n(others.begin() + row * kDim, kDim, -9.9f);
  }
  const PanelShape shape{.key_dim = 1, .value_dim = kDim};
  const std::vector<float> keys(kRows, 1);
  const KeptRows block(shape, kRows, keys, values), other(shape, kRows, keys, others);
  const auto sums = Sums(Pack(block), block.panels(), weights, 1);
  const auto other_sums = Sums(Pack(other), other.panels(), weights, 1);
  for (std::int64_t i = 0; i < kDim; ++i) ASSERT_EQ(sums[i], other_sums[i]);
}

TEST_P(TileScanTest, OneScratchTakesBlocksOfManyShapes) {
  PackedBlock packed;
  for (const std::int64_t dim : {90, 5, 200, 64}) {
    const KeptRows block({.key_dim = dim, .value_dim = dim}, 300 - dim, 3);
    packed.Pack(block.view(), block.panels(), block.key_dims(), block.value_dims());
    const std::vector<float> query = NormalFloats(dim, 5);
    EXPECT_EQ(Scores<double>(packed, block.panels(), {query.data()}),
              Scores<double>(Pack(block), block.panels(), {query.data()}));
    const std::vector<float> weights = RandomWeights(300 - dim, 1, 3);
    const auto sums = Sums(packed, block.panels(), weights, 1);
    const auto expected = Sums(Pack(block), block.panels(), weights, 1);
    for (std::int64_t i = 0; i < dim; ++i) EXPECT_EQ(sums[i], expected[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, TileScanTest, EveryTarget(), TargetName);

}  // namespace
}  // namespace softlookup::kernels
