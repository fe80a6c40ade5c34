// Random stores and lookups in them, of many kinds.
#ifndef SOFTLOOKUP_TESTS_CORE_PROPERTIES_LOOK_CASE_H_
#define SOFTLOOKUP_TESTS_CORE_PROPERTIES_LOOK_CASE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/score_pair.h"
#include "softlookup/engine.h"
#include "tests/core/properties/stored_rows.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::properties {

using ::softlookup::testing::Draw;
using ::softlookup::testing::NormalFloats;

inline constexpr std::int64_t kBlockRows = 1024;

// What the keys of a store are like.
enum class Keys {
  kNormal,
  kClusters,
  kDuplicates,  // Few different ones, which tie.
  kDominated,   // One has most of the weight.
  kConstant,    // All components of a key are equal.
  kSubnormal,   // Some keys or components are subnormal.
  kMixedNorms,  // Neighbours have norms of very different sizes.
  kWithZeros,   // Some are 0.
  kOrthogonal,  // To the query, up to rounding.
  kIntegers,    // Different ones tie.
  kSigns,       // Components of one size, which a sketch holds without an error.
  kOpposite,    // All products with the query are negative.
  kRuns,        // Clusters that arrive one after another.
};
inline constexpr const char* kKeysNames[] = {
    "normal",     "clusters",   "duplicates", "dominated", "constant", "subnormal", "mixed norms",
    "with zeros", "orthogonal", "integers",   "signs",     "opposite", "runs"};

// Returns normally distributed floats. To draw each of them anew would take most of the test's
// time, so they are a window of some that all cases share.
inline const float* Normals(Draw& draw, std::int64_t count) {
  constexpr std::int64_t kOffsets = 1 << 16;
  static const auto& pool = *new std::vector<float>(NormalFloats(kOffsets + 256, 1));
  EXPECT_LE(count, 256);
  return pool.data() + draw.Int(0, kOffsets - 1);
}

// Makes the keys of a store, and queries that go with them.
class VectorMaker {
 public:
  VectorMaker(Draw& draw, Keys kind, std::int64_t dim) : draw_(draw), kind_(kind), dim_(dim) {
    constexpr double kPowers[] = {0, 0, -0.25};
    scale_ = std::pow(static_cast<double>(dim), kPowers[draw.Int(0, 2)]);
    if (kind == Keys::kSigns) scale_ = std::exp2(draw.Int(-3, 1));
    some_ = draw.Coin() ? 0.02 : draw.Real(0.1, 0.97);
    is_uniform_ = draw.Coin();
    constexpr std::pair<double, double> kExponents[] = {
        {-58, 58}, {-20, 20}, {-6, 2}, {40, 58}, {57, 61}};
    exponents_ = kExponents[draw.Int(0, 4)];
    aim_ = Scaled(Normals(draw, dim), scale_);
    for (int i = 0; i < 16; ++i) centres_.push_back(Scaled(Normals(draw, dim), scale_));
    run_rows_ = draw.Int(100, 3000);
    // Most queries are near to one of the clusters.
    if (kind == Keys::kRuns) aim_ = centres_[1];
  }

  void AddKey(std::vector<float>& keys) {
    const float* normals = Normals(draw_, dim_);
    std::vector<float> key = Scaled(normals, scale_);
    switch (kind_) {
      case Keys::kNormal:
        if (is_uniform_) key = Scaled(normals, scale_ * std::exp(draw_.Real(-1, 1)));
        break;
      case Keys::kDominated:
        break;
      case Keys::kRuns:
      case Keys::kClusters: {
        const std::int64_t run = static_cast<std::int64_t>(keys.size()) / dim_ / run_rows_;
        const std::vector<float>& centre =
            centres_[kind_ == Keys::kRuns ? run % 16 : draw_.Int(0, 7)];
        for (std::int64_t i = 0; i < dim_; ++i) key[i] = centre[i] + 0.05f * key[i];
        break;
      }
      case Keys::kDuplicates:
        key = centres_[draw_.Int(0, 15)];
        break;
      case Keys::kConstant: {
        const double power = is_uniform_ ? 1 : std::exp2(draw_.Int(-2, 2));
        const double sign = !is_uniform_ && draw_.Coin() ? -1 : 1;
        key.assign(dim_, static_cast<float>(scale_ * power * sign));
        break;
      }
      case Keys::kSubnormal: {
        const bool is_all = draw_.Chance(some_);
        const bool is_parallel = draw_.Coin();
        for (std::int64_t i = 0; i < dim_; ++i) {
          if (is_all || (is_uniform_ && i % 3 == 0)) {
            const double size = is_parallel ? aim_[i] / scale_ : normals[i];
            key[i] = static_cast<float>(std::trunc(size * 2) * 0x1p-149);
          }
        }
        break;
      }
      case Keys::kMixedNorms:
        key = Scaled(normals, std::exp2(draw_.Real(exponents_.first, exponents_.second)) /
                                  std::sqrt(static_cast<double>(dim_)));
        break;
      case Keys::kWithZeros:
        if (draw_.Chance(some_)) key.assign(dim_, 0);
        break;
      case Keys::kOrthogonal:
        for (std::int64_t i = 0; i + 1 < dim_; i += 2) {
          const float factor = normals[i];
          key[i] = factor * aim_[i + 1];
          key[i + 1] = -factor * aim_[i];
        }
        if (dim_ % 2 != 0) key[dim_ - 1] = 0;
        break;
      case Keys::kIntegers:
        for (std::int64_t i = 0; i < dim_; ++i) key[i] = std::nearbyint(normals[i]);
        break;
      case Keys::kSigns:
        for (std::int64_t i = 0; i < dim_; ++i) {
          key[i] = std::copysign(static_cast<float>(scale_), normals[i]);
        }
        break;
      case Keys::kOpposite:
        for (std::int64_t i = 0; i < dim_; ++i) key[i] = 0.4f * key[i] - aim_[i];
        break;
    }
    keys.insert(keys.end(), key.begin(), key.end());
  }

  // Makes one of the keys so long that it has most of the weight of many queries.
  void Dominate(std::vector<float>& keys) {
    const std::int64_t row = draw_.Int(0, static_cast<std::int64_t>(keys.size()) / dim_ - 1);
    const std::vector<float> key = Scaled(aim_.data(), draw_.Real(1, 8));
    std::copy(key.begin(), key.end(), keys.begin() + row * dim_);
  }

  void AddQuery(const std::vector<float>& keys, std::vector<float>& queries) {
    const float* normals = Normals(draw_, dim_);
    const std::int64_t row = draw_.Int(0, static_cast<std::int64_t>(keys.size()) / dim_ - 1);
    std::vector<float> query(dim_);
    const double how = draw_.Real(0, 1);
    if (how < 0.02) {
      // The query is 0.
    } else if (kind_ == Keys::kIntegers) {
      for (std::int64_t i = 0; i < dim_; ++i) query[i] = std::nearbyint(normals[i]);
    } else if (kind_ == Keys::kSigns) {
      for (std::int64_t i = 0; i < dim_; ++i) query[i] = std::copysign(1.0f, normals[i]);
    } else if (how < 0.2) {
      query = Scaled(normals, scale_);
    } else if (how < 0.4) {
      for (std::int64_t i = 0; i < dim_; ++i) {
        query[i] = keys[row * dim_ + i] + static_cast<float>(0.3 * scale_) * normals[i];
      }
    } else if (how < 0.5) {
      std::copy_n(keys.begin() + row * dim_, dim_, query.begin());
    } else {
      const float noise = how < 0.7 ? 0 : 0.2f;
      for (std::int64_t i = 0; i < dim_; ++i) {
        query[i] = aim_[i] + noise * static_cast<float>(scale_) * normals[i];
      }
    }
    if (kind_ == Keys::kMixedNorms && how >= 0.02) {
      // Half of the time, the products with the longest keys are not much above 1.
      const double exponent = draw_.Coin() ? draw_.Real(-58, 58) : 6 - exponents_.second;
      query = Scaled(normals, std::exp2(exponent) / std::sqrt(static_cast<double>(dim_)));
    }
    if (draw_.Chance(0.03)) {
      const int largest = kind_ == Keys::kMixedNorms ? 50 : 110;
      query = Scaled(query.data(), std::exp2(draw_.Int(-120, largest)));
    }
    queries.insert(queries.end(), query.begin(), query.end());
  }

 private:
  std::vector<float> Scaled(const float* vector, double factor) const {
    std::vector<float> scaled(vector, vector + dim_);
    for (float& component : scaled) component *= static_cast<float>(factor);
    return scaled;
  }

  Draw& draw_;
  const Keys kind_;
  const std::int64_t dim_;
  double scale_ = 1;                     // Of the components of most keys.
  double some_ = 0;                      // The part of the keys that are 0 or subnormal.
  std::int64_t run_rows_ = 1;            // Rows of a cluster that arrive together.
  bool is_uniform_ = false;              // Which of two variants of its kind the store is.
  std::pair<double, double> exponents_;  // Of the lowest and highest norm, if norms are mixed.
  std::vector<float> aim_;               // What most queries are near to.
  std::vector<std::vector<float>> centres_;
};

// A lookup, and what its request points to.
struct RandomLookup {
  std::vector<float> queries;
  LookupRequest request;

  std::int64_t query_count() const { return request.queries.rows; }
};

// One random store and lookups in it.
class LookCase {
 public:
  explicit LookCase(std::uint64_t seed)
      : draw_(seed), kind_(static_cast<Keys>(draw_.Int(0, static_cast<int>(Keys::kRuns)))) {
    rows_.key_dim = draw_.Int(32, 100);
    // Rows of more than 128 components make smaller blocks.
    rows_.value_dim = draw_.Chance(0.05) ? 128 - rows_.key_dim + 1 : draw_.Int(1, 8);
    if (draw_.Chance(0.25)) rows_.storage = StorageType::kBfloat16;
    vectors_.emplace(draw_, kind_, rows_.key_dim);
    // Most stores have a tail.
    const std::int64_t row_count =
        draw_.Chance(0.7) ? draw_.Int(4096, 5200) : draw_.Int(5120, 9000);
    for (std::int64_t row = 0; row < row_count; ++row) vectors_->AddKey(rows_.keys);
    if (kind_ == Keys::kDominated) vectors_->Dominate(rows_.keys);
    vectors_->AddQuery(rows_.keys, first_query_);
    MakeValues(row_count);
    rows_.live.assign(row_count, true);
    if (draw_.Chance(0.4)) MakeTags(row_count);
    for (std::int64_t begin = 0; begin < row_count;) {
      const std::int64_t end = draw_.Chance(0.7) ? row_count : draw_.Int(begin + 1, row_count);
      writes_.push_back({.begin = begin, .end = end});
      if (draw_.Chance(0.2)) AddDelete(end);
      begin = end;
    }
    if (!rows_.ids.empty() && draw_.Chance(0.4)) AddReplacement();
    if (draw_.Chance(0.2)) AddDelete(rows_.count());
    if (draw_.Chance(0.5)) common_options_ = RandomOptions();
  }

  const StoredRows& rows() const { return rows_; }
  Draw& draw() { return draw_; }
  std::string Description() const {
    return absl::StrCat(kKeysNames[static_cast<int>(kind_)], ", ", rows_.count(), " rows of ",
                        rows_.key_dim, " and ", rows_.value_dim,
                        rows_.storage == StorageType::kFloat32 ? "" : ", BFLOAT16");
  }

  // Makes the store in an engine.
  void WriteTo(Engine& engine, const std::string& name) const {
    CreateStore(engine, name, rows_);
    for (const Write& write : writes_) {
      if (write.deletes) {
        ASSERT_THAT(engine.DeleteRows(name, *write.deletes), IsOk());
      } else {
        AppendRows(engine, name, rows_, write.begin, write.end);
      }
    }
  }

  // Makes the rows what the store keeps of them. Call this once the store is written everywhere.
  void ReadBack(Engine& engine, const std::string& name) {
    const auto reader = engine.ReadRows(name, {});
    ASSERT_THAT(reader, IsOk());
    std::int64_t live_count = 0;
    for (std::vector<Row> rows = (*reader)->Next(kBlockRows); !rows.empty();
         rows = (*reader)->Next(kBlockRows)) {
      for (const Row& row : rows) {
        const auto position = static_cast<std::int64_t>(row.position);
        ++live_count;
        ASSERT_TRUE(rows_.live.at(row.position));
        std::copy(row.key.begin(), row.key.end(), rows_.keys.begin() + position * rows_.key_dim);
        std::copy(row.value.begin(), row.value.end(),
                  rows_.values.begin() + position * rows_.value_dim);
      }
    }
    ASSERT_EQ(live_count, std::count(rows_.live.begin(), rows_.live.end(), true));
  }

  RandomLookup MakeLookup(const std::string& store) {
    constexpr std::int64_t kCounts[] = {1, 2, 4, 7, 8, 15, 16, 17, 20};
    RandomLookup lookup;
    // The first lookup has the query that some values go by.
    lookup.queries = std::exchange(first_query_, {});
    const std::int64_t count = kCounts[draw_.Int(0, 8)];
    while (static_cast<std::int64_t>(lookup.queries.size()) < count * rows_.key_dim) {
      vectors_->AddQuery(rows_.keys, lookup.queries);
    }
    LookupRequest& request = lookup.request;
    request.store = store;
    request.queries = {.data = lookup.queries.data(), .rows = count, .cols = rows_.key_dim};
    request.options = common_options_ && draw_.Chance(0.6) ? *common_options_ : RandomOptions();
    if (draw_.Chance(0.15)) request.options.min_score = RandomMinScore(request);
    if (draw_.Chance(0.3)) request.filter = RandomFilter();
    const bool is_plain = request.options.mode == Mode::kSoft && request.options.top_k == 0 &&
                          !request.options.min_score;
    if (is_plain && RangeOf(request.filter, rows_).first > 0 && draw_.Chance(0.3)) {
      request.source = Source::kRowsAndMemory;
    } else if (draw_.Chance(0.15)) {
      request.options.causal = true;
      request.options.causal_offset = draw_.Int(draw_.Chance(0.2) ? 0 : 4096, rows_.count());
    }
    return lookup;
  }

 private:
  // An append of the rows [begin, end), or a deletion.
  struct Write {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::optional<RowFilter> deletes;
  };

  void MakeValues(std::int64_t row_count) {
    enum { kNumbered, kFarApart, kRandom } how = static_cast<decltype(how)>(draw_.Int(0, 2));
    std::vector<double> products;  // Of the keys and the first query.
    for (std::int64_t row = 0; row < row_count; ++row) {
      const float* normals = Normals(draw_, rows_.value_dim);
      rows_.values.insert(rows_.values.end(), normals, normals + rows_.value_dim);
      // Tells the rows apart.
      if (how == kNumbered) *(rows_.values.end() - 1) = static_cast<float>(row - 4500) / 8192;
      double product = 0;
      for (std::int64_t i = 0; i < rows_.key_dim; ++i) {
        product += static_cast<double>(first_query_[i]) * rows_.key(row)[i];
      }
      products.push_back(product);
    }
    if (how == kFarApart) {
      // Rows that are left out and the others are as far apart as can be.
      std::vector<double> sorted = products;
      std::sort(sorted.begin(), sorted.end());
      const double best = sorted[sorted.size() * 49 / 50];
      for (std::size_t i = 0; i < rows_.values.size(); ++i) {
        rows_.values[i] = products[i / static_cast<std::size_t>(rows_.value_dim)] >= best ? 1 : -1;
      }
    }
    const double exponent = draw_.Chance(0.1) ? draw_.Real(-140, 110) : 0;
    for (float& component : rows_.values) component *= static_cast<float>(std::exp2(exponent));
  }

  void MakeTags(std::int64_t row_count) {
    for (std::int64_t row = 0; row < row_count; ++row) {
      rows_.ids.push_back(static_cast<std::uint64_t>(3 * row + 1));
      std::vector<std::string>& labels = rows_.labels.emplace_back();
      if (row % 3 != 0) labels.push_back(row % 3 == 1 ? "a" : "b");
      if (draw_.Chance(0.02)) labels.push_back("few");
    }
  }

  // Deletes some of the first `row_count` rows.
  void AddDelete(std::int64_t row_count) {
    RowFilter filter;
    // So many rows of a block that the rest of them is packed, or a few.
    const std::int64_t begin = draw_.Int(0, row_count - 1);
    const std::int64_t most = draw_.Coin() ? 60 : 2 * kBlockRows;
    filter.begin = static_cast<std::uint64_t>(begin);
    filter.end = static_cast<std::uint64_t>(draw_.Int(begin, std::min(begin + most, row_count)));
    if (!rows_.labels.empty() && draw_.Coin()) filter.no_labels = {draw_.Coin() ? "few" : "a"};
    for (std::uint64_t row = *filter.begin; row < *filter.end; ++row) {
      if (PassesByTags(filter, rows_, row)) rows_.live[row] = false;
    }
    writes_.push_back({.deletes = filter});
  }

  // Appends rows with the ids of earlier ones.
  void AddReplacement() {
    const std::int64_t row_count = rows_.count();
    const std::int64_t from = draw_.Int(0, row_count - 1);
    const std::int64_t count = std::min(row_count - from, draw_.Int(1, 300));
    for (std::int64_t old = from; old < from + count; ++old) {
      const float* key = rows_.key(draw_.Int(0, row_count - 1));
      const std::vector<float> key_copy(key, key + rows_.key_dim);
      const std::vector<float> value_copy(rows_.value(old), rows_.value(old) + rows_.value_dim);
      rows_.keys.insert(rows_.keys.end(), key_copy.begin(), key_copy.end());
      rows_.values.insert(rows_.values.end(), value_copy.begin(), value_copy.end());
      rows_.ids.push_back(rows_.ids[old]);
      rows_.labels.push_back({"new"});
      rows_.live[old] = false;
      rows_.live.push_back(true);
    }
    writes_.push_back({.begin = row_count, .end = row_count + count});
  }

  AttentionOptions RandomOptions() {
    const double lowest = draw_.Chance(0.03) ? 1e-6 : 0.002;
    AttentionOptions options{.score = static_cast<Score>(draw_.Int(1, static_cast<int>(kScoreMax))),
                             .temperature = std::exp(draw_.Real(std::log(lowest), std::log(3.0)))};
    const double how = draw_.Real(0, 1);
    options.mode = how < 0.62   ? Mode::kSoft
                   : how < 0.76 ? Mode::kHard
                   : how < 0.80 ? Mode::kLinear
                                : Mode::kSoft;
    if (how >= 0.80) {
      options.top_k = static_cast<std::uint32_t>(draw_.Int(1, 300));
      if (draw_.Chance(0.1)) options.mode = Mode::kHard;
    }
    if (draw_.Chance(0.2)) {
      options.weights = draw_.Chance(0.8) ? WeightsMode::kTop : WeightsMode::kAll;
      options.top_weights = static_cast<std::uint32_t>(draw_.Int(1, draw_.Coin() ? 10 : 200));
    }
    constexpr double kErrors[] = {1e-4, 1e-3, 0.05, 1};
    if (draw_.Chance(0.6)) options.max_error = kErrors[draw_.Int(0, 3)];
    return options;
  }

  // Near the score that the first query has with the best of some rows.
  double RandomMinScore(const LookupRequest& request) {
    double best = -std::numeric_limits<double>::infinity();
    for (std::int64_t i = static_cast<std::int64_t>(std::exp(draw_.Real(0, 7))); i > 0; --i) {
      best = std::max(best, ScorePair(request.options.score, request.queries.row(0),
                                      rows_.key(draw_.Int(0, rows_.count() - 1)), rows_.key_dim));
    }
    return std::clamp(best - std::abs(best) * 1e-3, -1e100, 1e100);
  }

  RowFilter RandomFilter() {
    RowFilter filter;
    const std::int64_t row_count = rows_.count();
    if (draw_.Chance(0.5)) filter.begin = draw_.Int(0, draw_.Coin() ? 1500 : row_count - 4096);
    if (draw_.Chance(0.4)) {
      const std::int64_t least = draw_.Coin() ? 4096 : 1500;
      filter.end = std::max(filter.begin.value_or(0),
                            static_cast<std::uint64_t>(draw_.Int(least, row_count)));
    }
    if (draw_.Chance(0.2)) filter.last = draw_.Int(draw_.Coin() ? 4096 : 1, row_count);
    if (rows_.ids.empty()) return filter;
    if (draw_.Chance(0.3)) filter.any_labels = {draw_.Chance(0.7) ? "a" : "few", "new"};
    if (draw_.Chance(0.3)) filter.no_labels = {draw_.Coin() ? "b" : "never"};
    if (draw_.Chance(0.3)) filter.exclude_ids = {rows_.ids[draw_.Int(0, row_count - 1)], 4};
    return filter;
  }

  Draw draw_;
  const Keys kind_;
  StoredRows rows_;
  std::optional<VectorMaker> vectors_;
  std::vector<float> first_query_;
  std::vector<Write> writes_;
  std::optional<AttentionOptions> common_options_;  // Of many of the lookups.
};

}  // namespace softlookup::properties

#endif  // SOFTLOOKUP_TESTS_CORE_PROPERTIES_LOOK_CASE_H_
