#include "core/attention/row_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "tests/core/attention/played_pass.h"
#include "tests/core/attention/test_rows.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;

bool GoOn() { return true; }

TEST(RowValuesTest, HasTheRowsThatTheTaskAttendsTo) {
  std::vector<float> components(3000, 1);
  TestRows rows(3000, 1, 1, components, components);
  std::vector<bool> allowed(3000, true);
  allowed[1500] = false;
  rows.Allow(allowed);
  const std::vector<float> query = {1};
  AttentionTask task = rows.Task(query, {});
  task.begin = 10;
  task.end = 2999;
  const RowValues values(task);
  for (const std::uint64_t position : {10, 1023, 1024, 1499, 1501, 2998}) {
    EXPECT_TRUE(values.Has(position)) << position;
  }
  for (const std::uint64_t position : {0, 9, 1500, 2999, 3000, 5000}) {
    EXPECT_FALSE(values.Has(position)) << position;
  }
  EXPECT_FALSE(values.Has(std::numeric_limits<std::uint64_t>::max()));
  task.blocks = task.blocks.subspan(1);
  EXPECT_FALSE(RowValues(task).Has(10)) << "its block is not there";
}

TEST(RowValuesTest, AMemoryIsARowAtItsPositionOutsideOfTheRows) {
  const std::vector<double> key(4), value = {1, 2, 3, 4};
  AttentionTask task = TaskOf({}, /*num_heads=*/2);
  task.begin = 100;
  task.memory = MemoryPair{.key = key.data(), .value = value.data(), .position = 99};
  const RowValues values(task);
  EXPECT_TRUE(values.Has(99));
  EXPECT_FALSE(values.Has(98));
  const std::vector<WeighedRow> rows = {{.position = 99, .weight = 10},
                                        {.position = 2000, .weight = -1}};
  EXPECT_THAT(values.SumOf(0, rows, GoOn), ElementsAre(10 - 20000, 20 - 20001));
  EXPECT_THAT(values.SumOf(1, rows, GoOn), ElementsAre(30 - 20002, 40 - 20003));
  EXPECT_THAT(values.SumOf(1, {}, GoOn), ElementsAre(0, 0));
}

// A position without a row, as a compaction leaves it.
TEST(RowValuesTest, DroppedRowsAreNotThere) {
  AttentionTask task = TaskOf({});
  const std::vector<std::uint16_t> offsets = {0, 5, 9};
  PositionedBlock block = task.blocks[0];
  block.view.row_count = 3;
  block.row_offsets = offsets.data();
  task.blocks = {&block, 1};
  const RowValues values(task);
  for (const std::uint64_t position : {0, 5, 9}) EXPECT_TRUE(values.Has(position));
  for (const std::uint64_t position : {1, 4, 6, 10, 1023}) EXPECT_FALSE(values.Has(position));
  const std::vector<WeighedRow> last = {{.position = 9, .weight = 1}};
  EXPECT_EQ(values.SumOf(0, last, GoOn)[0], KnownValue(2, 0));
}

}  // namespace
}  // namespace softlookup
