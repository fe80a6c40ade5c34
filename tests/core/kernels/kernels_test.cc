// Every kernel on every instruction set of this machine, against plain loops in float64, at sizes
// around the vector widths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/logits.h"
#include "core/kernels/panel_rows.h"
#include "core/kernels/score_rows.h"
#include "tests/core/kernels/every_target.h"
#include "tests/testing/kept_rows.h"
#include "tests/testing/random.h"

namespace softlookup::kernels {
namespace {

using softlookup::testing::KeptRows;
using softlookup::testing::NormalFloats;
using softlookup::testing::PointersTo;

class KernelTest : public TargetTest {};

double ReferenceSum(Term term, const float* query, const float* key, std::int64_t dim) {
  double sum = 0;
  for (std::int64_t i = 0; i < dim; ++i) {
    const double q = query[i], k = key[i];
    sum += term == Term::kProduct ? q * k : (q - k) * (q - k);
  }
  return sum;
}

// The sums that a scan chooses from: those of float32, and null for float64.
std::vector<const Float32Sums*> AllSums() {
  std::vector<const Float32Sums*> all_sums = {nullptr};
  for (const Float32Sums& how : kFloat32Sums) all_sums.push_back(&how);
  return all_sums;
}

TEST_P(KernelTest, ScoresMatchTheReferenceAroundEveryWidth) {
  for (const auto& [term, storage] : {std::pair(Term::kProduct, StorageType::kFloat32),
                                      std::pair(Term::kProduct, StorageType::kBfloat16),
                                      std::pair(Term::kProduct, StorageType::kInt8),
                                      std::pair(Term::kSquaredDifference, StorageType::kFloat32),
                                      std::pair(Term::kSquaredDifference, StorageType::kInt8)}) {
    for (const Float32Sums* how : AllSums()) {
      for (const std::int64_t dim : {1, 2, 31, 100, 170}) {
        for (const std::int64_t row_count : {1, 15, 17, 63, 64, 65, 130}) {
          const KeptRows rows({.key_dim = dim, .value_dim = 3, .storage = storage}, row_count, 7);
          for (const int query_count : {1, 2, 3, 5, kTileQueries}) {
            const std::vector<float> queries = NormalFloats(query_count * dim, 11);
            const std::vector<const float*> pointers = PointersTo(queries, dim);
            std::vector<double> sums(kTileQueries * kScratchStride);
            const DimRange dims{.begin = 0, .count = dim};
            if (how != nullptr) {
              ScoreRows(term, *how, rows.view(), rows.panels(), dims, pointers.data(), query_count,
                        sums.data());
            } else {
              ScoreRowsFloat64(term, rows.view(), rows.panels(), dims, pointers.data(), query_count,
                               sums.data());
            }
            for (int q = 0; q < query_count; ++q) {
              for (std::int64_t r = 0; r < row_count; ++r) {
                const double expected = ReferenceSum(term, pointers[q], rows.key(r), dim);
                ASSERT_NEAR(sums[q * kScratchStride + r], expected,
                            1e-6 * (std::abs(expected) + std::sqrt(dim)))
                    << "dim " << dim << " row " << r << " of " << row_count << " query " << q;
              }
            }
          }
        }
      }
    }
  }
}

TEST_P(KernelTest, ScoreBitsDoNotDependOnTheNumberOfQueries) {
  constexpr std::int64_t kDim = 67, kRows = 100;
  const KeptRows rows({.key_dim = kDim, .value_dim = 1}, kRows, 3);
  const std::vector<float> queries = NormalFloats(kTileQueries * kDim, 5);
  const std::vector<const float*> pointers = PointersTo(queries, kDim);
  const DimRange dims{.begin = 0, .count = kDim};
  const Float32Sums how = kFloat32Sums[3];  // Of several runs.
  std::vector<double> together(kTileQueries * kScratchStride);
  ScoreRows(Term::kProduct, how, rows.view(), rows.panels(), dims, pointers.data(), kTileQueries,
            together.data());
  for (int q = 0; q < kTileQueries; ++q) {
    std::vector<double> alone(kScratchStride);
    // A panel at a time, too.
    for (std::int64_t panel = 0; panel < rows.panels().end; ++panel) {
      ScoreRows(Term::kProduct, how, rows.view(), {.begin = panel, .end = panel + 1}, dims,
                &pointers[q], 1, alone.data());
    }
    for (std::int64_t r = 0; r < kRows; ++r) {
      ASSERT_EQ(std::bit_cast<std::uint64_t>(alone[r]),
                std::bit_cast<std::uint64_t>(together[q * kScratchStride + r]));
    }
  }
}

// One query decodes its keys itself, several share them.
TEST_P(KernelTest, FloatScoresHaveTheBitsOfTheOthersAndOfAQueryAlone) {
  constexpr StorageType kTypes[] = {StorageType::kFloat32, StorageType::kBfloat16,
                                    StorageType::kInt8};
  for (const std::int64_t dim : {1, 4, 5, 19, 20, 21, 40, 99, 128, 159, 160}) {
    const KeptRows rows({.key_dim = dim, .value_dim = 1, .storage = kTypes[dim % 3]}, 150, 3);
    const std::vector<float> queries = NormalFloats(kTileQueries * dim, 5);
    const std::vector<const float*> pointers = PointersTo(queries, dim);
    const DimRange dims{.begin = 0, .count = dim};
    for (const auto& [term, how] :
         {std::pair(Term::kProduct, kFloat32Sums[0]), std::pair(Term::kProduct, kFloat32Sums[1]),
          std::pair(Term::kSquaredDifference, kFloat32Sums[2])}) {
      std::vector<double> wide(kTileQueries * kScratchStride), alone(kScratchStride);
      std::vector<float> floats(kTileQueries * kScratchStride);
      for (const int count : {2, 5, kTileQueries}) {
        ScoreRows(term, how, rows.view(), rows.panels(), dims, pointers.data(), count, wide.data());
        ScoreRowsFloat32(term, how, rows.view(), rows.panels(), dims, pointers.data(), count,
                         floats.data());
        for (int q = 0; q < count; ++q) {
          ScoreRows(term, how, rows.view(), rows.panels(), dims, &pointers[q], 1, alone.data());
          for (std::size_t r = 0; r < 150; ++r) {
            ASSERT_EQ(wide[q * kScratchStride + r], floats[q * kScratchStride + r]) << dim;
            ASSERT_EQ(wide[q * kScratchStride + r], alone[r]) << dim;
          }
        }
      }
    }
  }
}

TEST_P(KernelTest, RowsOfExtremesAreKeptFiniteAndToHalfAScale) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  for (const float size : {kMax, -kMax, kMax / 2, 1.0f, 1e-36f, 3e-43f, 2e-44f, kLeast}) {
    for (const StorageType storage : {StorageType::kBfloat16, StorageType::kInt8}) {
      const PanelShape shape{.key_dim = 3, .value_dim = 2, .storage = storage};
      const float key[] = {size, size / 3, 0}, value[] = {-size / 2, size};
      std::vector<std::byte> panel(shape.bytes()), row(shape.row_bytes());
      PutRow(shape, key, value, 5, panel.data());
      PanelRowReader reader(shape);
      const PanelRow kept = reader.Read(panel.data(), 5);
      const double magnitude = std::abs(static_cast<double>(size));
      const double error = storage == StorageType::kInt8
                               ? (magnitude / 127 * 1.001 + kLeast) / 2
                               : std::max(magnitude / 256, 0x1p-134);  // Half a subnormal's step.
      for (std::int64_t i = 0; i < 3; ++i) {
        ASSERT_TRUE(std::isfinite(kept.key[i])) << size;
        ASSERT_NEAR(kept.key[i], key[i], error) << size;
      }
      for (std::int64_t i = 0; i < 2; ++i) ASSERT_NEAR(kept.value[i], value[i], error) << size;
      // By itself and back in another lane it is the same row.
      PackRow(shape, panel.data(), 5, row.data());
      UnpackRow(shape, row.data(), 9, panel.data());
      PanelRowReader other(shape);
      const PanelRow moved = other.Read(panel.data(), 9);
      for (std::int64_t i = 0; i < 3; ++i) ASSERT_EQ(moved.key[i], kept.key[i]);
      for (std::int64_t i = 0; i < 2; ++i) ASSERT_EQ(moved.value[i], kept.value[i]);
    }
  }
}

// Equal terms round alike, so that errors add up instead of cancelling.
TEST_P(KernelTest, Float32ScoresKeepTheirBound) {
  for (const std::int64_t dim : {1, 17, 100, 128, 160, 161, 320, 1000}) {
    for (const float component : {0.1f, 0.3f, 1 / 3.0f, 0.7f, 1.1f}) {
      const std::vector<float> key(dim, component), query(dim, 0.9f);
      std::vector<float> panel(kPanelRows * (dim + 1), component);
      const BlockView view{.shape = {.key_dim = dim, .value_dim = 1},
                           .full_panels = reinterpret_cast<const std::byte*>(panel.data()),
                           .full_panel_count = 1,
                           .row_count = kPanelRows};
      const float* pointer = query.data();
      const double expected = ReferenceSum(Term::kProduct, query.data(), key.data(), dim);
      const double key_norm = component * std::sqrt(static_cast<double>(dim));
      const Float32ErrorNorms errors =
          Float32Roundings(dim, FusesMultiplyAdds()).ErrorNormsOf(query.data());
      for (std::size_t sums_index = 0; sums_index < kFloat32Sums.size(); ++sums_index) {
        std::vector<double> sums(kScratchStride);
        ScoreRows(Term::kProduct, kFloat32Sums[sums_index], view, {.begin = 0, .end = 1},
                  {.begin = 0, .count = dim}, &pointer, 1, sums.data());
        ASSERT_NEAR(sums[0], expected, 0x1p-24 * errors[sums_index] * key_norm)
            << dim << " times " << component << ", way " << sums_index;
        ASSERT_NEAR(
            sums[0], expected,
            0x1p-24 * static_cast<double>(kFloat32Sums[sums_index].Roundings(dim)) * expected)
            << dim << " times " << component << ", way " << sums_index;
      }
    }
  }
}

TEST(Float32RoundingsTest, EveryTermHasItsOwn) {
  bool is_fused = false;
  const auto roundings = [&](std::int64_t dim_count, std::int64_t term, std::size_t sums_index) {
    std::vector<float> query(dim_count);
    query[term] = 1;
    return Float32Roundings(dim_count, is_fused).ErrorNormsOf(query.data())[sums_index];
  };
  // A chain of 10 and one of 7.
  EXPECT_EQ(roundings(17, 0, 1), 10 + 1);
  EXPECT_EQ(roundings(17, 1, 1), 10 + 1);
  EXPECT_EQ(roundings(17, 9, 1), 2 + 1);
  EXPECT_EQ(roundings(17, 10, 1), 7 + 1);
  EXPECT_EQ(roundings(17, 16, 1), 2 + 1);
  EXPECT_EQ(roundings(17, 0, 0), 17);
  EXPECT_EQ(roundings(17, 16, 0), 2);
  // A run of 160, and one of a single term.
  EXPECT_EQ(roundings(161, 159, 0), 2 + 2);
  EXPECT_EQ(roundings(161, 159, 1), 2 + 4);
  EXPECT_EQ(roundings(161, 155, 2), 5 + 5);
  EXPECT_EQ(roundings(161, 160, 2), 1);
  // Runs of two chains of 5.
  EXPECT_EQ(roundings(330, 160, 3), 5 + 1);
  EXPECT_EQ(roundings(330, 329, 3), 2 + 1);

  is_fused = true;
  EXPECT_EQ(roundings(17, 0, 1), 10 + 1);
  EXPECT_EQ(roundings(17, 1, 1), 9 + 1);
  EXPECT_EQ(roundings(17, 9, 1), 1 + 1);
  EXPECT_EQ(roundings(17, 16, 1), 1 + 1);
  EXPECT_EQ(roundings(17, 0, 0), 17);
  EXPECT_EQ(roundings(161, 160, 2), 1);
}

TEST_P(KernelTest, ScoresOneHeadOfTheKey) {
  const KeptRows rows({.key_dim = 12, .value_dim = 1}, 20, 3);
  const std::vector<float> query = NormalFloats(4, 5);
  const float* pointer = query.data();
  std::vector<double> sums(kScratchStride);
  ScoreRows(Term::kProduct, kFloat32Sums[1], rows.view(), rows.panels(), {.begin = 8, .count = 4},
            &pointer, 1, sums.data());
  for (std::int64_t r = 0; r < 20; ++r) {
    ASSERT_NEAR(sums[r], ReferenceSum(Term::kProduct, pointer, rows.key(r) + 8, 4), 1e-6);
  }
}

TEST_P(KernelTest, Float64SumsHoldWhatFloat32CannotReach) {
  KeptRows rows({.key_dim = 40, .value_dim = 1}, 5, 3, 1e30);
  const std::vector<float> query = NormalFloats(40, 5, 1e30);
  const float* pointer = query.data();
  std::vector<double> sums(kScratchStride);
  ScoreRowsFloat64(Term::kSquaredDifference, rows.view(), rows.panels(), {.begin = 0, .count = 40},
                   &pointer, 1, sums.data());
  for (std::int64_t r = 0; r < 5; ++r) {
    const double expected = ReferenceSum(Term::kSquaredDifference, pointer, rows.key(r), 40);
    ASSERT_NEAR(sums[r] / expected, 1, 1e-12);
  }
}

TEST_P(KernelTest, KeyNormsMatchTheReference) {
  for (const StorageType storage :
       {StorageType::kFloat32, StorageType::kBfloat16, StorageType::kInt8}) {
    const KeptRows rows({.key_dim = 290, .value_dim = 1, .storage = storage}, 21, 3);
    std::vector<double> norms(kScratchStride);
    KeyNorms(rows.view(), rows.panels(), {.begin = 1, .count = 280}, norms.data());
    for (std::int64_t r = 0; r < 21; ++r) {
      const float* key = rows.key(r) + 1;
      ASSERT_NEAR(norms[r], std::sqrt(ReferenceSum(Term::kProduct, key, key, 280)), 1e-12);
    }
  }
}

TEST_P(KernelTest, LogitsLeaveOutRowsByRangeMaskAndScore) {
  constexpr std::int64_t kRows = 96;
  std::vector<double> sums(kScratchStride), logits(kScratchStride);
  for (std::int64_t r = 0; r < kRows; ++r) sums[r] = static_cast<double>(r % 10);
  std::vector<std::uint64_t> mask = {~std::uint64_t{0}, ~std::uint64_t{0}};
  mask[0] &= ~(std::uint64_t{1} << 20);
  mask[1] &= ~(std::uint64_t{1} << 3);  // Row 67.
  const LogitParams params{.form = ScoreForm::kScaled,
                           .scale = 2,
                           .inverse_temperature = 0.5,
                           .min_score = 4,
                           .row_mask = mask.data(),
                           .ln_decay = -0.25,
                           .age_of_row_0 = 100};
  const LogitSummary summary = MakeLogits(params, {.begin = 0, .end = kRows / kPanelRows},
                                          {.begin = 5, .end = 77}, sums.data(), logits.data());
  double max = -std::numeric_limits<double>::infinity();
  std::int64_t counted = 0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    const double score = 2 * static_cast<double>(r % 10);
    ASSERT_EQ(sums[r], score);
    if (r < 5 || r >= 77 || r == 20 || r == 67 || score < 4) {
      ASSERT_EQ(logits[r], -std::numeric_limits<double>::infinity()) << r;
      continue;
    }
    ASSERT_DOUBLE_EQ(logits[r], score * 0.5 - 0.25 * static_cast<double>(100 - r)) << r;
    max = std::max(max, logits[r]);
    ++counted;
  }
  EXPECT_EQ(summary.counted_rows, counted);
  EXPECT_EQ(summary.max, max);
}

TEST_P(KernelTest, CosineOfAZeroNormIsZero) {
  std::vector<double> sums(kScratchStride, 1.0), logits(kScratchStride), norms(kScratchStride, 2.0);
  norms[3] = 0;
  const LogitParams params{.form = ScoreForm::kCosine, .query_norm = 4, .key_norms = norms.data()};
  MakeLogits(params, {.begin = 0, .end = 1}, {.begin = 0, .end = 16}, sums.data(), logits.data());
  EXPECT_EQ(logits[2], 0.125);
  EXPECT_EQ(logits[3], 0);
}

TEST_P(KernelTest, SoftmaxWeightsMatchExpToTwoUlp) {
  std::vector<double> logits(kScratchStride, -std::numeric_limits<double>::infinity());
  std::vector<float> weights(kScratchStride);
  for (std::int64_t r = 0; r < 1000; ++r) logits[r] = 5 - 0.0871 * static_cast<double>(r);
  const PanelRange panels{.begin = 0, .end = kBlockRowsMax / kPanelRows};
  const SoftmaxSums sums = MakeSoftmaxWeights(logits.data(), 5, panels, weights.data());
  double weight = 0, weighted = 0;
  for (std::int64_t r = 0; r < kBlockRowsMax; ++r) {
    const double x = static_cast<float>(logits[r] - 5);
    const double expected = x < -87 ? 0 : std::exp(x);
    ASSERT_NEAR(weights[r], expected, expected * 2.4e-7) << x;
    weight += expected;
    if (expected > 0) weighted += expected * x;
  }
  EXPECT_NEAR(sums.weight, weight, weight * 1e-6);
  EXPECT_NEAR(sums.weighted, weighted, std::abs(weighted) * 1e-6);
}

TEST_P(KernelTest, WeightsOfSumsAreThoseOfTheirLogits) {
  constexpr PanelRange kPanels{.begin = 1, .end = 6};  // A step of four vectors, and more.
  std::vector<float> sums = NormalFloats(kScratchStride, 3, 40);
  sums[2] = 1e6f;  // Outside.
  for (const double factor : {1 / std::sqrt(3.0), -1 / 7.0}) {
    const SumRange range = RangeOfSums(kPanels, sums.data());
    EXPECT_EQ(range.min, *std::min_element(sums.begin() + 16, sums.begin() + 96));
    EXPECT_EQ(range.max, *std::max_element(sums.begin() + 16, sums.begin() + 96));
    const float best = factor > 0 ? range.max : range.min;
    const double max = factor * best;
    std::vector<double> logits(kScratchStride);
    for (std::size_t r = 16; r < 96; ++r) logits[r] = factor * sums[r];
    std::vector<float> expected(kScratchStride), weights(kScratchStride);
    const SoftmaxSums of_logits = MakeSoftmaxWeights(logits.data(), max, kPanels, expected.data());
    const SoftmaxSums of_sums =
        MakeSoftmaxWeightsOfSums(sums.data(), factor, best, kPanels, weights.data());
    for (std::size_t r = 16; r < 96; ++r) {
      const double weight = logits[r] - max < -87 ? 0 : std::exp(logits[r] - max);
      ASSERT_NEAR(weights[r], weight, weight * (1e-7 + 1.8e-7 * (max - logits[r]))) << r;
    }
    EXPECT_NEAR(of_sums.weight, of_logits.weight, of_logits.weight * 1e-5);
    EXPECT_NEAR(of_sums.weighted, of_logits.weighted, std::abs(of_logits.weighted) * 1e-5);
  }
}

// A step of the kernel is some panels, and what is left over goes by itself.
TEST_P(KernelTest, WeightsDoNotDependOnWhereARangeOfPanelsBegins) {
  const std::vector<float> sums = NormalFloats(kScratchStride, 4, 60);
  std::vector<float> all(kScratchStride), some(kScratchStride);
  const float best = *std::max_element(sums.begin(), sums.end());
  MakeSoftmaxWeightsOfSums(sums.data(), 1, best, {.begin = 0, .end = 16}, all.data());
  EXPECT_GT(std::count(all.begin(), all.begin() + 256, 0.0f), 0) << "below exp(-87)";
  for (const std::int64_t count : {1, 3, 4, 8, 9}) {
    for (const std::int64_t begin : {0, 1, 5}) {
      MakeSoftmaxWeightsOfSums(sums.data(), 1, best, {.begin = begin, .end = begin + count},
                               some.data());
      for (std::int64_t r = begin * kPanelRows; r < (begin + count) * kPanelRows; ++r) {
        ASSERT_EQ(some[r], all[r]) << r;
      }
    }
  }
}

TEST_P(KernelTest, EqualSumsHaveEqualWeights) {
  const std::vector<float> sums(kScratchStride, -7.5f);
  std::vector<float> weights(kScratchStride);
  const SoftmaxSums of_sums =
      MakeSoftmaxWeightsOfSums(sums.data(), 3, -7.5f, {.begin = 0, .end = 5}, weights.data());
  for (std::int64_t r = 0; r < 80; ++r) ASSERT_EQ(weights[r], 1.0f);
  EXPECT_EQ(of_sums.weight, 80);
  EXPECT_EQ(of_sums.weighted, 0);
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, KernelTest, EveryTarget(), TargetName);

}  // namespace
}  // namespace softlookup::kernels
