// Lookups whose rows are spread over ranges of positions, against one machine's: random stores,
// lookups and ranges.
#include "softlookup/partial_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/attend.h"
#include "core/base/error.h"
#include "core/engine/lookup_part.h"
#include "core/engine/lookup_task.h"
#include "core/engine/tile_unit.h"
#include "core/store/store_editor.h"
#include "tests/core/attention/merged_parts.h"
#include "tests/core/properties/property_test.h"

namespace softlookup::properties {
namespace {

// What the keys of a store are like.
enum class KeyKind { kNormal, kTies, kDominated, kExtreme };

class PartialLookupTest : public ::testing::TestWithParam<std::tuple<StorageType, Kernel>> {
 protected:
  // Makes a random store, some of whose rows are deleted or replaced.
  void MakeStore(Draw& draw) {
    shape_ = RandomShape(draw);
    std::int64_t row_count = RowCount(draw);
    if (draw.Chance(0.15)) {
      // A block of such wide rows has 64 to 256 of them.
      shape_.value_dim =
          shape_.num_heads * draw.Int(700 / shape_.num_heads, 1200 / shape_.num_heads);
      row_count = draw.Int(300, 1500);
    }
    kind_ = static_cast<KeyKind>(draw.Int(0, 3));
    keys_ = Vectors(draw, row_count, shape_);
    values_ = draw.Normal(row_count * shape_.value_dim);
    SpoilKeys(draw, row_count);
    tags_ = RandomTags(draw, row_count);
    store_.emplace(StoreConfig{
        .name = "s",
        .key_dim = shape_.key_dim,
        .value_dim = shape_.value_dim,
        .num_heads = shape_.num_heads,
        .storage_type = std::get<StorageType>(GetParam()),
        .memories = {
            {.name = "recent", .kind = MemoryKind::kDecayedSum, .decay = 0.9, .gate = {}}}});
    for (std::int64_t begin = 0; begin < row_count;) {
      const std::int64_t count = draw.Int(1, row_count - begin);
      Append(begin, count, tags_.ids);
      begin += count;
      if (draw.Chance(0.2)) Delete(draw);
    }
    if (draw.Chance(0.2)) {
      // Rows with new positions take the places of others.
      Append(0, draw.Int(1, std::min<std::int64_t>(row_count, 40)), tags_.ids);
    }
    if (draw.Chance(0.3)) Delete(draw);
    if (draw.Chance(0.3)) store_->Compact(0, snapshot().row_count());
  }

  const Snapshot& snapshot() const { return *store_->newest(); }

  // A random lookup of the newest snapshot. `queries` must outlive it.
  LookupRequest RandomRequest(Draw& draw, const std::vector<float>& queries) const {
    LookupRequest request{.store = "s", .queries = View(queries, shape_.key_dim)};
    AttentionOptions& options = request.options;
    options = RandomOptions(draw);
    const auto row_count = static_cast<std::int64_t>(snapshot().row_count());
    options.mode = static_cast<Mode>(draw.Int(1, 3));
    options.weights = static_cast<WeightsMode>(draw.Int(1, 3));
    options.top_weights = static_cast<std::uint32_t>(draw.Int(1, 30));
    if (draw.Chance(0.4)) options.top_k = static_cast<std::uint32_t>(draw.Int(1, row_count));
    if (draw.Chance(0.3)) options.min_score = draw.Real(-3, 1);
    if (draw.Chance(0.3)) options.recency_decay = draw.Real(0.9, 1);
    if (draw.Chance(0.3)) options.max_error = std::exp(draw.Real(-14, 0));
    if (draw.Chance(0.3)) {
      options.causal = true;
      options.causal_offset = static_cast<std::uint64_t>(draw.Int(0, row_count));
    }
    if (draw.Chance(0.5)) {
      request.filter = RandomFilter(draw, tags_);
    } else if (draw.Chance(0.5)) {
      request.filter.last = static_cast<std::uint64_t>(draw.Int(0, row_count));
    }
    request.source = static_cast<Source>(draw.Int(1, 3));
    if (request.source == Source::kMemory && draw.Coin()) request.memory = "recent";
    return request;
  }

  // Ranges of any sizes, empty ones included. With `whole_blocks`, they end where blocks do.
  std::vector<PositionRange> RandomRanges(Draw& draw, bool whole_blocks) const {
    const std::int64_t unit = whole_blocks ? snapshot().stored_blocks().block_rows() : 1;
    const auto row_count = static_cast<std::int64_t>(snapshot().row_count());
    std::vector<std::uint64_t> cuts;
    for (std::int64_t i = draw.Int(0, 7); i > 0; --i) {
      cuts.push_back(static_cast<std::uint64_t>(draw.Int(0, row_count / unit + 1) * unit));
    }
    std::ranges::sort(cuts);
    return RangesBetween(cuts);
  }

  absl::StatusOr<AttentionAnswer> OnOneMachine(const LookupRequest& request) {
    LookupTask task(context_);
    const absl::Status status = task.Select(request, store_->newest());
    if (!status.ok()) return status;
    return Attend(task.attention(), Pool(), cancel_);
  }

  LookupResult InParts(const LookupRequest& request, const std::vector<PositionRange>& ranges) {
    std::vector<std::unique_ptr<LookupTask>> tasks;
    std::vector<PartialLookup> parts;
    for (const PositionRange& range : ranges) {
      tasks.push_back(std::make_unique<LookupTask>(context_));
      EXPECT_THAT(tasks.back()->Select(request, store_->newest(), range), IsOk());
      parts.push_back(PartialLookupOf(*tasks.back(), range, MustAttend(tasks.back()->attention())));
    }
    absl::StatusOr<MergedLookup> merged =
        MergedLookup::Merge(std::move(parts), limits_.message_bytes_max, [] { return true; });
    EXPECT_THAT(merged, IsOk());
    if (!merged.ok()) return {};
    std::vector<RowSums> sums(ranges.size());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const RowSumsRequest& asked = merged->requests()[i];
      if (asked.empty()) continue;
      const absl::StatusOr<RowSums> found = SumRows(*tasks[i], asked, cancel_);
      EXPECT_THAT(found, IsOk());
      if (found.ok()) sums[i] = *found;
    }
    const absl::StatusOr<LookupResult> result = merged->Finish(sums, [] { return true; });
    EXPECT_THAT(result, IsOk());
    return result.ok() ? *result : LookupResult();
  }

  // The size that errors of an answer are relative to: the sum of the weights without their signs,
  // times the largest value component.
  MergeTolerance ToleranceOf(LookupRequest request) {
    request.options.weights = WeightsMode::kAll;
    const absl::StatusOr<AttentionAnswer> all = OnOneMachine(request);
    EXPECT_THAT(all, IsOk());
    MergeTolerance tolerance{.weight_size = 1};
    if (!all.ok()) return tolerance;
    for (const QueryWeights& weights : all->weights) {
      double sum = 0;
      for (const WeightedRow& row : weights.rows) sum += std::abs(row.weight);
      tolerance.weight_size = std::max(tolerance.weight_size, sum);
    }
    // A memory that is a sum can be larger than every value, but not ten times.
    tolerance.value_size = tolerance.weight_size * std::max(1.0, LargestMagnitude(values_)) * 10;
    return tolerance;
  }

  void ExpectIds(const LookupRequest& request, const LookupResult& result) {
    LookupTask task(context_);
    ASSERT_THAT(task.Select(request, store_->newest()), IsOk());
    for (const QueryWeights& weights : result.weights) {
      for (const WeightedRow& row : weights.rows) {
        const bool is_row =
            row.position >= task.attention().begin && row.position < task.attention().end;
        ASSERT_EQ(row.id, is_row ? snapshot().IdAt(row.position) : std::nullopt);
      }
    }
  }

  const std::shared_ptr<const Snapshot>& newest() const { return store_->newest(); }
  JobContext& context() { return context_; }
  const Shape& shape() const { return shape_; }
  std::string Description() const {
    return absl::StrCat("keys of kind ", static_cast<int>(kind_), ", ", snapshot().row_count(),
                        " rows of ", shape_.key_dim, " and ", shape_.value_dim, " in ",
                        shape_.num_heads, " heads, blocks of ",
                        snapshot().stored_blocks().block_rows());
  }

 private:
  void SpoilKeys(Draw& draw, std::int64_t row_count) {
    const std::int64_t dim = shape_.key_dim;
    const std::int64_t one = draw.Int(0, row_count - 1);
    switch (kind_) {
      case KeyKind::kNormal:
        return;
      case KeyKind::kTies:
        for (std::int64_t row = 3; row < row_count; ++row) {
          std::copy_n(&keys_[draw.Int(0, 2) * dim], dim, &keys_[row * dim]);
        }
        return;
      case KeyKind::kDominated:
        for (std::int64_t i = 0; i < dim; ++i) keys_[one * dim + i] *= 100;
        return;
      case KeyKind::kExtreme:
        for (float& key : keys_) key *= static_cast<float>(std::exp2(draw.Int(-60, 60)));
        for (float& value : values_) value *= static_cast<float>(std::exp2(draw.Int(-140, 120)));
        return;
    }
  }

  void Append(std::int64_t begin, std::int64_t count, const std::vector<std::uint64_t>& ids) {
    const auto size = static_cast<std::size_t>(count);
    ASSERT_THAT(
        store_->Append({.keys = {&keys_[begin * shape_.key_dim], count, shape_.key_dim},
                        .values = {&values_[begin * shape_.value_dim], count, shape_.value_dim},
                        .ids = absl::MakeConstSpan(ids).subspan(begin, size),
                        .row_labels = absl::MakeConstSpan(tags_.labels).subspan(begin, size),
                        .on_conflict = OnConflict::kReplace}),
        IsOk());
    store_->Commit();
  }

  void Delete(Draw& draw) {
    const auto row_count = static_cast<std::int64_t>(snapshot().row_count());
    RowFilter filter;
    if (draw.Coin()) filter.any_labels = {"a"};
    const std::int64_t begin = draw.Int(0, row_count);
    filter.begin = static_cast<std::uint64_t>(begin);
    filter.end = static_cast<std::uint64_t>(draw.Int(begin, row_count));
    ASSERT_THAT(store_->Delete(filter), IsOk());
    store_->Commit();
  }

  Limits limits_;
  ByteBudget budget_{0};
  JobContext context_{.limits = limits_,
                      .tiles = TileUnitOf(std::get<Kernel>(GetParam())),
                      .ranking = {limits_.ranking_bytes_max, budget_}};
  const CancelToken cancel_;
  Shape shape_;
  KeyKind kind_ = KeyKind::kNormal;
  std::vector<float> keys_, values_;
  TaggedRows tags_;
  std::optional<StoreEditor> store_;
};

TEST_P(PartialLookupTest, RangesAnswerAsOneMachineDoes) {
  const std::uint64_t first = FirstSeed();
  int compared = 0;
  for (int i = 0; i < kCases && !HasFailure(); ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    Draw draw(seed);
    MakeStore(draw);
    SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", seed, ": ", Description()));
    std::vector<float> queries = Vectors(draw, draw.Int(1, 4), shape());
    for (int lookup = 0; lookup < 4; ++lookup) {
      const LookupRequest request = RandomRequest(draw, queries);
      const absl::StatusOr<AttentionAnswer> expected = OnOneMachine(request);
      // A memory within a compacted block is gone.
      if (!expected.ok()) continue;
      ++compared;
      const bool whole_blocks = draw.Coin();
      const std::vector<PositionRange> ranges = RandomRanges(draw, whole_blocks);
      MergeTolerance tolerance = ToleranceOf(request);
      const LookupResult merged = InParts(request, ranges);
      // Where a range ends within a block, that block may be scanned by another arithmetic, within
      // the error that the lookup allows.
      if (!whole_blocks) {
        tolerance.relative =
            2 * std::max(kErrorBoundDefault, request.options.max_error.value_or(0));
      }
      ASSERT_NO_FATAL_FAILURE(ExpectSameAnswer(merged, *expected, tolerance));
      ASSERT_NO_FATAL_FAILURE(ExpectIds(request, merged));
      ASSERT_EQ(merged.revision, snapshot().revision());
      ASSERT_EQ(merged.row_count, snapshot().row_count());
      const LookupResult again = InParts(request, ranges);
      ASSERT_EQ(again.values, merged.values);
      // One range has the bits of one machine.
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(InParts(request, {{}}), *expected));
    }
  }
  EXPECT_GT(compared, kCases);
}

TEST_P(PartialLookupTest, SumsOfRowsThatTheLookupDoesNotHaveAreRefused) {
  Draw draw(FirstSeed());
  MakeStore(draw);
  const std::vector<float> queries = Vectors(draw, 1, shape());
  LookupTask task(context());
  const std::uint64_t rows = snapshot().row_count();
  ASSERT_THAT(task.Select({.queries = View(queries, shape().key_dim)}, newest(),
                          PositionRange{.begin = rows / 2}),
              IsOk());
  const auto reason_of = [&](std::vector<WeighedRow> of_head) {
    RowSumsRequest request;
    request.rows.resize(static_cast<std::size_t>(shape().num_heads));
    request.rows.back() = std::move(of_head);
    return ReasonOf(SumRows(task, request, CancelToken()).status());
  };
  EXPECT_EQ(reason_of({{.position = rows, .weight = 1}}), "POSITION_OUT_OF_RANGE");
  if (rows >= 2) {
    EXPECT_EQ(reason_of({{.position = rows / 2 - 1, .weight = 1}}), "POSITION_OUT_OF_RANGE");
  }
  EXPECT_EQ(reason_of({{.position = ~std::uint64_t{0}, .weight = 1}}), "POSITION_OUT_OF_RANGE");
  RowSumsRequest other_shape;
  other_shape.rows.resize(static_cast<std::size_t>(shape().num_heads) + 1);
  EXPECT_EQ(ReasonOf(SumRows(task, other_shape, CancelToken()).status()), "SHAPE_MISMATCH");
}

INSTANTIATE_TEST_SUITE_P(EveryStorageTypeAndKernel, PartialLookupTest, EveryStorageTypeAndKernel(),
                         NameOf);

}  // namespace
}  // namespace softlookup::properties
