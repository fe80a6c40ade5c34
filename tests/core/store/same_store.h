#ifndef SOFTLOOKUP_TESTS_CORE_STORE_SAME_STORE_H_
#define SOFTLOOKUP_TESTS_CORE_STORE_SAME_STORE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "core/base/error.h"
#include "core/store/snapshot.h"

namespace softlookup::testing {

// Both have the memories as of `position`, with the same bits, or neither has one.
inline void ExpectSameMemories(const Snapshot& actual, const Snapshot& expected,
                               std::uint64_t position) {
  for (std::size_t index = 0; index <= expected.config().memories.size(); ++index) {
    const auto a = actual.MemoryAsOf(position, index), e = expected.MemoryAsOf(position, index);
    ASSERT_EQ(ReasonOf(a.status()), ReasonOf(e.status())) << "as of " << position;
    if (!e.ok()) continue;
    const MemoryValue mine = (*a)->Read(), theirs = (*e)->Read();
    ASSERT_EQ(mine.weight, theirs.weight) << "as of " << position;
    ASSERT_EQ(mine.key, theirs.key) << "as of " << position;
    ASSERT_EQ(mine.value, theirs.value) << "as of " << position;
  }
}

// Both have the same rows with the same tags in the same blocks, which lookups read alike.
inline void ExpectSameBlock(const Snapshot& actual, const Snapshot& expected, std::int64_t index) {
  const StoredBlocks &blocks = actual.stored_blocks(), &others = expected.stored_blocks();
  ASSERT_EQ(blocks.IsCompacted(index), others.IsCompacted(index));
  const PositionedBlock a = blocks.LiveRowsOf(index), e = others.LiveRowsOf(index);
  ASSERT_EQ(a.first_position, e.first_position);
  ASSERT_EQ(a.position_count, e.position_count);
  ASSERT_EQ(a.sketch == nullptr, e.sketch == nullptr);
  ASSERT_EQ(a.view.row_count, e.view.row_count);
  ASSERT_EQ(a.view.key_magnitude, e.view.key_magnitude);
  ASSERT_EQ(a.view.value_magnitude, e.view.value_magnitude);
  for (std::int64_t head = 0; head < expected.config().num_heads; ++head) {
    ASSERT_EQ(a.view.key_norms_max[head], e.view.key_norms_max[head]);
  }
  for (std::int64_t row = 0; row < e.view.row_count; ++row) {
    ASSERT_EQ(a.MayCount(row), e.MayCount(row)) << row;
    const Row mine = actual.RowOf(a, row), theirs = expected.RowOf(e, row);
    ASSERT_EQ(mine.position, theirs.position);
    ASSERT_EQ(mine.key, theirs.key) << mine.position;
    ASSERT_EQ(mine.value, theirs.value) << mine.position;
    ASSERT_EQ(mine.id, theirs.id) << mine.position;
    ASSERT_EQ(mine.labels, theirs.labels) << mine.position;
  }
}

// Both show the same store: what lookups, readers and memories see, and which blocks are compacted.
inline void ExpectSameStore(const Snapshot& actual, const Snapshot& expected) {
  ASSERT_EQ(actual.revision(), expected.revision());
  ASSERT_EQ(actual.row_count(), expected.row_count());
  ASSERT_EQ(actual.live_row_count(), expected.live_row_count());
  const std::uint64_t row_count = expected.row_count();
  const auto block_rows = static_cast<std::uint64_t>(expected.stored_blocks().block_rows());
  for (std::uint64_t begin = 0; begin < row_count; begin += block_rows) {
    SCOPED_TRACE(begin / block_rows);
    ASSERT_NO_FATAL_FAILURE(
        ExpectSameBlock(actual, expected, static_cast<std::int64_t>(begin / block_rows)));
    for (const std::uint64_t position : {begin, begin + 1, begin + block_rows / 2}) {
      if (position > row_count) continue;
      ASSERT_NO_FATAL_FAILURE(ExpectSameMemories(actual, expected, position));
    }
  }
  ExpectSameMemories(actual, expected, row_count);
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_STORE_SAME_STORE_H_
