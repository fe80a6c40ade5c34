// Sums of values on every instruction set of this machine, against plain loops in float64, at sizes
// around the vector widths.
#include "core/kernels/sum_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/kernels/panel_rows.h"
#include "core/kernels/score_rows.h"
#include "tests/core/kernels/every_target.h"
#include "tests/testing/kept_rows.h"
#include "tests/testing/random.h"

namespace softlookup::kernels {
namespace {

using softlookup::testing::KeptRows;
using softlookup::testing::NormalFloats;

class SumValuesTest : public TargetTest {};

TEST_P(SumValuesTest, ValueSumsMatchTheReferenceAroundEveryWidth) {
  for (const auto& [dim, storage] :
       {std::pair(1, StorageType::kFloat32), std::pair(1, StorageType::kInt8),
        std::pair(3, StorageType::kBfloat16), std::pair(15, StorageType::kFloat32),
        std::pair(16, StorageType::kBfloat16), std::pair(17, StorageType::kFloat32),
        std::pair(17, StorageType::kInt8), std::pair(48, StorageType::kFloat32),
        std::pair(63, StorageType::kFloat32), std::pair(130, StorageType::kFloat32),
        std::pair(130, StorageType::kBfloat16), std::pair(300, StorageType::kInt8)}) {
    for (const std::int64_t row_count : {1, 16, 17, 127, 128, 129, 300}) {
      const KeptRows rows({.key_dim = 1, .value_dim = dim, .storage = storage}, row_count, 7);
      for (const int query_count : {1, 2, 3, 5, kTileQueries}) {
        std::vector<float> weights(kTileQueries * kScratchStride);
        for (int q = 0; q < query_count; ++q) {
          const std::vector<float> some = NormalFloats(row_count, 90 + q);
          std::copy(some.begin(), some.end(), weights.begin() + q * kScratchStride);
        }
        const std::int64_t stride = PaddedValueDim(dim);
        std::vector<double> sums(query_count * stride);
        SumValues(rows.view(), rows.panels(), {.begin = 0, .count = dim}, weights.data(),
                  query_count, sums.data());
        for (int q = 0; q < query_count; ++q) {
          for (std::int64_t i = 0; i < dim; ++i) {
            double expected = 0;
            for (std::int64_t r = 0; r < row_count; ++r) {
              expected += static_cast<double>(weights[q * kScratchStride + r]) * rows.value(r)[i];
            }
            ASSERT_NEAR(sums[q * stride + i], expected, 2e-6 * std::sqrt(row_count) + 1e-6)
                << "dim " << dim << " rows " << row_count << " query " << q;
          }
        }
      }
    }
  }
}

// The order that the header promises, whatever rows and components are summed at once.
TEST_P(SumValuesTest, SumsAreFormedInTheOrderOfRows) {
  constexpr std::int64_t kRows = 300;
  for (const std::int64_t dim : {16, 100, 192, 193, 400}) {
    const KeptRows rows({.key_dim = 1, .value_dim = dim}, kRows, 7);
    for (const int query_count : {1, 4, 7, kTileQueries}) {
      const std::vector<float> weights = NormalFloats(kTileQueries * kScratchStride, 90);
      const std::int64_t stride = PaddedValueDim(dim);
      std::vector<double> sums(query_count * stride, 0.5);
      SumValues(rows.view(), rows.panels(), {.begin = 0, .count = dim}, weights.data(), query_count,
                sums.data());
      for (int q = 0; q < query_count; ++q) {
        for (std::int64_t i = 0; i < dim; ++i) {
          double expected = 0.5;
          for (std::int64_t run = 0; run < kRows; run += kFloat32RunRows) {
            float sum = 0;
            for (std::int64_t r = run; r < std::min(run + kFloat32RunRows, kRows); ++r) {
              const float weight = weights[q * kScratchStride + r], value = rows.value(r)[i];
              sum = FusesMultiplyAdds() ? std::fma(weight, value, sum) : weight * value + sum;
            }
            expected += sum;
          }
          ASSERT_EQ(sums[q * stride + i], expected) << "dim " << dim << " query " << q;
        }
      }
    }
  }
}

TEST_P(SumValuesTest, Float64ValueSumsKeepWhatCancels) {
  for (const StorageType storage :
       {StorageType::kFloat32, StorageType::kBfloat16, StorageType::kInt8}) {
    for (const std::int64_t dim : {1, 15, 17, 100}) {
      for (const std::int64_t row_count : {1, 16, 17, 300}) {
        const KeptRows rows({.key_dim = 1, .value_dim = dim + 2, .storage = storage}, row_count, 7);
        std::vector<double> weights(kScratchStride, -std::numeric_limits<double>::infinity());
        for (std::int64_t r = 0; r < row_count; r += 1 + r % 3) {
          weights[r] = (r % 2 == 0 ? 1e9 : -1e9) + 0.1 * static_cast<double>(r);
        }
        std::vector<double> sums(PaddedValueDim(dim), 0.25);
        SumValuesFloat64(rows.view(), rows.panels(), {.begin = 1, .count = dim}, weights.data(),
                         sums.data());
        for (std::int64_t i = 0; i < dim; ++i) {
          double expected = 0.25, magnitude = 0;
          for (std::int64_t r = 0; r < row_count; ++r) {
            if (std::isinf(weights[r])) continue;
            expected += weights[r] * rows.value(r)[1 + i];
            magnitude += std::abs(weights[r] * rows.value(r)[1 + i]);
          }
          ASSERT_NEAR(sums[i], expected, 1e-13 * magnitude) << dim << " " << row_count;
        }
      }
    }
  }
}

// Rows of a block of 77 in no order, some of them twice.
std::vector<std::uint16_t> ScatteredRows(int count) {
  std::vector<std::uint16_t> rows;
  for (int i = 0; i < count; ++i)
    rows.push_back(static_cast<std::uint16_t>(i * 29 % 77 / (i % 2 + 1)));
  return rows;
}

TEST_P(SumValuesTest, ValuesOfSomeRowsAreAddedInFloat64) {
  for (const StorageType storage :
       {StorageType::kFloat32, StorageType::kBfloat16, StorageType::kInt8}) {
    for (const std::int64_t dim : {1, 15, 17, 64, 100}) {
      const KeptRows rows({.key_dim = 1, .value_dim = dim + 2, .storage = storage}, 77, 7);
      for (int count = 0; count <= 40; ++count) {
        const std::vector<std::uint16_t> some = ScatteredRows(count);
        std::vector<double> weights;
        for (int i = 0; i < count; ++i) weights.push_back((i % 2 == 0 ? 1e9 : -1e9) + 0.1 * i);
        std::vector<double> sums(PaddedValueDim(dim), 0.25);
        AddValues(rows.view(), {.begin = 1, .count = dim}, some, weights.data(), sums.data());
        for (std::int64_t i = 0; i < dim; ++i) {
          double expected = 0.25, magnitude = 0;
          for (int r = 0; r < count; ++r) {
            expected += weights[r] * rows.value(some[r])[1 + i];
            magnitude += std::abs(weights[r] * rows.value(some[r])[1 + i]);
          }
          ASSERT_NEAR(sums[i], expected, 1e-13 * magnitude) << dim << " " << count;
        }
      }
    }
  }
}

// Weights are float32 numbers, as softmax weights are, so that products are exact and the order of
// additions is all that could differ.
TEST_P(SumValuesTest, ValuesOfSomeRowsAreAddedOneAfterTheOther) {
  for (const StorageType storage :
       {StorageType::kFloat32, StorageType::kBfloat16, StorageType::kInt8}) {
    for (const std::int64_t dim : {1, 8, 21, 48}) {
      const KeptRows rows({.key_dim = 1, .value_dim = dim, .storage = storage}, 77, 7);
      const std::vector<float> of_rows = NormalFloats(40, 9, 1e3);
      const std::vector<double> weights(of_rows.begin(), of_rows.end());
      for (const int count : {1, 3, 4, 5, 11, 40}) {
        const std::vector<std::uint16_t> some = ScatteredRows(count);
        std::vector<double> sums(PaddedValueDim(dim), 1 / 3.0);
        AddValues(rows.view(), rows.value_dims(), some, weights.data(), sums.data());
        for (std::int64_t i = 0; i < dim; ++i) {
          double expected = 1 / 3.0;
          for (int r = 0; r < count; ++r) expected += weights[r] * rows.value(some[r])[i];
          ASSERT_EQ(std::bit_cast<std::uint64_t>(sums[i]), std::bit_cast<std::uint64_t>(expected))
              << dim << " " << count;
        }
      }
    }
  }
}

TEST_P(SumValuesTest, EqualWeightsOfEqualValuesDoNotDrift) {
  constexpr std::int64_t kRows = 1024;
  KeptRows rows({.key_dim = 1, .value_dim = 1}, kRows, 1);
  std::vector<float> panels(kRows * 2, 0.1f);
  BlockView view = rows.view();
  view.full_panels = reinterpret_cast<const std::byte*>(panels.data());
  std::vector<float> weights(kScratchStride, 0.7f);
  std::vector<double> sums(PaddedValueDim(1));
  SumValues(view, rows.panels(), {.begin = 0, .count = 1}, weights.data(), 1, sums.data());
  const double expected = kRows * static_cast<double>(0.7f) * 0.1f;
  EXPECT_NEAR(sums[0] / expected, 1, 5e-6);
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, SumValuesTest, EveryTarget(), TargetName);

}  // namespace
}  // namespace softlookup::kernels
