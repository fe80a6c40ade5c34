#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tests/core/properties/property_test.h"

namespace softlookup::properties {
namespace {

using RowPropertyTest = PropertyTest;

TEST_P(RowPropertyTest, AFilterCountsTheRowsThatItsDefinitionCounts) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    const std::int64_t row_count = RowCount(draw);
    const TaggedRows tags = RandomTags(draw, row_count);
    Create(shape);
    Append(draw, shape, Vectors(draw, row_count, shape), draw.Normal(row_count * shape.value_dim),
           {tags.ids, tags.labels});
    const RowFilter filter = RandomFilter(draw, tags);
    const std::vector<bool> expected = RowsOf(filter, tags);
    const LookupResult result = Lookup(Vectors(draw, 1, shape), shape, RandomOptions(draw), filter);
    for (const QueryWeights& weights : result.weights) {
      std::vector<bool> counted(row_count);
      for (const WeightedRow& row : weights.rows) {
        counted.at(row.position) = true;
        ASSERT_EQ(row.id, tags.ids[row.position]);
      }
      ASSERT_EQ(counted, expected);
    }
  });
}

TEST_P(RowPropertyTest, DeletingRowsEqualsExcludingThem) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    // Now and then few rows of a whole block stay.
    const bool most_go = draw.Chance(0.3);
    const std::int64_t row_count = most_go ? draw.Int(1024, 2300) : RowCount(draw);
    const TaggedRows tags = RandomTags(draw, row_count);
    const std::vector<float> values = draw.Normal(row_count * shape.value_dim);
    Create(shape);
    Append(draw, shape, Vectors(draw, row_count, shape), values, {tags.ids, tags.labels});
    const std::vector<float> queries = Vectors(draw, draw.Int(1, 4), shape);
    AttentionOptions options = RandomOptions(draw);
    options.mode = static_cast<Mode>(draw.Int(1, 3));
    options.top_k = draw.Chance(0.3) ? static_cast<std::uint32_t>(draw.Int(1, 8)) : 0;
    if (draw.Chance(0.3)) options.min_score = draw.Real(-1.5, 0.5);
    if (draw.Chance(0.3)) options.recency_decay = draw.Real(0.9, 1);
    if (draw.Chance(0.3)) {
      options.causal = true;
      options.causal_offset = draw.Int(0, row_count);
    }
    RowFilter gone = RandomFilter(draw, tags);
    if (most_go) {
      for (const std::int64_t row : draw.Permutation(row_count)) {
        gone.exclude_ids.push_back(tags.ids[row]);
      }
      gone.exclude_ids.resize(draw.Int(0, 400));
      if (gone.exclude_ids.empty()) gone.begin = 0;
    }
    if (gone.empty()) gone.ids = {tags.ids[draw.Int(0, row_count - 1)]};
    const std::vector<bool> is_gone = RowsOf(gone, tags);
    RowFilter filter = RandomFilter(draw, tags), rest = filter;
    std::uint64_t gone_count = 0;
    for (std::int64_t row = 0; row < row_count; ++row) {
      if (!is_gone[row]) continue;
      rest.exclude_ids.push_back(tags.ids[row]);
      ++gone_count;
    }
    const LookupResult expected = Lookup(queries, shape, options, rest);
    const MemoryState memory = Memory("average", {}, {});
    const auto deleted = engine_->DeleteRows("s", gone);
    ASSERT_THAT(deleted, IsOk());
    ASSERT_EQ(deleted->deleted_count, gone_count);
    ASSERT_EQ(engine_->GetStore("s")->live_row_count, row_count - gone_count);
    ASSERT_EQ(engine_->GetStore("s")->row_count, static_cast<std::uint64_t>(row_count));
    const LookupResult actual = Lookup(queries, shape, options, filter);
    ExpectSameValues(actual, expected, Scale(expected, values));
    ExpectSameStats(actual, expected);
    for (std::size_t i = 0; i < expected.weights.size(); ++i) {
      std::vector<std::uint64_t> a, e;
      for (const WeightedRow& row : actual.weights.at(i).rows) a.push_back(row.position);
      for (const WeightedRow& row : expected.weights[i].rows) e.push_back(row.position);
      ASSERT_EQ(a, e);
    }
    ASSERT_EQ(Memory("average", {}, {}).memory.value, memory.memory.value);
    ASSERT_EQ(engine_->DeleteRows("s", gone)->deleted_count, 0u);
  });
}

TEST_P(RowPropertyTest, ASnapshotFromBeforeADeleteOrReplaceStillShowsTheRows) {
  ForRandomCases([&](Draw& draw) {
    const Shape shape = RandomShape(draw);
    const std::int64_t row_count = RowCount(draw);
    const TaggedRows tags = RandomTags(draw, row_count);
    std::vector<float> keys = Vectors(draw, row_count, shape);
    std::vector<float> values = draw.Normal(row_count * shape.value_dim);
    Create(shape);
    Append(draw, shape, keys, values, {tags.ids, tags.labels});
    ReadBack(draw, keys, values);
    // Some rows may be gone from it already.
    std::vector<std::int64_t> shown;
    RowFilter earlier;
    const double earlier_share = draw.Chance(0.5) ? 0.3 : 0;
    for (std::int64_t row = 0; row < row_count; ++row) {
      if (draw.Chance(earlier_share)) {
        earlier.ids.push_back(tags.ids[row]);
      } else {
        shown.push_back(row);
      }
    }
    if (!earlier.ids.empty()) {
      ASSERT_THAT(engine_->DeleteRows("s", earlier), IsOk());
    }
    auto before = engine_->ReadRows("s", {});
    ASSERT_THAT(before, IsOk());
    // Part of it may have been read already.
    std::vector<Row> rows = (*before)->Next(draw.Int(1, row_count));

    std::set<std::uint64_t> gone(earlier.ids.begin(), earlier.ids.end());
    std::int64_t added = 0;
    const bool deletes = draw.Chance(0.6), replaces = !deletes || draw.Chance(0.5);
    if (deletes) {
      RowFilter filter;
      for (const std::uint64_t id : tags.ids) {
        if (draw.Chance(0.5)) filter.ids.push_back(id);
      }
      if (filter.ids.empty()) filter.ids.push_back(tags.ids[0]);
      ASSERT_THAT(engine_->DeleteRows("s", filter), IsOk());
      gone.insert(filter.ids.begin(), filter.ids.end());
    }
    if (replaces) {
      Tags again;
      for (const std::uint64_t id : tags.ids) {
        if (draw.Chance(0.3)) again.ids.push_back(id);
      }
      if (again.ids.empty()) again.ids.push_back(tags.ids[0]);
      added = static_cast<std::int64_t>(again.ids.size());
      Append(draw, shape, Vectors(draw, added, shape), draw.Normal(added * shape.value_dim), again,
             OnConflict::kReplace);
      gone.insert(again.ids.begin(), again.ids.end());
    }

    const std::vector<Row> more = ReadAll(**before, draw);
    rows.insert(rows.end(), more.begin(), more.end());
    ASSERT_EQ(rows.size(), shown.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i].position, static_cast<std::uint64_t>(shown[i]));
      ASSERT_EQ(rows[i].id, tags.ids[shown[i]]);
      ASSERT_EQ(rows[i].labels, tags.labels[shown[i]]);
      ASSERT_EQ(rows[i].key, Take(keys, shape.key_dim, {shown[i]}));
      ASSERT_EQ(rows[i].value, Take(values, shape.value_dim, {shown[i]}));
    }
    auto after = engine_->ReadRows("s", {});
    ASSERT_THAT(after, IsOk());
    ASSERT_GE((*after)->revision(), (*before)->revision());
    ASSERT_EQ((*after)->revision() > (*before)->revision(),
              added > 0 || gone.size() > earlier.ids.size());
    const std::vector<Row> left = ReadAll(**after, draw);
    ASSERT_EQ(static_cast<std::int64_t>(left.size()),
              row_count - static_cast<std::int64_t>(gone.size()) + added);
    for (const Row& row : left) {
      if (row.position >= static_cast<std::uint64_t>(row_count)) continue;
      ASSERT_FALSE(gone.contains(*row.id)) << "position " << row.position;
      ASSERT_EQ(row.key, Take(keys, shape.key_dim, {static_cast<std::int64_t>(row.position)}));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(EveryStorageTypeAndKernel, RowPropertyTest, EveryStorageTypeAndKernel(),
                         NameOf);

}  // namespace
}  // namespace softlookup::properties
