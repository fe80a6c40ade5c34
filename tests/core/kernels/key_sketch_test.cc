// Sketches of keys on every instruction set of this machine, against plain loops in float64.
#include "core/kernels/key_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
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

using softlookup::testing::KeptRows;
using softlookup::testing::NormalFloats;

// |k - s c|.
double ErrorOf(const KeptRows& rows, const Sketch& sketch, std::int64_t row) {
  double square = 0;
  for (std::int64_t i = 0; i < sketch.view().key_dim; ++i) {
    const double rest = rows.key(row)[i] - sketch.scale(row) * sketch.code(row, i);
    square += rest * rest;
  }
  return std::sqrt(square);
}

class KeySketchTest : public TargetTest {};

void ExpectRightRow(const KeptRows& rows, const Sketch& sketch, std::int64_t row) {
  const std::int64_t dim = sketch.view().key_dim;
  for (std::int64_t i = 0; i < dim; ++i) {
    ASSERT_LE(std::abs(sketch.code(row, i)), kKeyCodeMax) << i;
  }
  for (std::int64_t i = dim; i < (dim + 3) / 4 * 4; ++i) ASSERT_EQ(sketch.code(row, i), 0) << i;
  const double norm = NormOf(rows.key(row), dim);
  ASSERT_NEAR(sketch.norm(row), norm, norm * 0x1p-24 * (1 + 1e-9) + 0x1p-150);
  const double error = ErrorOf(rows, sketch, row);
  ASSERT_GE(sketch.error(row), error);
  ASSERT_LE(sketch.error(row),
            error * 1.01 + norm * 0x1p-19 + 0x1p-61 * std::sqrt(static_cast<double>(dim)));
  // No code is more than half a unit off.
  const double rounded = sketch.scale(row) / 2 * std::sqrt(static_cast<double>(dim));
  ASSERT_LE(error, rounded * (1 + 1e-4) + 0x1p-113 * std::sqrt(static_cast<double>(dim)));
}

TEST_P(KeySketchTest, SketchesBoundTheirErrors) {
  for (const StorageType storage : {StorageType::kFloat32, StorageType::kBfloat16}) {
    for (const Fill fill : kFills) {
      for (const std::int64_t dim : {32, 33, 35, 64, 127, 130, 256, 257, 300}) {
        const KeptRows rows = RowsOf(fill, 53, dim, storage, static_cast<std::uint64_t>(dim));
        ASSERT_TRUE(KeysFitSketch(rows.view().key_magnitude)) << static_cast<int>(fill);
        const Sketch sketch(rows);
        ASSERT_EQ(sketch.view().panel_count, 3);
        ASSERT_EQ(sketch.view().slice_bytes(), SketchShape(dim).bytes());
        for (std::int64_t row = 0; row < 48; ++row) {
          SCOPED_TRACE(::testing::Message()
                       << "fill " << static_cast<int>(fill) << " dim " << dim << " row " << row
                       << " of " << static_cast<int>(storage));
          ASSERT_NO_FATAL_FAILURE(ExpectRightRow(rows, sketch, row));
        }
      }
    }
  }
}

// Every row has a slot of its own, in its panel's span. A lane has rows of one panel alone.
TEST(SketchSlotsTest, LanesBelongToPanels) {
  for (std::int64_t panel_count = 1; panel_count <= 64; ++panel_count) {
    const SketchView view{.panel_count = panel_count};
    std::vector<bool> is_taken(static_cast<std::size_t>(panel_count * kPanelRows));
    for (std::int64_t panel = 0; panel < panel_count; ++panel) {
      const std::int64_t begin = view.SpanOf(panel), span = view.SpanFrom(begin);
      ASSERT_LE(begin, panel);
      ASSERT_LT(panel, begin + span);
      ASSERT_LE(begin + span, panel_count);
      for (std::int64_t row = 0; row < kPanelRows; ++row) {
        const auto [slice, lane] = view.SlotsOf(panel).Of(row);
        ASSERT_GE(slice, begin);
        ASSERT_LT(slice, begin + span);
        ASSERT_EQ(lane % span, panel - begin);
        const auto slot = static_cast<std::size_t>(slice * kPanelRows + lane);
        ASSERT_FALSE(is_taken[slot]);
        is_taken[slot] = true;
      }
    }
  }
}

TEST_P(KeySketchTest, TermsAreDividedByNorms) {
  constexpr std::int64_t kRows = 7 * kPanelRows;
  const KeptRows rows = RowsOf(Fill::kMixed, kRows, 40, StorageType::kFloat32, 3);
  const Sketch sketch(rows);
  std::vector<float> scales(kRows), errors(kRows);
  const float norm_min = sketch.view().norm_max * 1e-3f;
  DivideByNorms(sketch.view(), norm_min, scales.data(), errors.data());
  int tiny_count = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto [slice, lane] = sketch.SlotOf(row);
    const auto slot = static_cast<std::size_t>(slice * kPanelRows + lane);
    const double norm = sketch.norm(row);
    tiny_count += norm < norm_min ? 1 : 0;
    if (norm < norm_min) {
      ASSERT_EQ(scales[slot], 0);
      ASSERT_EQ(errors[slot], norm > 0 ? 1 : 0);
    } else {
      ASSERT_NEAR(scales[slot], sketch.scale(row) / norm, sketch.scale(row) / norm * 0x1p-22);
      ASSERT_NEAR(errors[slot], sketch.error(row) / norm, sketch.error(row) / norm * 0x1p-22);
    }
  }
  EXPECT_GT(tiny_count, 0);
  EXPECT_LT(tiny_count, kRows);
}

TEST_P(KeySketchTest, SketchesKnowTheExtremesOfTheirRows) {
  for (const Fill fill : kFills) {
    const KeptRows rows = RowsOf(fill, 64, 50, StorageType::kFloat32, 3);
    const Sketch sketch(rows);
    double error_max = 0, relative_error_max = 0, norm_max = 0,
           norm_min = std::numeric_limits<float>::infinity();
    for (std::int64_t row = 0; row < 64; ++row) {
      error_max = std::max(error_max, sketch.error(row));
      norm_max = std::max(norm_max, sketch.norm(row));
      if (sketch.norm(row) == 0) continue;
      norm_min = std::min(norm_min, sketch.norm(row));
      relative_error_max = std::max(relative_error_max, sketch.error(row) / sketch.norm(row));
    }
    EXPECT_EQ(sketch.view().error_max, error_max) << static_cast<int>(fill);
    EXPECT_EQ(sketch.view().norm_max, norm_max) << static_cast<int>(fill);
    EXPECT_EQ(sketch.view().norm_min, norm_min) << static_cast<int>(fill);
    EXPECT_NEAR(sketch.view().relative_error_max, relative_error_max, relative_error_max * 0x1p-24)
        << static_cast<int>(fill);
  }
}

// The squares of the rests of all components but one are just below half a unit in the last place
// of the square of that one, or far below. A sum in float32 loses them all.
TEST_P(KeySketchTest, LongestKeysBoundTheirErrorsWhereFloat32LosesTheMost) {
  constexpr std::int64_t kDim = 65536;
  std::vector<float> keys(kPanelRows * kDim);
  for (std::int64_t r = 0; r < kPanelRows; ++r) {
    float* const key = keys.data() + r * kDim;
    const double rest = 0x1.0003p-7;
    std::fill_n(key, kDim, static_cast<float>(std::ldexp(rest * 0.9995, -12 - r / 2)));
    key[0] = 2;  // A code of 127. The half of a unit is a little more than 2^-7.
    key[1] = static_cast<float>(r % 2 == 0 ? rest : -rest);
  }
  const KeptRows rows({.key_dim = kDim, .value_dim = 1}, kPanelRows, keys,
                      NormalFloats(kPanelRows, 1));
  const Sketch sketch(rows);
  for (std::int64_t row = 0; row < kPanelRows; ++row) {
    SCOPED_TRACE(row);
    ASSERT_NO_FATAL_FAILURE(ExpectRightRow(rows, sketch, row));
  }
}

TEST_P(KeySketchTest, SketchesHaveTheSameBitsOnEveryTargetThatFuses) {
  if (!FusesMultiplyAdds()) GTEST_SKIP() << "rounds otherwise";
  for (const Fill fill : kFills) {
    for (const StorageType storage : {StorageType::kFloat32, StorageType::kBfloat16}) {
      const KeptRows rows = RowsOf(fill, 32, 99, storage, 3);
      hwy::SetSupportedTargetsForTest(0);  // The best there is.
      const Sketch expected(rows);
      hwy::SetSupportedTargetsForTest(GetParam());
      const Sketch sketch(rows);
      for (std::int64_t row = 0; row < 32; ++row) {
        ASSERT_EQ(sketch.error(row), expected.error(row)) << static_cast<int>(fill) << " " << row;
      }
      ASSERT_EQ(sketch.bytes(), expected.bytes()) << static_cast<int>(fill);
    }
  }
}

TEST(KeySketchRangeTest, LeavesOutWhatFloat32DoesNotHold) {
  EXPECT_TRUE(KeysFitSketch(1));
  EXPECT_TRUE(KeysFitSketch(0x1p60f));
  EXPECT_TRUE(KeysFitSketch(0x1p-60f));
  EXPECT_FALSE(KeysFitSketch(0x1.1p60f));
  EXPECT_FALSE(KeysFitSketch(0x1.fp-61f));
  EXPECT_FALSE(KeysFitSketch(0));
  EXPECT_FALSE(KeysFitSketch(std::numeric_limits<float>::infinity()));
  EXPECT_FALSE(KeysFitSketch(std::numeric_limits<float>::quiet_NaN()));
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, KeySketchTest, EveryTarget(), TargetName);

}  // namespace
}  // namespace softlookup::kernels
