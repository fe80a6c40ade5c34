// Stores that lose their deleted rows: what is answered stays the same, bit for bit, before and
// after, and when the directory is opened again.
#include "core/engine/compactor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "softlookup/engine.h"
#include "tests/core/engine/compaction_checks.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AllRowsIn;
using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::CompactNow;
using ::softlookup::testing::ExpectSameAnswers;
using ::softlookup::testing::ExpectSameRows;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::LookupAndWait;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::StatusIs;
using ::softlookup::testing::TemporaryDirectory;

// Rows of a block of the stores here, which are narrow.
constexpr std::uint64_t kBlock = 1024;

// An engine with a directory, and a store "s" in it.
class CompactionTest : public ::testing::Test {
 protected:
  CompactionTest() { Open(); }

  void Open() {
    engine_ = nullptr;
    auto engine = Engine::Open({.limits = limits_, .thread_count = 2}, directory_.path() + "/data",
                               [](const absl::Status& damage) { ADD_FAILURE() << damage; });
    ASSERT_THAT(engine, IsOk());
    engine_ = *std::move(engine);
  }
  // Makes "s" with `count` rows, in appends of `append_rows`. Row j has the id j and a label.
  void Fill(StoreConfig config, std::int64_t count, std::int64_t append_rows = 4000) {
    config.name = "s";
    ASSERT_THAT(engine_->CreateStore(config), IsOk());
    for (std::int64_t first = 0; first < count; first += append_rows) {
      ASSERT_THAT(Append(first, std::min(append_rows, count - first)), IsOk());
    }
  }
  absl::StatusOr<AppendResult> Append(std::int64_t first_id, std::int64_t count,
                                      OnConflict on_conflict = OnConflict::kFail) {
    const StoreConfig config = engine_->GetStore("s")->config;
    const auto seed = static_cast<std::uint64_t>(first_id);
    const std::vector<float> keys = NormalFloats(count * config.key_dim, seed + 1);
    const std::vector<float> values = NormalFloats(count * config.value_dim, seed + 2);
    std::vector<std::uint64_t> ids(count);
    for (std::int64_t i = 0; i < count; ++i) ids[i] = static_cast<std::uint64_t>(first_id + i);
    const std::vector<std::vector<std::string>> labels(count, {absl::StrCat(first_id % 3)});
    return AppendAndWait(
        *engine_, {.store = "s",
                   .keys = {.data = keys.data(), .rows = count, .cols = config.key_dim},
                   .values = {.data = values.data(), .rows = count, .cols = config.value_dim},
                   .ids = ids,
                   .on_conflict = on_conflict,
                   .row_labels = labels,
                   .durable = false});
  }
  void Delete(std::uint64_t begin, std::uint64_t end) {
    ASSERT_THAT(engine_->DeleteRows("s", {.begin = begin, .end = end}), IsOk());
  }
  // Leaves each `part`-th row of [begin, end).
  void Thin(std::uint64_t begin, std::uint64_t end, std::uint64_t part) {
    RowFilter filter{.begin = begin, .end = end};
    for (std::uint64_t id = begin; id < end; ++id) {
      if (id % part == 0) filter.exclude_ids.push_back(id);
    }
    ASSERT_THAT(engine_->DeleteRows("s", filter), IsOk());
  }
  absl::StatusOr<LookupResult> Lookup(LookupRequest request) {
    const std::int64_t key_dim = engine_->GetStore("s")->config.key_dim;
    const std::vector<float> queries = NormalFloats(5 * key_dim, 77);
    request.store = "s";
    request.queries = {.data = queries.data(), .rows = 5, .cols = key_dim};
    return LookupAndWait(*engine_, request);
  }

  Limits limits_;
  const TemporaryDirectory directory_;
  std::unique_ptr<Engine> engine_;
};

// Six blocks and a part of one.
constexpr std::int64_t kRows = 6 * kBlock + 100;
const StoreConfig& NarrowConfig() {
  static const auto& config = *new StoreConfig{.key_dim = 4, .value_dim = 2};
  return config;
}

TEST_F(CompactionTest, IsRefusedWithoutConsentIfMemoriesEnd) {
  Fill(NarrowConfig(), kRows);
  Delete(10, 2 * kBlock);
  const StoreInfo before = *engine_->GetStore("s");
  const absl::Status refused = CompactNow(*engine_, "s", /*end_memories=*/false).status();
  EXPECT_EQ(ReasonOf(refused), "COMPACTION_ENDS_MEMORIES");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  const StoreInfo after = *engine_->GetStore("s");
  EXPECT_EQ(after.revision, before.revision);
  EXPECT_EQ(after.byte_size, before.byte_size);
  EXPECT_THAT(engine_->GetMemory("s", "", std::nullopt, 500), IsOk());
  // Not if there is nothing to drop.
  ASSERT_THAT(CompactNow(*engine_), IsOk());
  const auto nothing = CompactNow(*engine_, "s", /*end_memories=*/false);
  ASSERT_THAT(nothing, IsOk());
  EXPECT_EQ(nothing->block_count, 0u);
}

TEST_F(CompactionTest, SaysWhatItDropped) {
  Fill(NarrowConfig(), kRows);
  Delete(10, kBlock);                    // Keeps 10.
  Delete(kBlock, kBlock + 768);          // Keeps 256, a quarter.
  Delete(2 * kBlock, 2 * kBlock + 767);  // Keeps 257 rows, and all of them.
  Delete(3 * kBlock, 4 * kBlock);        // Keeps none.
  Delete(6 * kBlock, kRows);             // The last block.
  const StoreInfo before = *engine_->GetStore("s");
  const auto first = CompactNow(*engine_);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->block_count, 3u);
  EXPECT_EQ(first->dropped_rows, kBlock - 10 + 768 + kBlock);
  EXPECT_EQ(first->store.config.name, "s");
  EXPECT_EQ(first->store.row_count, before.row_count);
  EXPECT_EQ(first->store.live_row_count, before.live_row_count);
  EXPECT_GT(first->store.revision, before.revision);
  // A row has 6 components.
  EXPECT_LE(first->store.byte_size, before.byte_size - 3 * kBlock * 24);
  EXPECT_EQ(engine_->GetStore("s")->revision, first->store.revision);
  EXPECT_EQ(engine_->GetStore("s")->byte_size, first->store.byte_size);
  EXPECT_EQ(static_cast<std::uint64_t>(engine_->stats().store_bytes), first->store.byte_size);

  const auto second = CompactNow(*engine_);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->block_count, 0u);
  EXPECT_EQ(second->dropped_rows, 0u);
  EXPECT_EQ(second->store.revision, first->store.revision) << "nothing was written";

  // Of a compacted block, only what was deleted since is dropped.
  Delete(3, 5);
  const auto third = CompactNow(*engine_);
  ASSERT_THAT(third, IsOk());
  EXPECT_EQ(third->block_count, 1u);
  EXPECT_EQ(third->dropped_rows, 2u);
}

TEST_F(CompactionTest, ARefusedCallNamesTheStore) {
  EXPECT_THAT(CompactNow(*engine_, "none"), StatusIs(absl::StatusCode::kNotFound, "\"none\""));
  EXPECT_EQ(ReasonOf(CompactNow(*engine_, "none").status()), "STORE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(CompactNow(*engine_, "").status()), "INVALID_NAME");
  Fill(NarrowConfig(), 10);
  engine_ = nullptr;
  const auto loading = Engine::Open({}, directory_.path() + "/data");
  ASSERT_THAT(loading, IsOk());
  EXPECT_EQ(ReasonOf(CompactNow(**loading).status()), "LOADING");
}

TEST_F(CompactionTest, AStoreWithoutRowsHasNothingToDrop) {
  Fill(NarrowConfig(), 0);
  EXPECT_EQ(CompactNow(*engine_)->block_count, 0u);
  ASSERT_THAT(Append(0, 1000), IsOk());
  Delete(0, 1000);
  EXPECT_EQ(CompactNow(*engine_)->block_count, 0u);
  EXPECT_EQ(engine_->GetStore("s")->row_count, 1000u);
}

TEST_F(CompactionTest, MemoriesInsideACompactedBlockAreGoneAndOthersStay) {
  Fill(NarrowConfig(), kRows);
  Delete(10, 2 * kBlock - 10);
  std::map<std::uint64_t, std::vector<double>> before;
  const auto value_as_of = [&](std::uint64_t end) {
    const auto state = engine_->GetMemory("s", "", std::nullopt, end);
    return state.ok() ? std::vector<double>(state->memory.value.begin(), state->memory.value.end())
                      : std::vector<double>();
  };
  const std::vector<std::uint64_t> edges = {kBlock, 2 * kBlock, 2 * kBlock + 1, 5000,
                                            static_cast<std::uint64_t>(kRows)};
  for (const std::uint64_t end : edges) before[end] = value_as_of(end);
  ASSERT_THAT(CompactNow(*engine_), IsOk());
  for (int start = 0; start < 2; ++start) {
    for (const std::uint64_t end : edges) EXPECT_EQ(value_as_of(end), before[end]) << end;
    for (const std::uint64_t end : {std::uint64_t{1}, kBlock - 1, kBlock + 1, 2 * kBlock - 1}) {
      const absl::Status gone = engine_->GetMemory("s", "", std::nullopt, end).status();
      EXPECT_EQ(ReasonOf(gone), "ROWS_COMPACTED") << end;
      const std::uint64_t begin = end / kBlock * kBlock;
      EXPECT_THAT(gone, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 absl::StrCat(begin, " and ", begin + kBlock)));
      // So are windows that begin there, and lookups in memories as of there.
      EXPECT_EQ(ReasonOf(engine_->GetMemory("s", "", end, 3 * kBlock).status()), "ROWS_COMPACTED");
      EXPECT_EQ(ReasonOf(Lookup({.filter = {.end = end}, .source = Source::kMemory}).status()),
                "ROWS_COMPACTED");
      EXPECT_EQ(
          ReasonOf(Lookup({.filter = {.begin = end}, .source = Source::kRowsAndMemory}).status()),
          "ROWS_COMPACTED");
      // Rows alone need no memory.
      EXPECT_THAT(Lookup({.filter = {.begin = end}}), IsOk());
    }
    EXPECT_THAT(Lookup({.filter = {.end = kBlock}, .source = Source::kMemory}), IsOk());
    EXPECT_THAT(Lookup({.filter = {.begin = 2 * kBlock}, .source = Source::kRowsAndMemory}),
                IsOk());
    EXPECT_THAT(engine_->GetMemory("s", "", kBlock, 2 * kBlock), IsOk());
    Open();
  }
}

// The lookups of a store with many blocks: few live rows, many, none.
class CompactionBitsTest : public CompactionTest,
                           public ::testing::WithParamInterface<StorageType> {};

TEST_P(CompactionBitsTest, AnswersAreTheSameBeforeAndAfterAndWhenItIsOpenedAgain) {
  // Keys of 64 components have sketches, unless they are INT8 or have several heads.
  for (const std::int64_t heads : {1, 2}) {
    SCOPED_TRACE(heads);
    const std::int64_t count = 12 * static_cast<std::int64_t>(kBlock) + 300;
    Fill({.key_dim = 64,
          .value_dim = 4,
          .num_heads = heads,
          .temperature = 0.5,
          .storage_type = GetParam()},
         count, 1777);
    Thin(0, 3 * kBlock, 9);
    Delete(4 * kBlock, 5 * kBlock);
    Thin(6 * kBlock + 50, 9 * kBlock - 50, 4);
    Thin(10 * kBlock, 11 * kBlock, 2);
    std::vector<LookupRequest> requests;
    for (int score = 1; score <= static_cast<int>(kScoreMax); ++score) {
      for (const Mode mode : {Mode::kSoft, Mode::kHard, Mode::kLinear}) {
        LookupRequest request{.options = {.score = static_cast<Score>(score),
                                          .mode = mode,
                                          .weights = WeightsMode::kTop,
                                          .top_weights = 30}};
        requests.push_back(request);
        request.options.top_k = 20;
        requests.push_back(request);
        request.options.top_k = 0;
        request.filter = {.begin = 700, .end = 8 * kBlock + 13, .no_labels = {"1"}};
        requests.push_back(request);
      }
      requests.push_back({.options = {.score = static_cast<Score>(score),
                                      .recency_decay = 0.999,
                                      .causal = true,
                                      .causal_offset = 5000}});
      requests.push_back({.options = {.score = static_cast<Score>(score), .max_error = 0.01}});
    }
    std::vector<absl::StatusOr<LookupResult>> before;
    for (const LookupRequest& request : requests) before.push_back(Lookup(request));
    const std::vector<Row> rows = AllRowsIn(*engine_);
    const auto compacted = CompactNow(*engine_);
    ASSERT_THAT(compacted, IsOk());
    ASSERT_GE(compacted->block_count, 5u);
    for (int start = 0; start < 2; ++start) {
      SCOPED_TRACE(start == 0 ? "compacted" : "opened again");
      for (std::size_t i = 0; i < requests.size(); ++i) {
        SCOPED_TRACE(i);
        const auto after = Lookup(requests[i]);
        ASSERT_EQ(after.status(), before[i].status());
        if (after.ok()) {
          ASSERT_NO_FATAL_FAILURE(ExpectSameAnswers(*after, *before[i]));
        }
      }
      ASSERT_NO_FATAL_FAILURE(ExpectSameRows(AllRowsIn(*engine_), rows));
      ASSERT_NO_FATAL_FAILURE(Open());
    }
    ASSERT_THAT(engine_->DeleteStore("s"), IsOk());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CompactionBitsTest,
                         ::testing::Values(StorageType::kFloat32, StorageType::kBfloat16,
                                           StorageType::kInt8));

TEST_F(CompactionTest, RecordsOfAppendsThatSpanBlocksAreCut) {
  for (const std::int64_t append_rows : {1, 15, 100, 1023, 1024, 1025, 2500, 10'000}) {
    SCOPED_TRACE(append_rows);
    const std::int64_t count = append_rows == 1 ? 2100 : kRows;
    Fill(NarrowConfig(), count, append_rows);
    Thin(300, static_cast<std::uint64_t>(count) / 2, 5);
    const std::vector<Row> rows = AllRowsIn(*engine_);
    const auto compacted = CompactNow(*engine_);
    ASSERT_THAT(compacted, IsOk());
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_NO_FATAL_FAILURE(ExpectSameRows(AllRowsIn(*engine_), rows));
    // The same blocks, the second time around.
    EXPECT_EQ(CompactNow(*engine_)->block_count, 0u);
    EXPECT_EQ(engine_->GetStore("s")->revision, compacted->store.revision);
    Thin(0, static_cast<std::uint64_t>(count), 25);
    const std::vector<Row> fewer = AllRowsIn(*engine_);
    ASSERT_THAT(CompactNow(*engine_), IsOk());
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_NO_FATAL_FAILURE(ExpectSameRows(AllRowsIn(*engine_), fewer));
    ASSERT_THAT(engine_->DeleteStore("s"), IsOk());
  }
}

TEST_F(CompactionTest, RowsOfACompactedBlockAreReplacedAndDeletedLikeOthers) {
  Fill(NarrowConfig(), kRows);
  Thin(0, 4 * kBlock, 8);
  ASSERT_THAT(CompactNow(*engine_), IsOk());
  for (int start = 0; start < 2; ++start) {
    const std::int64_t taken = 1600 + 8 * start, free = 1601 + 8 * start;
    EXPECT_EQ(ReasonOf(Append(taken, 1).status()), "ROW_EXISTS");
    EXPECT_EQ(Append(taken, 1, OnConflict::kSkip)->appended_count, 0u);
    EXPECT_EQ(Append(free, 1)->appended_count, 1u);
    const std::uint64_t live = engine_->GetStore("s")->live_row_count;
    EXPECT_EQ(Append(taken, 1, OnConflict::kReplace)->appended_count, 1u);
    EXPECT_EQ(engine_->GetStore("s")->live_row_count, live);
    const auto id = static_cast<std::uint64_t>(taken);
    const std::vector<Row> replaced = AllRowsIn(*engine_, {.ids = {id}});
    ASSERT_EQ(replaced.size(), 1u);
    EXPECT_GE(replaced[0].position, static_cast<std::uint64_t>(kRows));
    EXPECT_EQ(engine_->DeleteRows("s", {.ids = {800, 801}})->deleted_count, start == 0 ? 1u : 0u);
    Open();
  }
  EXPECT_EQ(CompactNow(*engine_)->dropped_rows, 3u);
}

TEST_F(CompactionTest, ACancelledCallStopsAndLeavesTheStoreWhole) {
  Fill(NarrowConfig(), 40 * static_cast<std::int64_t>(kBlock), 5000);
  Thin(0, 39 * kBlock, 10);
  const std::vector<Row> rows = AllRowsIn(*engine_);
  CancelToken cancelled;
  cancelled.Cancel();
  const StoreInfo before = *engine_->GetStore("s");
  EXPECT_THAT(engine_->CompactStore({.store = "s", .end_memories = true}, cancelled),
              StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(engine_->GetStore("s")->revision, before.revision);
  const CancelToken late(absl::UnixEpoch());
  EXPECT_THAT(engine_->CompactStore({.store = "s", .end_memories = true}, late),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  // Cancelled at any moment.
  CancelToken soon;
  std::atomic<bool> ended{false};
  std::thread canceller([&] {
    while (!ended && engine_->GetStore("s")->revision == before.revision) {
      std::this_thread::yield();
    }
    soon.Cancel();
  });
  const auto stopped = engine_->CompactStore({.store = "s", .end_memories = true}, soon);
  ended = true;
  canceller.join();
  if (!stopped.ok()) {
    EXPECT_THAT(stopped, StatusIs(absl::StatusCode::kCancelled, ""));
  }
  ASSERT_NO_FATAL_FAILURE(ExpectSameRows(AllRowsIn(*engine_), rows));
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(ExpectSameRows(AllRowsIn(*engine_), rows));
  // The next call goes on.
  const auto rest = CompactNow(*engine_);
  ASSERT_THAT(rest, IsOk());
  EXPECT_LT(rest->block_count, 39u) << "the first one wrote something";
  ASSERT_NO_FATAL_FAILURE(ExpectSameRows(AllRowsIn(*engine_), rows));
  EXPECT_EQ(CompactNow(*engine_)->block_count, 0u);
}

TEST_F(CompactionTest, LookupsAndWritesGoOnMeanwhileAndASecondCallIsRefused) {
  Fill(NarrowConfig(), 30 * static_cast<std::int64_t>(kBlock), 5000);
  Thin(0, 29 * kBlock, 10);
  const LookupRequest request{.filter = {.end = 29 * kBlock}};
  const auto expected = Lookup(request);
  ASSERT_THAT(expected, IsOk());
  std::atomic<int> left{2};
  std::atomic<std::uint64_t> blocks{0};
  const auto compact = [&] {
    const auto result = CompactNow(*engine_);
    if (result.ok()) {
      blocks += result->block_count;
    } else {
      EXPECT_EQ(ReasonOf(result.status()), "COMPACTION_IN_PROGRESS") << result.status();
    }
    --left;
  };
  std::thread first(compact), second(compact);
  std::int64_t appended = 0;
  do {
    const auto answer = Lookup(request);
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->values, expected->values);
    EXPECT_THAT(Append(1'000'000 + 10 * appended++, 10), IsOk());
  } while (left > 0);
  first.join();
  second.join();
  EXPECT_EQ(blocks.load(), 29u);
  EXPECT_EQ(engine_->GetStore("s")->row_count, 30 * kBlock + 10 * appended);
  const std::vector<Row> rows = AllRowsIn(*engine_);
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(ExpectSameRows(AllRowsIn(*engine_), rows));
  EXPECT_EQ(Lookup(request)->values, expected->values);
}

TEST_F(CompactionTest, WhatIsFreedIsRoomForOtherRows) {
  limits_.ram_bytes_max = 2'000'000;
  Open();
  Fill(NarrowConfig(), 20 * static_cast<std::int64_t>(kBlock), 1000);
  std::int64_t first = 1'000'000;
  while (Append(first, 1000).ok()) first += 1000;
  EXPECT_EQ(ReasonOf(Append(first, 1000).status()), "MEMORY_LIMIT");
  Delete(0, 20 * kBlock);
  ASSERT_THAT(CompactNow(*engine_), IsOk()) << "a full memory does not refuse it";
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Append(first + 1000 * i, 1000), IsOk());
}

TEST_F(CompactionTest, ACopyAndAVerificationHaveTheCompactedBlocks) {
  Fill(NarrowConfig(), kRows, 700);
  Thin(0, 4 * kBlock, 6);
  ASSERT_THAT(CompactNow(*engine_), IsOk());
  Delete(100, 200);
  const std::vector<Row> rows = AllRowsIn(*engine_);
  const std::string copy = directory_.path() + "/copy";
  ASSERT_THAT(engine_->CopyTo(copy), IsOk());
  LoadObserver observer;
  EXPECT_THAT(Engine::Verify(copy, observer), IsOk());
  engine_ = nullptr;
  EXPECT_THAT(Engine::Verify(directory_.path() + "/data", observer), IsOk());
  const auto opened =
      Engine::Open({}, copy, [](const absl::Status& damage) { ADD_FAILURE() << damage; });
  ASSERT_THAT(opened, IsOk());
  ASSERT_NO_FATAL_FAILURE(ExpectSameRows(AllRowsIn(**opened), rows));
}

TEST(CompactionInMemoryTest, AnEngineWithoutADirectoryCompacts) {
  const auto engine = Engine::Create({});
  ASSERT_THAT(engine->CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}), IsOk());
  const std::vector<float> floats = NormalFloats(3000, 1);
  const MatrixView rows{.data = floats.data(), .rows = 3000, .cols = 1};
  ASSERT_THAT(AppendAndWait(*engine, {.store = "s", .keys = rows, .values = rows}), IsOk());
  ASSERT_THAT(engine->DeleteRows("s", {.begin = 3, .end = 2000}), IsOk());
  const std::vector<Row> before = AllRowsIn(*engine);
  const auto result = CompactNow(*engine);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->block_count, 2u);
  EXPECT_EQ(result->dropped_rows, 1997u);
  ASSERT_NO_FATAL_FAILURE(ExpectSameRows(AllRowsIn(*engine), before));
}

}  // namespace
}  // namespace softlookup
