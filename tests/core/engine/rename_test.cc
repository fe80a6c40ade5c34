// A store gets another name, also that of a store which it replaces, beside lookups, waits, appends
// and restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "core/engine/open_on_log.h"
#include "tests/core/engine/engine_fixture.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/gated_log.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::GatedLog;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::LookupAndWait;
using ::softlookup::testing::StatusIs;
using ::softlookup::testing::TemporaryDirectory;

constexpr auto kStoreIsGone = absl::StatusCode::kNotFound;

// Makes a store of one row, whose value is `value`.
void MakeStoreOf(Engine& engine, const std::string& name, float value) {
  ASSERT_THAT(engine.CreateStore({.name = name, .key_dim = 1, .value_dim = 1}), IsOk());
  const MatrixView row{.data = &value, .rows = 1, .cols = 1};
  ASSERT_THAT(AppendAndWait(engine, {.store = name, .keys = row, .values = row}), IsOk());
}

absl::StatusOr<LookupResult> LookupOne(Engine& engine, const std::string& name) {
  const float one = 1;
  return LookupAndWait(engine, {.store = name, .queries = {.data = &one, .rows = 1, .cols = 1}});
}

class RenameTest : public EngineFixture {
 protected:
  absl::Status AppendInChain(const std::string& store, const std::shared_ptr<AppendChain>& chain) {
    const float one = 1;
    const MatrixView row{.data = &one, .rows = 1, .cols = 1};
    return AppendAndWait(*engine_, {.store = store, .keys = row, .values = row, .chain = chain})
        .status();
  }
};

TEST_F(RenameTest, AStoreIsTheSameUnderItsNewName) {
  Create("a");
  ASSERT_THAT(Append("a", {1, 0, 0, 1}, {10, 20}), IsOk());
  const StoreInfo before = *engine_->GetStore("a");
  const auto renamed = engine_->RenameStore({.name = "a", .new_name = "acme/b"});
  ASSERT_THAT(renamed, IsOk());
  EXPECT_EQ(renamed->store.config.name, "acme/b");
  EXPECT_EQ(renamed->store.revision, before.revision + 1);
  EXPECT_EQ(renamed->store.row_count, before.row_count);
  EXPECT_EQ(renamed->store.create_time, before.create_time);
  EXPECT_EQ(renamed->replaced, std::nullopt);
  EXPECT_THAT(engine_->GetStore("a"), StatusIs(kStoreIsGone, "\"a\""));
  const auto result = Lookup({.store = "acme/b", .options = {.temperature = 1e-3}}, {0, 1});
  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(result->values, ::testing::ElementsAre(20));
  EXPECT_EQ(result->revision, before.revision + 1);
  EXPECT_EQ(Append("acme/b", {1, 1}, {30})->first_position, 2u);
  // The old name is free.
  Create("a");
  EXPECT_EQ(engine_->GetStore("a")->row_count, 0u);
  EXPECT_EQ(engine_->ListStores("", "", 10)->stores.size(), 2u);
}

TEST_F(RenameTest, ANameThatIsTakenIsRefusedUnlessItsStoreIsToBeReplaced) {
  MakeStoreOf(*engine_, "a", 1);
  MakeStoreOf(*engine_, "b", 2);
  const StoreInfo old = *engine_->GetStore("b");
  EXPECT_THAT(engine_->RenameStore({.name = "a", .new_name = "b"}),
              StatusIs(absl::StatusCode::kAlreadyExists, "\"b\""));
  // No lookup: its rows count for a moment longer, also where the store is replaced.
  EXPECT_THAT(engine_->GetMemory("b", "", std::nullopt, std::nullopt)->memory.value,
              ::testing::ElementsAre(2));
  const auto renamed = engine_->RenameStore({.name = "a", .new_name = "b", .replace = true});
  ASSERT_THAT(renamed, IsOk());
  ASSERT_TRUE(renamed->replaced.has_value());
  EXPECT_EQ(renamed->replaced->revision, old.revision);
  EXPECT_EQ(renamed->replaced->create_time, old.create_time);
  EXPECT_EQ(LookupOne(*engine_, "b")->values[0], 1);
  EXPECT_EQ(engine_->stats().stores, 1);
  EXPECT_EQ(engine_->stats().rows, 1u);
  // To replace a store that is not there is a plain rename.
  EXPECT_THAT(engine_->RenameStore({.name = "b", .new_name = "a", .replace = true}), IsOk());
  // The thread that commits lets go of the replaced store before it makes the next write.
  EXPECT_EQ(static_cast<std::uint64_t>(engine_->stats().store_bytes),
            engine_->GetStore("a")->byte_size);
}

TEST_F(RenameTest, ABadRenameIsRefusedByField) {
  Create("a");
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  for (const bool replace : {false, true}) {
    const auto rename = [&](const std::string& name, const std::string& new_name) {
      return engine_->RenameStore({.name = name, .new_name = new_name, .replace = replace})
          .status();
    };
    EXPECT_THAT(rename("", "b"), StatusIs(kInvalid, "store: a store's name has"));
    EXPECT_THAT(rename("a", "b..c"), StatusIs(kInvalid, "new_name: a store's name has"));
    EXPECT_THAT(rename("a", std::string(129, 'b')), StatusIs(kInvalid, "new_name: "));
    EXPECT_EQ(ReasonOf(rename("a", "")), "INVALID_NAME");
    // Also of a store that is not there.
    for (const char* name : {"a", "none"}) {
      EXPECT_THAT(rename(name, name), StatusIs(kInvalid, "new_name: is the name that the store"));
      EXPECT_EQ(ReasonOf(rename(name, name)), "INVALID_OPTION");
    }
    EXPECT_THAT(rename("none", "b"), StatusIs(kStoreIsGone, "\"none\""));
    EXPECT_THAT(rename("none", "a"), StatusIs(kStoreIsGone, "\"none\""));
  }
  EXPECT_EQ(engine_->GetStore("a")->revision, 1u);
}

TEST_F(RenameTest, LookupsInANameWhoseStoreIsReplacedAlwaysFindAStore) {
  constexpr int kGenerations = 200;
  MakeStoreOf(*engine_, "served", 0);
  std::atomic<bool> done{false};
  const auto look = [&] {
    long seen = 0;
    while (!done) {
      const auto result = LookupOne(*engine_, "served");
      ASSERT_THAT(result, IsOk());
      const long generation = std::lround(result->values[0]);
      ASSERT_GE(generation, seen) << "an older store came back";
      seen = generation;
      ASSERT_THAT(engine_->GetStore("served"), IsOk());
      const auto listed = engine_->ListStores("served", "", 1);
      ASSERT_EQ(listed->stores.size(), 1u);
    }
  };
  std::thread first(look), second(look);
  for (int generation = 1; generation <= kGenerations; ++generation) {
    MakeStoreOf(*engine_, "next", static_cast<float>(generation));
    EXPECT_THAT(engine_->RenameStore({.name = "next", .new_name = "served", .replace = true}),
                IsOk());
  }
  done = true;
  first.join();
  second.join();
  EXPECT_EQ(std::lround(LookupOne(*engine_, "served")->values[0]), kGenerations);
}

TEST_F(RenameTest, NothingAcknowledgedBesideRenamesIsLost) {
  Create("a", 1, 1);
  std::atomic<bool> done{false};
  std::uint64_t acknowledged = 0;
  std::thread writer([&] {
    while (!done) {
      for (const char* name : {"a", "b"}) {
        const absl::Status status = AppendInChain(name, nullptr);
        if (status.ok()) {
          ++acknowledged;
        } else {
          ASSERT_THAT(status, StatusIs(kStoreIsGone, name));
        }
      }
    }
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(engine_->RenameStore({.name = "a", .new_name = "b"}), IsOk());
    EXPECT_THAT(engine_->RenameStore({.name = "b", .new_name = "a"}), IsOk());
  }
  done = true;
  writer.join();
  EXPECT_EQ(engine_->GetStore("a")->row_count, acknowledged);
  EXPECT_EQ(engine_->GetStore("a")->revision, 1 + 200 + acknowledged);
}

TEST_F(RenameTest, WaitsInTheOldNameAndForTheReplacedStoreEnd) {
  Create("old", 1, 1);
  Create("new", 1, 1);
  const float one = 1;
  const MatrixView query{.data = &one, .rows = 1, .cols = 1};
  struct Wait {
    absl::Status status;
    absl::Notification ended;
  };
  const auto wait_in = [&](const std::string& name, std::uint64_t revision, Wait& wait) {
    engine_->Lookup({.store = name, .queries = query, .min_revision = revision},
                    std::make_shared<CancelToken>(), [&wait](auto result) {
                      wait.status = result.status();
                      wait.ended.Notify();
                    });
  };
  Wait in_old, in_new, watch, after;
  wait_in("old", 3, in_old);
  wait_in("new", 3, in_new);
  const std::uint64_t incarnation =
      engine_->GetMemory("new", "", std::nullopt, std::nullopt)->incarnation;
  engine_->WhenRevision("new", incarnation, 3, std::make_shared<CancelToken>(),
                        [&](const absl::Status& status) {
                          watch.status = status;
                          watch.ended.Notify();
                        });
  ASSERT_THAT(engine_->RenameStore({.name = "old", .new_name = "new", .replace = true}), IsOk());
  for (Wait* wait : {&in_old, &in_new, &watch}) wait->ended.WaitForNotification();
  EXPECT_THAT(in_old.status, StatusIs(kStoreIsGone, "There is no store \"old\""));
  EXPECT_THAT(in_new.status, StatusIs(kStoreIsGone, "was deleted, renamed or replaced"));
  EXPECT_THAT(watch.status, StatusIs(kStoreIsGone, "was deleted, renamed or replaced"));

  // The revisions are the store's own: made, renamed, appended to.
  wait_in("new", 3, after);
  EXPECT_FALSE(after.ended.HasBeenNotified());
  EXPECT_EQ(Append("new", {1}, {1}, 1)->revision, 3u);
  after.ended.WaitForNotification();
  EXPECT_THAT(after.status, IsOk());
}

TEST_F(RenameTest, AChainOfAppendsEndsWithTheNameOfItsStore) {
  Create("old", 1, 1);
  Create("new", 1, 1);
  const auto to_renamed = std::make_shared<AppendChain>();
  const auto to_replaced = std::make_shared<AppendChain>();
  ASSERT_THAT(AppendInChain("old", to_renamed), IsOk());
  ASSERT_THAT(AppendInChain("new", to_replaced), IsOk());
  ASSERT_THAT(engine_->RenameStore({.name = "old", .new_name = "new", .replace = true}), IsOk());
  EXPECT_THAT(AppendInChain("old", to_renamed), StatusIs(kStoreIsGone, "\"old\""));
  EXPECT_THAT(AppendInChain("new", to_replaced),
              StatusIs(kStoreIsGone, "was deleted, renamed or replaced"));
  for (const auto& [name, chain] : {std::pair("old", to_renamed), std::pair("new", to_replaced)}) {
    EXPECT_THAT(AppendInChain(name, chain),
                StatusIs(absl::StatusCode::kCancelled, "An append before this one"));
  }
  // The row that was acknowledged is there, and none of the others.
  EXPECT_EQ(engine_->GetStore("new")->row_count, 1u);
  EXPECT_THAT(AppendInChain("new", std::make_shared<AppendChain>()), IsOk());
}

TEST_F(RenameTest, ReadersOfAReplacedStoreFinishOnTheirSnapshot) {
  MakeStoreOf(*engine_, "old", 1);
  MakeStoreOf(*engine_, "new", 2);
  const auto of_renamed = engine_->ReadRows("old", {}), of_replaced = engine_->ReadRows("new", {});
  ASSERT_THAT(engine_->RenameStore({.name = "old", .new_name = "new", .replace = true}), IsOk());
  EXPECT_EQ((*of_renamed)->Next(10).at(0).value[0], 1);
  EXPECT_EQ((*of_replaced)->Next(10).at(0).value[0], 2);
}

TEST(RenameLogTest, ARenameThatTheLogRefusesChangesNothing) {
  auto gated_log = std::make_unique<GatedLog>();
  GatedLog& log = *gated_log;
  auto engine = OpenOnLog({.thread_count = 1}, std::move(gated_log), [](const absl::Status&) {});
  ASSERT_THAT(engine, IsOk());
  MakeStoreOf(**engine, "a", 1);
  MakeStoreOf(**engine, "b", 2);
  const std::size_t commits = log.syncs().size();
  log.result = absl::UnavailableError("the disk");
  const StoreRename rename{.name = "a", .new_name = "b", .replace = true};
  EXPECT_THAT((*engine)->RenameStore(rename), StatusIs(absl::StatusCode::kUnavailable, "the disk"));
  EXPECT_EQ(LookupOne(**engine, "a")->values[0], 1);
  EXPECT_EQ(LookupOne(**engine, "b")->values[0], 2);
  EXPECT_EQ((*engine)->stats().stores, 2);
  log.result = absl::OkStatus();
  EXPECT_THAT((*engine)->RenameStore(rename), IsOk());
  EXPECT_EQ(LookupOne(**engine, "b")->values[0], 1);
  // Each attempt was one batch, synced.
  ASSERT_EQ(log.syncs().size(), commits + 2);
  EXPECT_EQ(log.syncs().back(), Sync::kYes);
}

TEST(RenameOnDiskTest, ARenameOutlivesARestart) {
  const TemporaryDirectory directory;
  const std::string data = directory.path() + "/data";
  std::unique_ptr<Engine> engine;
  const auto restart = [&] {
    engine = nullptr;
    auto opened = Engine::Open({.thread_count = 1}, data,
                               [](const absl::Status& damage) { ADD_FAILURE() << damage; });
    ASSERT_THAT(opened, IsOk());
    engine = *std::move(opened);
  };
  const auto names = [&] {
    std::vector<std::string> found;
    const absl::StatusOr<ListResult> listed = engine->ListStores("", "", 10);
    for (const StoreInfo& store : listed->stores) found.push_back(store.config.name);
    return found;
  };
  restart();
  MakeStoreOf(*engine, "a", 1);
  MakeStoreOf(*engine, "b", 2);
  MakeStoreOf(*engine, "c", 3);
  ASSERT_THAT(engine->RenameStore({.name = "a", .new_name = "d"}), IsOk());
  const StoreInfo renamed = *engine->GetStore("d");
  restart();
  EXPECT_THAT(names(), ::testing::ElementsAre("b", "c", "d"));
  EXPECT_EQ(engine->GetStore("d")->revision, renamed.revision);
  EXPECT_EQ(engine->GetStore("d")->create_time, renamed.create_time);
  EXPECT_EQ(LookupOne(*engine, "d")->values[0], 1);

  // By a store that is older than the one that it replaces, and by one that is newer.
  ASSERT_THAT(engine->RenameStore({.name = "b", .new_name = "c", .replace = true}), IsOk());
  ASSERT_THAT(engine->RenameStore({.name = "c", .new_name = "d", .replace = true}), IsOk());
  MakeStoreOf(*engine, "b", 4);
  restart();
  EXPECT_THAT(names(), ::testing::ElementsAre("b", "d"));
  EXPECT_EQ(LookupOne(*engine, "b")->values[0], 4);
  EXPECT_EQ(LookupOne(*engine, "d")->values[0], 2);
  EXPECT_EQ(engine->GetStore("d")->revision, 4u);  // Made, appended to, renamed twice.
  engine = nullptr;
  LoadObserver ignore;
  EXPECT_THAT(Engine::Verify(data, ignore), IsOk());
}

}  // namespace
}  // namespace softlookup
