#include "core/engine/byte_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/engine/counted_stores.h"
#include "core/engine/table_writes.h"
#include "core/engine/writes.h"
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
using ::testing::Contains;
using ::testing::Pair;

TEST(ByteBudgetTest, WhatStoresTakeAndWhatIsReservedCountTogether) {
  ByteBudget budget(1000);
  budget.Add(600);
  EXPECT_THAT(budget.Check(400, 0), IsOk());
  EXPECT_EQ(ReasonOf(budget.Check(401, 0)), "MEMORY_LIMIT");
  EXPECT_EQ(RetryAfterOf(budget.Check(401, 0)), std::nullopt);
  {
    const ByteBudget::Reserved own(budget, 100), other(budget, 100);
    EXPECT_THAT(budget.Check(200, 100), IsOk());
    const absl::Status refused = budget.Check(201, 100);
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(MetadataOf(refused), Contains(Pair("limit", "1000")));
    EXPECT_THAT(MetadataOf(refused), Contains(Pair("bytes", "1001")));
    // There is room once the other has ended, but not for more than that.
    EXPECT_NE(RetryAfterOf(refused), std::nullopt);
    EXPECT_NE(RetryAfterOf(budget.Check(300, 100)), std::nullopt);
    EXPECT_EQ(RetryAfterOf(budget.Check(301, 100)), std::nullopt);
  }
  EXPECT_THAT(budget.Check(400, 0), IsOk());
  budget.Add(-600);
  EXPECT_THAT(budget.Check(1000, 0), IsOk());
}

TEST(ByteBudgetTest, WithoutALimitNothingIsRefused) {
  ByteBudget budget(0);
  budget.Add(std::int64_t{1} << 60);
  EXPECT_FALSE(budget.has_limit());
  EXPECT_THAT(budget.Check(std::int64_t{1} << 60, 0), IsOk());
}

// Writes as the committer takes them through, one step at a time.
class BudgetedWritesTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kLimit = 100'000;
  static constexpr std::int64_t kDim = 16;

  BudgetedWritesTest() : stores_(kLimit) {
    const std::unique_ptr<Write> create = Create("s");
    EXPECT_THAT(create->Stage(nullptr), IsOk());
    create->Publish();
    store_ = *stores_.table.Find("store", "s");
  }

  std::unique_ptr<Write> Create(const std::string& name) {
    return MakeCreateStore(
        stores_, ++number_, /*replay_count=*/0, {.name = name, .key_dim = kDim, .value_dim = kDim},
        [](auto) {}, 10, [](auto) {});
  }
  std::unique_ptr<Write> Append(std::int64_t rows, std::uint64_t first_id = 0) {
    RowsToAppend append{.keys = NormalFloats(rows * kDim, 1),
                        .values = NormalFloats(rows * kDim, 2)};
    for (std::int64_t row = 0; first_id > 0 && row < rows; ++row) {
      append.ids.push_back(first_id + static_cast<std::uint64_t>(row));
      append.row_labels.push_back({"label" + std::to_string(first_id + row)});
    }
    return MakeAppend(stores_, store_, std::move(append), [](auto) {});
  }
  std::int64_t StoreBytes() const {
    return static_cast<std::int64_t>(store_->snapshot()->byte_size());
  }

  CountedStores stores_;
  std::uint64_t number_ = 0;
  std::shared_ptr<Store> store_;
};

TEST_F(BudgetedWritesTest, ARefusedAppendLeavesThoseStagedBeforeItInItsGroup) {
  const auto first = Append(20, 1);
  ASSERT_THAT(first->Stage(nullptr), IsOk());
  const std::int64_t bytes = stores_.budget.store_bytes();
  EXPECT_EQ(ReasonOf(Append(900, 100)->Stage(nullptr)), "MEMORY_LIMIT");
  EXPECT_EQ(stores_.budget.store_bytes(), bytes);
  EXPECT_EQ(store_->editor().newest()->row_count(), 20u);
  const auto last = Append(20, 2000);
  ASSERT_THAT(last->Stage(nullptr), IsOk());
  first->Publish();
  last->Publish();
  EXPECT_EQ(stores_.budget.store_bytes(), StoreBytes());
  const Snapshot& snapshot = *store_->snapshot();
  EXPECT_EQ(snapshot.row_count(), 40u);
  EXPECT_EQ(snapshot.revision(), 3u);
  EXPECT_EQ(snapshot.TagsOf(39).id, 2019u);
  EXPECT_THAT(snapshot.TagsOf(20).labels, ::testing::ElementsAre("label2000"));
  // Nor do its ids stay taken, its labels known, and its rows remembered.
  EXPECT_EQ(snapshot.labels()->size(), 40u);
  EXPECT_EQ((*snapshot.MemoryAsOf(40, 0))->Read().key, store_->editor().ReadMemory(0).key);
  EXPECT_THAT(Append(1, 100)->Stage(nullptr), IsOk());
}

TEST_F(BudgetedWritesTest, WhatTheLogRefusesGivesBackAllThatItTook) {
  const std::int64_t before = stores_.budget.store_bytes();
  EXPECT_EQ(before, StoreBytes());
  const auto first = Append(50, 1), second = Append(50, 100), create = Create("t");
  for (const auto* write : {&first, &second, &create}) {
    ASSERT_THAT((*write)->Stage(nullptr), IsOk());
  }
  EXPECT_GT(stores_.budget.store_bytes(), before);
  for (const auto* write : {&first, &second, &create}) (*write)->Rollback();
  EXPECT_EQ(stores_.budget.store_bytes(), before);
  // The name is free again.
  EXPECT_THAT(Create("t")->Stage(nullptr), IsOk());
}

TEST_F(BudgetedWritesTest, TwoStoresOfOneNameInAGroupAreOne) {
  const auto first = Create("t"), second = Create("t");
  ASSERT_THAT(first->Stage(nullptr), IsOk());
  EXPECT_EQ(ReasonOf(second->Stage(nullptr)), "STORE_EXISTS");
  EXPECT_THAT(stores_.table.Find("store", "t"), StatusIs(absl::StatusCode::kNotFound, ""));
  first->Publish();
  EXPECT_THAT(stores_.table.Find("store", "t"), IsOk());
  EXPECT_EQ(ReasonOf(Create("t")->Stage(nullptr)), "STORE_EXISTS");
}

TEST_F(BudgetedWritesTest, NamesThatAreReservedCountAsStores) {
  std::vector<std::unique_ptr<Write>> creates;
  for (int i = 1; i < 10; ++i) {
    creates.push_back(Create("t" + std::to_string(i)));
    ASSERT_THAT(creates.back()->Stage(nullptr), IsOk());
  }
  EXPECT_EQ(ReasonOf(Create("u")->Stage(nullptr)), "TOO_MANY_STORES");
  creates.back()->Rollback();
  EXPECT_THAT(Create("u")->Stage(nullptr), IsOk());
}

TEST_F(BudgetedWritesTest, AnAppendThatWaitsCounts) {
  const auto small = Append(10);
  {
    const auto waiting = Append(800);  // 102 kB.
    const absl::Status refused = small->Stage(nullptr);
    EXPECT_EQ(ReasonOf(refused), "MEMORY_LIMIT");
    EXPECT_NE(RetryAfterOf(refused), std::nullopt);
  }
  EXPECT_THAT(small->Stage(nullptr), IsOk());
}

class MemoryLimitTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kLimit = 1 << 20;
  static constexpr std::int64_t kDim = 32;

  static EngineOptions WithLimit(std::int64_t limit) {
    return {.limits = {.ram_bytes_max = limit}, .thread_count = 2};
  }
  static std::unique_ptr<Engine> Open(const std::string& directory, std::int64_t limit) {
    return *Engine::Open(WithLimit(limit), directory,
                         [](const absl::Status& damage) { ADD_FAILURE() << damage.message(); });
  }
  static absl::Status Create(Engine& engine, const std::string& name) {
    return engine.CreateStore({.name = name, .key_dim = kDim, .value_dim = kDim}).status();
  }
  static absl::StatusOr<AppendResult> Append(Engine& engine, const std::string& store,
                                             std::int64_t rows, std::uint64_t sequence = 0) {
    const std::vector<float> components = NormalFloats(rows * kDim, 7);
    const MatrixView view{.data = components.data(), .rows = rows, .cols = kDim};
    return AppendAndWait(engine, {.store = store,
                                  .keys = view,
                                  .values = view,
                                  .writer = sequence == 0 ? "" : "w",
                                  .sequence = sequence});
  }
  // Appends until it is refused. Returns how many were not.
  static std::uint64_t Fill(Engine& engine, const std::string& store) {
    std::uint64_t sequence = 0;
    for (;;) {
      const absl::Status status = Append(engine, store, 10, sequence + 1).status();
      if (!status.ok()) {
        EXPECT_EQ(ReasonOf(status), "MEMORY_LIMIT");
        return sequence;
      }
      ++sequence;
    }
  }
  static std::int64_t BytesOfAll(Engine& engine) {
    std::int64_t bytes = 0;
    const ListResult list = *engine.ListStores("", "", 1000);
    for (const StoreInfo& info : list.stores) {
      bytes += static_cast<std::int64_t>(info.byte_size);
    }
    return bytes;
  }
};

TEST_F(MemoryLimitTest, AnAppendOverItChangesNothing) {
  constexpr std::int64_t kLimit = 8 << 20;  // Many blocks.
  const auto engine = Engine::Create(WithLimit(kLimit));
  ASSERT_THAT(Create(*engine, "a"), IsOk());
  ASSERT_THAT(Create(*engine, "b"), IsOk());
  ASSERT_THAT(Append(*engine, "b", 100), IsOk());
  const std::uint64_t appends = Fill(*engine, "a");
  EXPECT_GT(appends, 2000u);  // 2,560 bytes each.
  EXPECT_LE(BytesOfAll(*engine), kLimit);
  EXPECT_GT(BytesOfAll(*engine), kLimit * 9 / 10);

  const StoreInfo before = *engine->GetStore("a");
  const MemoryState memory = *engine->GetMemory("a", "", std::nullopt, std::nullopt);
  EXPECT_EQ(ReasonOf(Append(*engine, "a", 1000, appends + 1).status()), "MEMORY_LIMIT");
  EXPECT_EQ(ReasonOf(Append(*engine, "b", 1000).status()), "MEMORY_LIMIT");
  const StoreInfo after = *engine->GetStore("a");
  EXPECT_EQ(after.revision, before.revision);
  EXPECT_EQ(after.row_count, 10 * appends);
  EXPECT_EQ(after.byte_size, before.byte_size);
  EXPECT_EQ(engine->GetWriter("a", "w")->last_sequence, appends);
  EXPECT_EQ(engine->GetMemory("a", "", std::nullopt, std::nullopt)->memory.value,
            memory.memory.value);

  ASSERT_THAT(engine->DeleteStore("a"), IsOk());
  EXPECT_THAT(Append(*engine, "b", 1000), IsOk());
}

TEST_F(MemoryLimitTest, StoresAndProjectionsOverItAreRefused) {
  const auto engine = Engine::Create(WithLimit(kLimit));
  const auto projection = std::make_shared<Projection>();
  projection->input_dim = 8192;
  projection->query = projection->key = projection->value = NormalFloats(8192 * kDim, 1);
  StoreConfig config{.name = "a", .key_dim = kDim, .value_dim = kDim, .projection = projection};
  EXPECT_EQ(ReasonOf(engine->CreateStore(config).status()), "MEMORY_LIMIT");
  EXPECT_THAT(engine->GetStore("a"), StatusIs(absl::StatusCode::kNotFound, ""));
  ASSERT_THAT(Create(*engine, "a"), IsOk());
  EXPECT_EQ(ReasonOf(engine->UpdateStore("a", {.projection = projection}).status()),
            "MEMORY_LIMIT");
  EXPECT_EQ(engine->GetStore("a")->config.projection, nullptr);
  EXPECT_EQ(engine->GetStore("a")->revision, 1u);
  // Stores alone reach it, too.
  int count = 1;
  while (Create(*engine, std::to_string(count)).ok()) ++count;
  EXPECT_LE(BytesOfAll(*engine), kLimit);
  EXPECT_GT(BytesOfAll(*engine), kLimit - 4096);
}

TEST_F(MemoryLimitTest, WhatIsKeptIsLoadedBeyondItAndGrowsOnceThereIsRoom) {
  const TemporaryDirectory directory;
  {
    const auto engine = Open(directory.path(), 0);
    for (const char* name : {"a", "b"}) {
      ASSERT_THAT(Create(*engine, name), IsOk());
      ASSERT_THAT(Append(*engine, name, 3000, /*sequence=*/1), IsOk());
    }
  }
  const auto engine = Open(directory.path(), kLimit);
  EXPECT_EQ(engine->GetStore("a")->row_count, 3000u);
  EXPECT_EQ(ReasonOf(Append(*engine, "a", 1).status()), "MEMORY_LIMIT");
  EXPECT_EQ(ReasonOf(Create(*engine, "c")), "MEMORY_LIMIT");
  EXPECT_EQ(engine->GetStore("a")->revision, 2u);
  // What takes nothing, or rows away, is let through even now.
  const auto duplicate = Append(*engine, "a", 3000, /*sequence=*/1);
  ASSERT_THAT(duplicate, IsOk());
  EXPECT_TRUE(duplicate->duplicate);
  EXPECT_THAT(engine->UpdateStore("a", {.temperature = 2}), IsOk());
  const std::uint64_t byte_size = engine->GetStore("a")->byte_size;
  EXPECT_THAT(engine->DeleteRows("a", {.begin = 0, .end = 1}), IsOk());
  EXPECT_GT(engine->GetStore("a")->byte_size, byte_size);
  ASSERT_THAT(engine->DeleteStore("b"), IsOk());
  EXPECT_THAT(Append(*engine, "a", 1), IsOk());
}

TEST_F(MemoryLimitTest, NothingOfARefusedAppendIsOnTheDisk) {
  const TemporaryDirectory directory;
  std::uint64_t appends = 0;
  {
    const auto engine = Open(directory.path(), kLimit);
    ASSERT_THAT(Create(*engine, "a"), IsOk());
    appends = Fill(*engine, "a");
  }
  const auto engine = Open(directory.path(), 0);
  EXPECT_EQ(engine->GetStore("a")->row_count, 10 * appends);
  EXPECT_EQ(engine->GetWriter("a", "w")->last_sequence, appends);
}

}  // namespace
}  // namespace softlookup
