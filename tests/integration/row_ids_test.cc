// Rows with ids: what an append does when one is taken.
#include "tests/integration/integration_test.h"

namespace softlookup::testing {
namespace {

using ::testing::ElementsAre;

class RowIdsTest : public IntegrationTest {};

TEST_F(RowIdsTest, AnIdThatIsTakenFailsTheWholeAppend) {
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(10, 3, 1)), IsGrpcOk());
  for (const auto on_conflict : {v1::ON_CONFLICT_UNSPECIFIED, v1::ON_CONFLICT_FAIL}) {
    const grpc::Status status = Append(RowsWithIds(12, 3, 2, on_conflict));
    EXPECT_THAT(status, IsGrpcError(grpc::StatusCode::ALREADY_EXISTS, "row 0"));
    EXPECT_EQ(ReasonOf(status), "ROW_EXISTS");
    const v1::Store store = GetStore("s");
    EXPECT_EQ(store.row_count(), 3u);
    EXPECT_EQ(store.live_row_count(), 3u);
    EXPECT_EQ(store.revision(), 2u);
  }
  // None of the refused ids is taken.
  EXPECT_THAT(Append(RowsWithIds(13, 3, 2)), IsGrpcOk());
}

TEST_F(RowIdsTest, ReplaceDeletesTheOldRowsAndAppendsTheNew) {
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(10, 3, 1)), IsGrpcOk());
  v1::AppendResponse appended;
  ASSERT_THAT(Append(RowsWithIds(12, 2, 2, v1::ON_CONFLICT_REPLACE), &appended), IsGrpcOk());
  EXPECT_EQ(appended.first_position(), 3u);
  EXPECT_EQ(appended.appended_count(), 2u);
  EXPECT_EQ(appended.row_count(), 5u);
  EXPECT_EQ(appended.revision(), 3u);
  EXPECT_THAT(PositionsOf("s"), ElementsAre(0, 1, 3, 4));
  v1::RowFilter twelve;
  twelve.add_ids(12);
  const std::vector<v1::Row> rows = RowsOf("s", twelve);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].position(), 3u);
  EXPECT_THAT(Floats(rows[0].value()), ElementsAre(2));
  EXPECT_EQ(GetStore("s").live_row_count(), 4u);
  // Replaced once more it is the newest that goes.
  ASSERT_THAT(Append(RowsWithIds(12, 1, 3, v1::ON_CONFLICT_REPLACE)), IsGrpcOk());
  EXPECT_THAT(PositionsOf("s", twelve), ElementsAre(5));
  EXPECT_THAT(PositionsOf("s"), ElementsAre(0, 1, 4, 5));
}

TEST_F(RowIdsTest, SkipAppendsOnlyTheRowsWhoseIdsAreFree) {
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(10, 3, 1)), IsGrpcOk());
  v1::AppendResponse appended;
  ASSERT_THAT(Append(RowsWithIds(11, 4, 2, v1::ON_CONFLICT_SKIP), &appended), IsGrpcOk());
  EXPECT_EQ(appended.appended_count(), 2u);
  EXPECT_EQ(appended.first_position(), 3u);
  EXPECT_EQ(appended.row_count(), 5u);
  const std::vector<v1::Row> rows = RowsOf("s");
  ASSERT_EQ(rows.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(rows[i].id(), 10u + i);
    EXPECT_THAT(Floats(rows[i].key()), ElementsAre(10 + i));
    EXPECT_THAT(Floats(rows[i].value()), ElementsAre(i < 3 ? 1 : 2));
  }
  // The rows that were skipped are in no memory.
  v1::Memory memory;
  ASSERT_THAT(GetMemory("s", "", {}, {}, &memory), IsGrpcOk());
  EXPECT_EQ(memory.weight(), 5);
  EXPECT_NEAR(Doubles(memory.value())[0], (3 * 1 + 2 * 2) / 5.0, 1e-15);
  ASSERT_THAT(Append(RowsWithIds(10, 5, 3, v1::ON_CONFLICT_SKIP), &appended), IsGrpcOk());
  EXPECT_EQ(appended.appended_count(), 0u);
  EXPECT_EQ(appended.row_count(), 5u);
}

TEST_F(RowIdsTest, ADeletedRowsIdIsFreeAgain) {
  Create("s", 1, 1);
  ASSERT_THAT(Append(RowsWithIds(10, 3, 1)), IsGrpcOk());
  v1::RowFilter filter;
  filter.add_ids(11);
  v1::DeleteRowsResponse deleted;
  ASSERT_THAT(DeleteRows("s", filter, &deleted), IsGrpcOk());
  ASSERT_THAT(Append(RowsWithIds(11, 1, 2, v1::ON_CONFLICT_FAIL)), IsGrpcOk());
  EXPECT_THAT(PositionsOf("s", filter), ElementsAre(3));
}

}  // namespace
}  // namespace softlookup::testing
