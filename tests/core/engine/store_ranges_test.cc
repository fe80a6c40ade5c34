// The ranges of a store: which may be set, what is in them, and that they stay with the store.
#include "softlookup/store_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::StatusIs;
using ::softlookup::testing::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A row of 2 and 1 components has 1,024 rows in a block.
constexpr std::uint64_t kStep = 8 * 1'024;
constexpr std::uint64_t kRowBytes = 3 * 4;

StoreConfig ConfigOf(const std::string& name) {
  return {.name = name, .key_dim = 2, .value_dim = 1};
}

std::vector<StoreRange> TwoRanges() {
  return {{.begin = 0, .nodes = {"n1"}}, {.begin = kStep, .nodes = {"n2", "n3"}}};
}

std::vector<std::uint64_t> BeginsOf(const std::vector<StoreRange>& ranges) {
  std::vector<std::uint64_t> begins;
  for (const StoreRange& range : ranges) begins.push_back(range.begin);
  return begins;
}

StoreInfo StoreOf(std::uint64_t row_count) {
  return {.config = ConfigOf("s"), .row_count = row_count};
}

TEST(StoreRangesTest, AStepIsEightBlocks) {
  EXPECT_EQ(RangeStep(ConfigOf("s")), kStep);
  // 65,536 components of a key do not let a block have more than 16 rows.
  EXPECT_EQ(RangeStep({.name = "s", .key_dim = 65'536, .value_dim = 1}), 8 * 16u);
}

TEST(StoreRangesTest, RowsAreCutEquallyAndGoRoundTheNodes) {
  const auto ranges = EqualRanges(StoreOf(10 * kStep), 5, {"a", "b"});
  ASSERT_THAT(ranges, IsOk());
  EXPECT_THAT(BeginsOf(*ranges), ElementsAre(0, 2 * kStep, 4 * kStep, 6 * kStep, 8 * kStep));
  for (std::size_t i = 0; i < ranges->size(); ++i) {
    EXPECT_THAT((*ranges)[i].nodes, ElementsAre(i % 2 == 0 ? "a" : "b"));
  }
  EXPECT_THAT(*EqualRanges(StoreOf(10 * kStep), 1, {"a", "b"}), IsEmpty());
}

TEST(StoreRangesTest, EveryNumberOfRangesThatFitsIsTakenAndDiffersByAStepAtMost) {
  for (const std::uint64_t steps : {2, 3, 7, 64, 255, 256, 1'000'000}) {
    for (std::uint64_t count = 2; count <= std::min<std::uint64_t>(steps, 256); ++count) {
      // The last step has a single row.
      const StoreInfo store = StoreOf((steps - 1) * kStep + 1);
      const auto ranges = EqualRanges(store, count, {"a"});
      ASSERT_THAT(ranges, IsOk());
      ASSERT_EQ(ranges->size(), count);
      ASSERT_THAT(CheckStoreRanges("ranges", *ranges, store.config), IsOk());
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t end = i + 1 < count ? (*ranges)[i + 1].begin : steps * kStep;
        const std::uint64_t size = (end - (*ranges)[i].begin) / kStep;
        ASSERT_TRUE(size == steps / count || size == steps / count + 1) << steps << " " << count;
      }
    }
  }
}

TEST(StoreRangesTest, RowsThatHaveNodesKeepThem) {
  StoreInfo store = StoreOf(8 * kStep);
  store.config.ranges = {{.begin = 0, .nodes = {"a"}},
                         {.begin = kStep, .nodes = {"a"}},
                         {.begin = 3 * kStep, .nodes = {"c", "b"}}};
  const auto ranges = EqualRanges(store, 4, {"a", "b", "c"});
  ASSERT_THAT(ranges, IsOk());
  EXPECT_THAT(BeginsOf(*ranges), ElementsAre(0, 2 * kStep, 3 * kStep, 4 * kStep, 6 * kStep));
  for (const StoreRange& range : *ranges) {
    if (range.begin < 3 * kStep) {
      EXPECT_THAT(range.nodes, ElementsAre("a"));
    } else {
      EXPECT_THAT(range.nodes, ElementsAre("c", "b"));
    }
  }
  EXPECT_THAT(*EqualRanges(store, 1, {"a"}), IsEmpty());
}

TEST(StoreRangesTest, MoreRangesThanStepsAreRefused) {
  for (const std::uint64_t rows : {std::uint64_t{0}, std::uint64_t{1}, kStep}) {
    const auto ranges = EqualRanges(StoreOf(rows), 2, {"a"});
    EXPECT_THAT(ranges, StatusIs(absl::StatusCode::kInvalidArgument,
                                 absl::StrCat("range_count: ranges are cut in steps of 8192 rows, "
                                              "and the ",
                                              rows, " rows of the store have ")));
    EXPECT_EQ(ReasonOf(ranges.status()), "INVALID_OPTION");
  }
  EXPECT_THAT(EqualRanges(StoreOf(kStep + 1), 2, {"a"}), IsOk());
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{257}, ~std::uint64_t{0}}) {
    EXPECT_THAT(EqualRanges(StoreOf(1'000 * kStep), count, {"a"}),
                StatusIs(absl::StatusCode::kInvalidArgument, "range_count: must be in [1, 256]"));
  }
}

TEST(StoreRangesTest, ARangeIsFoundByItsBegin) {
  StoreInfo store = StoreOf(2 * kStep);
  EXPECT_THAT(WithNodes(store, 0, {"a"}),
              StatusIs(absl::StatusCode::kInvalidArgument, "begin: the store has no ranges"));
  store.config.ranges = TwoRanges();
  const auto moved = WithNodes(store, kStep, {"x"});
  ASSERT_THAT(moved, IsOk());
  EXPECT_EQ((*moved)[0], TwoRanges()[0]);
  EXPECT_EQ((*moved)[1], (StoreRange{.begin = kStep, .nodes = {"x"}}));
  EXPECT_THAT(WithNodes(store, 1, {"x"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                   "begin: no range of the store begins at 1"));
}

TEST(StoreRangesTest, AnErrorNamesFieldAndIndex) {
  const auto nodes = [](std::vector<std::string> names) {
    std::vector<StoreRange> ranges = TwoRanges();
    ranges[1].nodes = std::move(names);
    return ranges;
  };
  std::vector<StoreRange> many;
  for (std::uint64_t i = 0; i < 257; ++i) many.push_back({.begin = i * kStep, .nodes = {"n"}});
  struct Wrong {
    std::vector<StoreRange> ranges;
    std::string field;
    std::string message;
  };
  for (const Wrong& wrong : std::vector<Wrong>{
           {many, "r", "at most 256 ranges, not 257"},
           {{{.begin = kStep, .nodes = {"n"}}}, "r[0].begin", "must be 0, not 8192"},
           {{{.begin = 0, .nodes = {"n"}}, {.begin = kStep + 1, .nodes = {"n"}}},
            "r[1].begin",
            "must be a multiple of 8192, not 8193"},
           {{{.begin = 0, .nodes = {"n"}}, {.begin = 0, .nodes = {"n"}}},
            "r[1].begin",
            "must be above 0"},
           {nodes({}), "r[1].nodes", "must have 1 to 5 nodes, not 0"},
           {nodes({"1", "2", "3", "4", "5", "6"}), "r[1].nodes", "not 6"},
           {nodes({"a", "b c"}), "r[1].nodes[1]", "\"b c\" is not 1 to 64 letters"},
           {nodes({""}), "r[1].nodes[0]", "is not 1 to 64 letters"},
           {nodes({std::string(65, 'x')}), "r[1].nodes[0]", "is not 1 to 64 letters"},
           {nodes({"a", "b", "a"}), "r[1].nodes[2]", "node a stands twice"}}) {
    const absl::Status status = CheckStoreRanges("r", wrong.ranges, ConfigOf("s"));
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInvalidArgument, absl::StrCat(wrong.field, ": ")));
    EXPECT_THAT(status.message(), ::testing::HasSubstr(wrong.message));
    EXPECT_EQ(ReasonOf(status), "INVALID_OPTION");
    EXPECT_THAT(MetadataOf(status),
                ::testing::Contains(::testing::Pair(std::string("field"), wrong.field)));
  }
  many.pop_back();
  EXPECT_THAT(CheckStoreRanges("r", many, ConfigOf("s")), IsOk());
  EXPECT_THAT(
      CheckStoreRanges("r", nodes({"1", "2", "3", "4", std::string(64, 'x')}), ConfigOf("s")),
      IsOk());
  EXPECT_THAT(CheckStoreRanges("r", {}, ConfigOf("s")), IsOk());
}

// An engine on a disk, with the store "s".
class SetRangesTest : public ::testing::Test {
 protected:
  SetRangesTest() {
    Open();
    EXPECT_THAT(engine_->CreateStore(ConfigOf("s")), IsOk());
  }

  void Open() {
    engine_ = nullptr;
    auto engine = Engine::Open({.thread_count = 2}, Path("data"),
                               [](const absl::Status& damage) { ADD_FAILURE() << damage; });
    ASSERT_THAT(engine, IsOk());
    engine_ = *std::move(engine);
  }
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }
  void AppendRows(std::int64_t count) {
    const std::vector<float> components = NormalFloats(count * 3, 1);
    ASSERT_THAT(AppendAndWait(*engine_, {.store = "s",
                                         .keys = {components.data(), count, 2},
                                         .values = {components.data(), count, 1}}),
                IsOk());
  }
  std::vector<StoreRange> RangesOf(const std::string& name) {
    const auto store = engine_->GetStore(name);
    EXPECT_THAT(store, IsOk());
    return store.ok() ? store->config.ranges : std::vector<StoreRange>();
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(SetRangesTest, TheyAreARevisionAndStayWithTheStore) {
  AppendRows(100);
  const StoreInfo before = *engine_->GetStore("s");
  EXPECT_THAT(before.config.ranges, IsEmpty());
  const auto set = engine_->SetRanges("s", TwoRanges());
  ASSERT_THAT(set, IsOk());
  EXPECT_EQ(set->revision, before.revision + 1);
  EXPECT_EQ(set->row_count, 100u);
  ASSERT_EQ(set->ranges.size(), 2u);
  EXPECT_EQ(set->ranges[0].row_count, 100u);
  EXPECT_EQ(set->ranges[1].row_count, 0u);
  EXPECT_EQ(RangesOf("s"), TwoRanges());
  EXPECT_GT(engine_->GetStore("s")->byte_size, before.byte_size);

  Open();
  EXPECT_EQ(RangesOf("s"), TwoRanges());
  ASSERT_THAT(engine_->UpdateStore("s", {.temperature = 3}), IsOk());
  ASSERT_THAT(engine_->RenameStore({.name = "s", .new_name = "t"}), IsOk());
  EXPECT_EQ(RangesOf("t"), TwoRanges());
  Open();
  EXPECT_EQ(RangesOf("t"), TwoRanges());

  const std::uint64_t byte_size = engine_->GetStore("t")->byte_size;
  const auto whole = engine_->SetRanges("t", std::vector<StoreRange>());
  ASSERT_THAT(whole, IsOk());
  EXPECT_THAT(whole->ranges, IsEmpty());
  EXPECT_LT(engine_->GetStore("t")->byte_size, byte_size);
  Open();
  EXPECT_THAT(RangesOf("t"), IsEmpty());
}

TEST_F(SetRangesTest, ACompactionKeepsThemAndTheirRowsAreCounted) {
  AppendRows(static_cast<std::int64_t>(kStep) + 1'500);
  ASSERT_THAT(engine_->SetRanges("s", TwoRanges()), IsOk());
  // The first block is compacted, and the second range loses a row.
  RowFilter filter;
  filter.begin = 1;
  filter.end = 1'024;
  ASSERT_THAT(engine_->DeleteRows("s", filter), IsOk());
  filter.begin = kStep + 1'400;
  filter.end = kStep + 1'401;
  ASSERT_THAT(engine_->DeleteRows("s", filter), IsOk());
  ASSERT_THAT(engine_->CompactStore({.store = "s", .end_memories = true}, CancelToken()), IsOk());
  for (int time = 0; time < 2; ++time) {
    const auto info = engine_->GetRanges("s");
    ASSERT_THAT(info, IsOk());
    EXPECT_EQ(info->row_count, kStep + 1'500);
    EXPECT_EQ(info->revision, engine_->GetStore("s")->revision);
    ASSERT_EQ(info->ranges.size(), 2u);
    EXPECT_EQ(info->ranges[0].range, TwoRanges()[0]);
    EXPECT_EQ(info->ranges[0].row_count, kStep);
    EXPECT_EQ(info->ranges[0].live_row_count, kStep - 1'023);
    EXPECT_EQ(info->ranges[0].byte_size, (kStep - 1'023) * kRowBytes);
    EXPECT_EQ(info->ranges[1].range, TwoRanges()[1]);
    EXPECT_EQ(info->ranges[1].row_count, 1'500u);
    EXPECT_EQ(info->ranges[1].live_row_count, 1'499u);
    EXPECT_EQ(info->ranges[1].byte_size, 1'500 * kRowBytes);
    Open();
  }
}

TEST_F(SetRangesTest, APlanChangesNothing) {
  AppendRows(100);
  const StoreInfo before = *engine_->GetStore("s");
  const auto plan = [](const StoreInfo& store) -> absl::StatusOr<std::vector<StoreRange>> {
    EXPECT_EQ(store.row_count, 100u);
    return TwoRanges();
  };
  const auto planned = engine_->PlanRanges("s", plan);
  ASSERT_THAT(planned, IsOk());
  EXPECT_EQ(planned->revision, before.revision);
  EXPECT_EQ(planned->ranges.size(), 2u);
  EXPECT_EQ(engine_->GetStore("s")->revision, before.revision);
  EXPECT_THAT(RangesOf("s"), IsEmpty());
}

TEST_F(SetRangesTest, WhatIsWrongIsRefusedAndChangesNothing) {
  const std::uint64_t revision = engine_->GetStore("s")->revision;
  EXPECT_EQ(ReasonOf(engine_->SetRanges("none", TwoRanges()).status()), "STORE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(engine_->GetRanges("none").status()), "STORE_NOT_FOUND");
  const std::vector<StoreRange> wrong = {{.begin = 0, .nodes = {"n"}},
                                         {.begin = 5, .nodes = {"n"}}};
  EXPECT_THAT(engine_->SetRanges("s", wrong),
              StatusIs(absl::StatusCode::kInvalidArgument, "ranges[1].begin: "));
  const auto refuse = [](const StoreInfo&) -> absl::StatusOr<std::vector<StoreRange>> {
    return absl::AbortedError("no plan");
  };
  EXPECT_THAT(engine_->SetRanges("s", refuse), StatusIs(absl::StatusCode::kAborted, "no plan"));
  EXPECT_THAT(engine_->PlanRanges("s", refuse), StatusIs(absl::StatusCode::kAborted, "no plan"));
  StoreConfig config = ConfigOf("t");
  config.ranges = wrong;
  EXPECT_THAT(engine_->CreateStore(config),
              StatusIs(absl::StatusCode::kInvalidArgument, "store.ranges[1].begin: "));
  EXPECT_EQ(engine_->GetStore("s")->revision, revision);
  EXPECT_THAT(RangesOf("s"), IsEmpty());
}

TEST_F(SetRangesTest, AStoreOfABackupComesBackWithoutThemUnlessItKeepsThemAndADirectoryWithThem) {
  AppendRows(100);
  ASSERT_THAT(engine_->SetRanges("s", TwoRanges()), IsOk());
  ASSERT_THAT(engine_->CopyTo(Path("copy")), IsOk());
  const auto restored =
      engine_->RestoreStore({.directory = Path("copy"), .store = "s", .name = "t"}, CancelToken());
  ASSERT_THAT(restored, IsOk());
  EXPECT_THAT(restored->config.ranges, IsEmpty());
  EXPECT_EQ(restored->revision, engine_->GetStore("s")->revision);
  EXPECT_THAT(engine_->RestoreStore(
                  {.directory = Path("copy"), .store = "s", .name = "u", .keeps_ranges = true},
                  CancelToken()),
              IsOk());
  EXPECT_EQ(RangesOf("u"), TwoRanges());
  Open();
  EXPECT_THAT(RangesOf("t"), IsEmpty());
  EXPECT_EQ(RangesOf("u"), TwoRanges());
  EXPECT_EQ(RangesOf("s"), TwoRanges());
  const auto other = Engine::Open({.thread_count = 1}, Path("copy"),
                                  [](const absl::Status& damage) { ADD_FAILURE() << damage; });
  ASSERT_THAT(other, IsOk());
  EXPECT_EQ((*other)->GetStore("s")->config.ranges, TwoRanges());
}

}  // namespace
}  // namespace softlookup
