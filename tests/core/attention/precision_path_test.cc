// Which path a query takes through a block: the fast ones are taken where they keep the bound.
#include "core/attention/precision_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/kernels/int8_scores.h"

namespace softlookup {
namespace {

// A block of normally distributed components, and a query like its rows.
class PrecisionPathTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kDim = 128, kRows = 512;

  PrecisionPathTest() {
    block_.view = {.shape = {.key_dim = kDim, .value_dim = kDim},
                   .row_count = kRows,
                   .key_magnitude = 4,
                   .value_magnitude = 4,
                   .key_norms_max = &key_norm_};
    plan_.options = {.score = Score::kScaledDot, .mode = Mode::kSoft};
    plan_.key_dims = plan_.value_dims = {.begin = 0, .count = kDim};
    UseQuery(std::vector<float>(kDim, 1));
  }

  // The components must outlive their use.
  void UseQuery(std::vector<float> components) {
    components_ = std::move(components);
    double square = 0;
    for (const float component : components_) square += component * component;
    query_ = {
        .components = components_.data(),
        .magnitude = *std::max_element(components_.begin(), components_.end()),
        .norm = std::sqrt(square),
        .float32_errors = kernels::Float32Roundings(static_cast<std::int64_t>(components_.size()),
                                                    /*is_fused=*/true)
                              .ErrorNormsOf(components_.data()),
        .end = kRows};
  }

  PrecisionPath Path() const {
    return PrecisionPathFor(plan_, block_, query_, {.begin = 0, .end = kRows});
  }
  SumsBy Sums() const { return Path().sums; }
  void Keep(StorageType storage) { block_.view.shape.storage = storage; }

  float key_norm_ = 12;
  PositionedBlock block_;
  ScanPlan plan_;
  std::vector<float> components_;
  HeadQuery query_;
};

TEST_F(PrecisionPathTest, OrdinaryQueriesTakeFloat32) {
  EXPECT_EQ(
      Path(),
      (PrecisionPath{.sums = SumsBy::kFloat32Runs, .float32_sums_index = 1, .in_float32 = true}));
  plan_.options.score = Score::kSquaredEuclidean;
  plan_.options.temperature = 100;
  EXPECT_EQ(
      Path(),
      (PrecisionPath{.sums = SumsBy::kFloat32Runs, .float32_sums_index = 1, .in_float32 = true}));
}

// |q| |k| / 11.3 is 12.
TEST_F(PrecisionPathTest, ChainsAreAsLongAsTheBoundAllows) {
  const auto sums_at = [this](double temperature) {
    plan_.options.temperature = temperature;
    EXPECT_EQ(Sums(), SumsBy::kFloat32Runs) << temperature;
    return Path().float32_sums_index;
  };
  EXPECT_EQ(sums_at(4), 0u);
  EXPECT_EQ(sums_at(0.9), 1u);
  EXPECT_EQ(sums_at(0.75), 2u);
  EXPECT_EQ(sums_at(0.5), 3u);
  EXPECT_FALSE(Path().in_float32);  // Its runs are added in float64.
}

TEST_F(PrecisionPathTest, LargeLogitsTakeFloat64) {
  plan_.options.temperature = 0.25;  // Logits of up to 48.
  EXPECT_EQ(Sums(), SumsBy::kFloat64);
}

TEST_F(PrecisionPathTest, ScoresThatDecideTakeFloat64) {
  for (const StorageType storage : {StorageType::kFloat32, StorageType::kInt8}) {
    Keep(storage);
    const ScanPlan plan = plan_;
    plan_.options.mode = Mode::kHard;
    EXPECT_EQ(Sums(), SumsBy::kFloat64);
    plan_ = plan;
    plan_.options.top_k = 3;
    EXPECT_EQ(Sums(), SumsBy::kFloat64);
    plan_ = plan;
    plan_.options.min_score = 0;
    EXPECT_EQ(Sums(), SumsBy::kFloat64);
    plan_ = plan;
    plan_.options.score = Score::kCosine;
    EXPECT_EQ(Sums(), SumsBy::kFloat64);
    plan_ = plan;
    plan_.options.mode = Mode::kLinear;  // Its weights are the logits.
    EXPECT_EQ(Sums(), SumsBy::kFloat64);
    plan_ = plan;
  }
}

TEST_F(PrecisionPathTest, Int8KeysTakeIntegersWhereTheCpuCan) {
  if (!kernels::VnniIsUsable()) GTEST_SKIP() << "no AVX-512 VNNI here";
  Keep(StorageType::kInt8);
  EXPECT_EQ(Path(), (PrecisionPath{.sums = SumsBy::kInt8Dots, .in_float32 = true}));
  plan_.options.temperature = 0.2;  // Logits of up to 60.
  EXPECT_EQ(Path(), (PrecisionPath{.sums = SumsBy::kInt8Dots, .in_float32 = false}));
  plan_.options.temperature = 0.05;  // Of up to 240.
  EXPECT_EQ(Sums(), SumsBy::kFloat64);
}

TEST_F(PrecisionPathTest, Int8KeysTakeFloat32WhereIntegersDoNotPayOrFit) {
  Keep(StorageType::kInt8);
  const PositionedBlock block = block_;
  block_.view.row_count = 100;
  EXPECT_EQ(Sums(), SumsBy::kFloat32Runs);
  block_ = block;
  block_.view.key_magnitude = 0x1p60f;
  query_.magnitude = 0x1p-60f;
  EXPECT_EQ(Sums(), SumsBy::kFloat32Runs);
  block_ = block;
  query_.magnitude = 1;
  plan_.options.score = Score::kSquaredEuclidean;
  plan_.options.temperature = 100;
  EXPECT_EQ(Sums(), SumsBy::kFloat32Runs);
  plan_.options.score = Score::kDot;
  plan_.key_dims.count = 32;
  UseQuery(std::vector<float>(32, 0.1f));
  EXPECT_EQ(Sums(), SumsBy::kFloat32Runs);
}

}  // namespace
}  // namespace softlookup
