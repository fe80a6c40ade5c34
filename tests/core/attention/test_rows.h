#ifndef SOFTLOOKUP_TESTS_CORE_ATTENTION_TEST_ROWS_H_
#define SOFTLOOKUP_TESTS_CORE_ATTENTION_TEST_ROWS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/attention/attend.h"
#include "core/attention/reference.h"
#include "core/store/store_editor.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {

// Rows in a real store's blocks, and a task over them.
class TestRows {
 public:
  TestRows(std::int64_t row_count, std::int64_t key_dim, std::int64_t value_dim,
           std::vector<float> keys, std::vector<float> values,
           StorageType storage = StorageType::kFloat32)
      : keys_(std::move(keys)),
        values_(std::move(values)),
        // Bounds for as many heads as a task may ask for.
        store_({.name = "s",
                .key_dim = key_dim,
                .value_dim = value_dim,
                .num_heads = key_dim % 4 == 0 ? 4 : 1,
                .storage_type = storage}),
        snapshot_(store_
                      .Append({.keys = this->keys(row_count, key_dim),
                               .values = this->values(row_count, value_dim)})
                      ->snapshot),
        blocks_(snapshot_->BlocksOf(0, row_count)) {
    // Replaces the components by those that the store keeps, which are rounded.
    auto key = keys_.begin(), value = values_.begin();
    for (const PositionedBlock& block : blocks_) {
      for (std::int64_t r = 0; r < block.view.row_count; ++r) {
        const Row row = snapshot_->RowOf(block, r);
        key = std::copy(row.key.begin(), row.key.end(), key);
        value = std::copy(row.value.begin(), row.value.end(), value);
      }
    }
  }
  TestRows(std::int64_t row_count, std::int64_t key_dim, std::int64_t value_dim, std::uint64_t seed,
           double deviation = 1, StorageType storage = StorageType::kFloat32)
      : TestRows(row_count, key_dim, value_dim,
                 testing::NormalFloats(row_count * key_dim, seed, deviation),
                 testing::NormalFloats(row_count * value_dim, seed + 1, deviation), storage) {}

  // Only rows with allowed[j] count.
  void Allow(const std::vector<bool>& allowed) {
    for (PositionedBlock& block : blocks_) {
      std::vector<std::uint64_t>& mask = masks_.emplace_back(kernels::kBlockRowsMax / 64);
      for (std::int64_t r = 0; r < block.view.row_count; ++r) {
        if (allowed[block.first_position + r]) mask[r / 64] |= std::uint64_t{1} << (r % 64);
      }
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].row_mask = masks_[i].data();
  }

  // The task refers to `queries`.
  AttentionTask Task(std::vector<float>&& queries, const ResolvedOptions& options,
                     std::int64_t num_heads = 1) const = delete;
  AttentionTask Task(const std::vector<float>& queries, const ResolvedOptions& options,
                     std::int64_t num_heads = 1) const {
    const StoreConfig& config = snapshot_->config();
    const std::int64_t query_count = static_cast<std::int64_t>(queries.size()) / config.key_dim;
    return {.options = options,
            .queries = {.data = queries.data(), .rows = query_count, .cols = config.key_dim},
            .key_dim = config.key_dim,
            .value_dim = config.value_dim,
            .num_heads = num_heads,
            .blocks = blocks_,
            .begin = 0,
            .end = snapshot_->row_count(),
            .age_end = snapshot_->row_count(),
            .answer_bytes_max = std::int64_t{64} << 20};
  }

  // `allowed` as Allow has it.
  ReferenceAnswer Reference(const AttentionTask& task,
                            const std::vector<bool>& allowed = {}) const {
    return ReferenceAttend({.options = task.options,
                            .queries = task.queries,
                            .keys = keys(snapshot_->row_count(), task.key_dim),
                            .values = values(snapshot_->row_count(), task.value_dim),
                            .num_heads = task.num_heads,
                            .allowed = allowed,
                            .age_end = task.age_end});
  }

 private:
  MatrixView keys(std::int64_t rows, std::int64_t cols) const {
    return {.data = keys_.data(), .rows = rows, .cols = cols};
  }
  MatrixView values(std::int64_t rows, std::int64_t cols) const {
    return {.data = values_.data(), .rows = rows, .cols = cols};
  }

  std::vector<float> keys_;
  std::vector<float> values_;
  StoreEditor store_;
  std::shared_ptr<const Snapshot> snapshot_;
  Snapshot::Blocks blocks_;
  std::vector<std::vector<std::uint64_t>> masks_;
};

inline ForkJoinPool& Pool() {
  static ForkJoinPool& pool = *new ForkJoinPool(2, 16);
  return pool;
}

inline AttentionAnswer MustAttend(const AttentionTask& task, ForkJoinPool& pool = Pool()) {
  const CancelToken cancel;
  absl::StatusOr<AttentionAnswer> answer = Attend(task, pool, cancel);
  EXPECT_THAT(answer, testing::IsOk());
  return *std::move(answer);
}

// Weights listed with ALL, one a row.
inline std::vector<double> Dense(const QueryWeights& weights, std::int64_t row_count) {
  std::vector<double> dense(row_count);
  for (const WeightedRow& row : weights.rows) dense[row.position] = row.weight;
  return dense;
}

// Returns all that scans rows here: vectors, tiles in plain loops, and AMX if the machine has it.
inline const std::vector<std::optional<kernels::TileUnit>>& Units() {
  static const auto& units = *[] {
    auto* all = new std::vector<std::optional<kernels::TileUnit>>{std::nullopt,
                                                                  kernels::TileUnit::kPortable};
    if (kernels::AmxIsUsable()) all->push_back(kernels::TileUnit::kAmx);
    return all;
  }();
  return units;
}

// Returns those that may give different bits with these options. Tiles are used for SOFT weights of
// all rows alone.
inline std::vector<std::optional<kernels::TileUnit>> UnitsThatDiffer(
    const ResolvedOptions& options) {
  if (options.mode == Mode::kSoft && options.top_k == 0) return Units();
  return {std::nullopt};
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_TESTS_CORE_ATTENTION_TEST_ROWS_H_
