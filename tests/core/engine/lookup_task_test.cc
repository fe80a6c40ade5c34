#include "core/engine/lookup_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/store/store_editor.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;

// Lookups in a store of 4 rows, whose projection doubles a query.
class LookupTaskTest : public ::testing::Test {
 protected:
  LookupTaskTest() {
    const std::vector<float> rows = {1, 2, 3, 4};
    const MatrixView matrix{.data = rows.data(), .rows = 4, .cols = 1};
    const auto outcome = store_.Append({.keys = matrix, .values = matrix});
    EXPECT_THAT(outcome, IsOk());
  }

  static MatrixView One(const float& query) { return {.data = &query, .rows = 1, .cols = 1}; }

  const Limits limits_;
  ByteBudget budget_{0};
  JobContext context_{.limits = limits_, .ranking = {limits_.ranking_bytes_max, budget_}};
  StoreEditor store_{StoreConfig{.name = "s",
                                 .key_dim = 1,
                                 .value_dim = 1,
                                 .projection = std::make_shared<const Projection>(Projection{
                                     .input_dim = 1, .query = {2}, .key = {1}, .value = {1}})}};
  const float query_ = 3;
  const CancelToken cancel_;
};

TEST_F(LookupTaskTest, AttendsToTheRowsOfTheFilter) {
  LookupTask lookup(context_);
  EXPECT_EQ(lookup.snapshot(), nullptr);
  ASSERT_THAT(
      lookup.Select({.queries = One(query_), .filter = {.begin = 1, .end = 3}}, store_.newest()),
      IsOk());
  EXPECT_EQ(lookup.snapshot(), store_.newest().get());
  EXPECT_EQ(lookup.attention().begin, 1u);
  EXPECT_EQ(lookup.attention().end, 3u);
  EXPECT_FALSE(lookup.attention().memory.has_value());
  ASSERT_THAT(lookup.ProjectInputs(cancel_), IsOk());
  EXPECT_EQ(lookup.attention().queries.row(0)[0], 3) << "there are no inputs";
}

TEST_F(LookupTaskTest, AMemoryStandsForTheRowsBeforeTheFilter) {
  LookupTask lookup(context_);
  ASSERT_THAT(
      lookup.Select(
          {.queries = One(query_), .filter = {.begin = 2}, .source = Source::kRowsAndMemory},
          store_.newest()),
      IsOk());
  ASSERT_TRUE(lookup.attention().memory.has_value());
  EXPECT_EQ(lookup.attention().memory->multiplicity, 2);
  EXPECT_EQ(lookup.attention().memory->position, 1u);
  EXPECT_EQ(lookup.attention().memory->key[0], 1.5) << "the average of rows 0 and 1";
}

TEST_F(LookupTaskTest, APartHasItsPositionsOfTheWholeFilter) {
  struct Case {
    PositionRange part;
    std::uint64_t begin, end;
  };
  for (const Case& c : {Case{{.begin = 0, .end = 2}, 1, 2}, Case{{.begin = 2}, 2, 3},
                        Case{{.begin = 1, .end = 3}, 1, 3}}) {
    LookupTask lookup(context_);
    ASSERT_THAT(lookup.Select({.queries = One(query_), .filter = {.end = 3, .last = 2}},
                              store_.newest(), c.part),
                IsOk());
    const AttentionTask& task = lookup.attention();
    EXPECT_EQ(task.begin, c.begin);
    EXPECT_EQ(task.end, c.end);
    EXPECT_EQ(task.age_end, 3u) << "ages count from the end of the whole filter";
    ASSERT_TRUE(task.whole.has_value());
    EXPECT_EQ(task.whole->begin, 1u);
    EXPECT_EQ(task.whole->end, 3u);
    EXPECT_FALSE(task.whole->memory.has_value());
  }
  LookupTask behind(context_);
  ASSERT_THAT(behind.Select({.queries = One(query_), .filter = {.end = 2}}, store_.newest(),
                            PositionRange{.begin = 3}),
              IsOk());
  EXPECT_EQ(behind.attention().begin, behind.attention().end);
  EXPECT_EQ(behind.attention().row_count(), 0u);
}

TEST_F(LookupTaskTest, OnePartHasTheMemoryAndTheOthersKnowOfIt) {
  for (const std::uint64_t begin : {0, 1, 2}) {
    for (const Source source : {Source::kMemory, Source::kRowsAndMemory}) {
      LookupTask lookup(context_);
      const PositionRange part{.begin = begin, .end = begin + 1};
      ASSERT_THAT(lookup.Select(
                      {.queries = One(query_), .filter = {.begin = 2, .end = 3}, .source = source},
                      store_.newest(), part),
                  IsOk());
      const std::uint64_t position = source == Source::kMemory ? 2 : 1;
      EXPECT_EQ(lookup.attention().memory.has_value(), begin == position);
      EXPECT_EQ(
          lookup.attention().whole->memory,
          (MemoryRow{.position = position, .multiplicity = source == Source::kMemory ? 1.0 : 2.0}));
    }
  }
}

// A lookup that is refused still tells how many rows it was for.
TEST_F(LookupTaskTest, KeepsTheSnapshotThatItRefersToAfterAnError) {
  std::shared_ptr<const Snapshot> snapshot = store_.newest();
  const std::weak_ptr<const Snapshot> kept = snapshot;
  ASSERT_THAT(store_.Append({.keys = One(query_), .values = One(query_)}), IsOk());
  store_.Commit();
  LookupTask lookup(context_);
  EXPECT_FALSE(lookup
                   .Select({.queries = One(query_), .source = Source::kMemory, .memory = "nope"},
                           std::move(snapshot))
                   .ok());
  EXPECT_FALSE(kept.expired());
  EXPECT_EQ(lookup.attention().row_count(), 4u);
}

TEST_F(LookupTaskTest, InputsBecomeQueries) {
  LookupTask lookup(context_), plain(context_);
  ASSERT_THAT(plain.Select({.queries = One(query_)}, store_.newest()), IsOk());
  ASSERT_THAT(lookup.Select({.inputs = One(query_)}, store_.newest()), IsOk());
  EXPECT_EQ(lookup.query_count(), 1);
  EXPECT_EQ(lookup.attention().query_count(), 0) << "not yet";
  EXPECT_GT(lookup.cost(), plain.cost()) << "with the projection";
  ASSERT_THAT(lookup.ProjectInputs(cancel_), IsOk());
  EXPECT_EQ(lookup.attention().queries.row(0)[0], 6);
}

TEST_F(LookupTaskTest, ARequestThatDoesNotFitTheStoreIsRefused) {
  LookupTask lookup(context_);
  const absl::Status status =
      lookup.Select({.queries = {.data = &query_, .rows = 1, .cols = 2}}, store_.newest());
  EXPECT_EQ(ReasonOf(status), "SHAPE_MISMATCH");
}

TEST_F(LookupTaskTest, TheBytesToRankRowsAreTakenUntilTheyAreReleased) {
  LookupTask lookup(context_);
  ASSERT_THAT(lookup.Select({.queries = One(query_), .options = {.top_k = 2}}, store_.newest()),
              IsOk());
  EXPECT_GT(budget_.used_bytes(), 0);
  lookup.ReleaseRanking();
  EXPECT_EQ(budget_.used_bytes(), 0);
}

TEST_F(LookupTaskTest, SelectionCostsWhereIdsOrMemoriesAreLookedAt) {
  const Snapshot& snapshot = *store_.newest();
  const std::optional<PositionRange> whole;
  EXPECT_EQ(LookupTask::SelectCost({}, snapshot, whole), 0);
  EXPECT_EQ(LookupTask::SelectCost({.filter = {.begin = 1}}, snapshot, whole), 0);
  EXPECT_GT(LookupTask::SelectCost({.filter = {.ids = {7}}}, snapshot, whole), 0);
  EXPECT_GT(LookupTask::SelectCost({.source = Source::kMemory}, snapshot, whole), 0);
}

TEST_F(LookupTaskTest, APartCostsByItsOwnRows) {
  const Snapshot& snapshot = *store_.newest();
  const LookupRequest request = {.filter = {.ids = {7}}};
  const double whole = LookupTask::SelectCost(request, snapshot, std::nullopt);
  const PositionRange all = {.begin = 0, .end = snapshot.row_count()};
  EXPECT_EQ(LookupTask::SelectCost(request, snapshot, all), whole);
  EXPECT_LT(LookupTask::SelectCost(request, snapshot, PositionRange{.begin = 0, .end = 1}), whole);
}

}  // namespace
}  // namespace softlookup
