#include "core/engine/table_writes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/engine/writes.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

// Writes as the committer takes them through, one step at a time.
class TableWritesTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kBytesMax = 1'000'000;

  void Create(const std::string& name) {
    const std::unique_ptr<Write> create = MakeCreateStore(
        stores_, ++number_, /*replay_count=*/0, {.name = name, .key_dim = 1, .value_dim = 1},
        [](auto task) { task(); },
        /*store_count_max=*/2, [](auto) {});
    ASSERT_THAT(create->Stage(nullptr), IsOk());
    create->Publish();
  }
  // Adds a damaged store named "damaged", as a start does.
  void AddDamaged() {
    stores_.totals.AddDamagedStore();
    stores_.table.AddDamaged("damaged", {.number = ++number_,
                                         .info = {.config = {.name = "damaged"}, .damage = "torn"},
                                         .error = absl::DataLossError("is damaged")});
  }
  std::shared_ptr<Store> Find(const std::string& name) {
    return stores_.table.Find("store", name).value_or(nullptr);
  }
  // An append of one row to a store that its caller has found.
  std::unique_ptr<Write> Append(std::shared_ptr<Store> store) {
    return MakeAppend(stores_, std::move(store), {.keys = {1}, .values = {1}}, [](auto) {});
  }
  std::unique_ptr<Write> Rename(StoreRename rename) {
    return MakeRenameStore(stores_, std::move(rename),
                           [this](auto result) { renamed_ = std::move(result); });
  }
  // Renames a store that there is.
  void RenameNow(StoreRename rename) {
    const std::unique_ptr<Write> write = Rename(std::move(rename));
    ASSERT_THAT(write->Stage(nullptr), IsOk());
    write->Publish();
    write->Answer(absl::OkStatus());
    ASSERT_THAT(renamed_, IsOk());
  }
  std::int64_t BytesOf(const std::string& name) {
    return static_cast<std::int64_t>(Find(name)->snapshot()->byte_size());
  }

  CountedStores stores_{kBytesMax};
  std::uint64_t number_ = 0;
  absl::StatusOr<StoreRenamed> renamed_;
};

TEST_F(TableWritesTest, ARenamedStoreKeepsWhatTellsItFromOthers) {
  Create("a");
  const std::shared_ptr<Store> before = Find("a");
  RenameNow({.name = "a", .new_name = "b"});
  EXPECT_EQ(Find("a"), nullptr);
  const std::shared_ptr<Store> after = Find("b");
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->number(), before->number());
  EXPECT_EQ(after->create_time(), before->create_time());
  EXPECT_EQ(after->snapshot()->config().name, "b");
  EXPECT_EQ(after->snapshot()->revision(), 2u);
  // Whoever still holds it under the old name sees what it was.
  EXPECT_EQ(before->snapshot()->config().name, "a");
  EXPECT_EQ(before->snapshot()->revision(), 1u);
  EXPECT_EQ(renamed_->store.config.name, "b");
  EXPECT_EQ(renamed_->store.revision, 2u);
  EXPECT_EQ(renamed_->replaced, std::nullopt);
  EXPECT_EQ(stores_.budget.store_bytes(), BytesOf("b"));
}

TEST_F(TableWritesTest, ARenamedStoreIsQueuedForCompactionUnderItsNewName) {
  Create("a");
  stores_.compaction_queue.Open();
  stores_.compaction_queue.Add(Find("a"));
  RenameNow({.name = "a", .new_name = "b"});
  EXPECT_EQ(stores_.compaction_queue.Take(), Find("b"));
}

TEST_F(TableWritesTest, AWriteWhoseTurnComesAfterTheRenameIsRefused) {
  Create("a");
  Create("b");
  const std::unique_ptr<Write> to_renamed = Append(Find("a"));
  const std::unique_ptr<Write> to_replaced = Append(Find("b"));
  RenameNow({.name = "a", .new_name = "b", .replace = true});
  EXPECT_THAT(to_renamed->Stage(nullptr),
              StatusIs(absl::StatusCode::kNotFound, "There is no store \"a\""));
  EXPECT_THAT(to_replaced->Stage(nullptr),
              StatusIs(absl::StatusCode::kNotFound, "was deleted, renamed or replaced"));
  EXPECT_EQ(ReasonOf(to_replaced->Stage(nullptr)), "STORE_NOT_FOUND");
  EXPECT_THAT(Append(Find("b"))->Stage(nullptr), IsOk());
}

TEST_F(TableWritesTest, ARefusedRenameChangesNothing) {
  Create("a");
  Create("b");
  const std::shared_ptr<Store> a = Find("a"), b = Find("b");
  const std::int64_t bytes = stores_.budget.store_bytes();
  EXPECT_EQ(ReasonOf(Rename({.name = "a", .new_name = "b"})->Stage(nullptr)), "STORE_EXISTS");
  for (const bool replace : {false, true}) {
    EXPECT_EQ(ReasonOf(Rename({.name = "c", .new_name = "b", .replace = replace})->Stage(nullptr)),
              "STORE_NOT_FOUND");
  }
  EXPECT_EQ(Find("a"), a);
  EXPECT_EQ(Find("b"), b);
  EXPECT_EQ(a->editor().newest()->config().name, "a");
  EXPECT_EQ(stores_.budget.store_bytes(), bytes);
}

TEST_F(TableWritesTest, ADamagedStoreIsNeitherRenamedNorReplaced) {
  Create("a");
  AddDamaged();
  constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
  EXPECT_THAT(Rename({.name = "damaged", .new_name = "b"})->Stage(nullptr),
              StatusIs(kDataLoss, "is damaged"));
  EXPECT_THAT(Rename({.name = "a", .new_name = "damaged", .replace = true})->Stage(nullptr),
              StatusIs(kDataLoss, "is damaged"));
  EXPECT_EQ(ReasonOf(Rename({.name = "a", .new_name = "damaged"})->Stage(nullptr)), "STORE_EXISTS");
}

TEST_F(TableWritesTest, ADamagedStoreIsDeletedAndThenItsNameIsFree) {
  Create("a");
  AddDamaged();
  EXPECT_EQ(stores_.totals.damaged_stores(), 1);
  absl::Status answer = absl::UnknownError("none yet");
  const std::unique_ptr<Write> deletion =
      MakeDeleteStore(stores_, "damaged", [&](absl::Status status) { answer = std::move(status); });
  ASSERT_THAT(deletion->Stage(nullptr), IsOk());
  deletion->Publish();
  deletion->Answer(absl::OkStatus());
  EXPECT_THAT(answer, IsOk());
  EXPECT_EQ(stores_.totals.damaged_stores(), 0);
  EXPECT_EQ(stores_.totals.stores(), 1);
  RenameNow({.name = "a", .new_name = "damaged"});
  EXPECT_NE(Find("damaged"), nullptr);
}

TEST_F(TableWritesTest, ARenameThatTheLogRefusesGivesTheNamesBack) {
  Create("a");
  Create("b");
  const std::shared_ptr<Store> a = Find("a"), b = Find("b");
  const std::int64_t bytes = stores_.budget.store_bytes();
  const std::unique_ptr<Write> rename = Rename({.name = "a", .new_name = "b", .replace = true});
  ASSERT_THAT(rename->Stage(nullptr), IsOk());
  EXPECT_EQ(Find("a"), a) << "nobody sees it before it is published";
  EXPECT_EQ(Find("b"), b);
  rename->Rollback();
  rename->Answer(absl::UnavailableError("the disk"));
  EXPECT_THAT(renamed_, StatusIs(absl::StatusCode::kUnavailable, "the disk"));
  EXPECT_EQ(Find("a"), a);
  EXPECT_EQ(Find("b"), b);
  EXPECT_EQ(a->editor().newest()->config().name, "a");
  EXPECT_EQ(stores_.budget.store_bytes(), bytes);
  EXPECT_EQ(stores_.totals.stores(), 2);
  for (const auto& store : {a, b}) EXPECT_THAT(Append(store)->Stage(nullptr), IsOk());
}

TEST_F(TableWritesTest, AReplacedStoreCountsUntilItsLastSnapshotIsGone) {
  Create("a");
  Create("b");
  std::shared_ptr<const Snapshot> held = Find("b")->snapshot();
  const auto held_bytes = static_cast<std::int64_t>(held->byte_size());
  RenameNow({.name = "a", .new_name = "b", .replace = true});
  ASSERT_TRUE(renamed_->replaced.has_value());
  EXPECT_EQ(renamed_->replaced->config.name, "b");
  EXPECT_EQ(renamed_->replaced->revision, 1u);
  EXPECT_EQ(stores_.totals.stores(), 1);
  EXPECT_EQ(stores_.budget.store_bytes(), BytesOf("b") + held_bytes);
  held = nullptr;
  EXPECT_EQ(stores_.budget.store_bytes(), BytesOf("b"));
  Create("c");  // Two are allowed.
}

// A store whose other records are in the log already.
TEST_F(TableWritesTest, AnAddedStoreCountsTheBytesThatWereReservedForIt) {
  const auto store = std::make_shared<Store>(
      ++number_,
      std::make_unique<StoreEditor>(StoreConfig{.name = "a", .key_dim = 1, .value_dim = 1}),
      absl::UnixEpoch(), [](auto task) { task(); });
  const auto bytes = static_cast<std::int64_t>(store->snapshot()->byte_size());
  stores_.compaction_queue.Open();
  const auto add = [&](std::optional<ByteBudget::Reserved>& reserved) {
    reserved.emplace(stores_.budget, bytes);
    return MakeAddStore(stores_, store, /*replay_count=*/0, reserved, /*store_count_max=*/2,
                        [](auto) {});
  };
  {
    std::optional<ByteBudget::Reserved> reserved;
    const std::unique_ptr<Write> refused_by_log = add(reserved);
    ASSERT_THAT(refused_by_log->Stage(nullptr), IsOk());
    EXPECT_EQ(stores_.budget.used_bytes(), bytes);
    EXPECT_EQ(Find("a"), nullptr) << "nobody sees it before it is published";
    refused_by_log->Rollback();
    EXPECT_EQ(stores_.budget.used_bytes(), 0);
  }
  std::optional<ByteBudget::Reserved> reserved;
  const std::unique_ptr<Write> added = add(reserved);
  ASSERT_THAT(added->Stage(nullptr), IsOk());
  added->Publish();
  EXPECT_EQ(stores_.budget.store_bytes(), bytes);
  EXPECT_EQ(stores_.budget.used_bytes(), bytes);
  EXPECT_EQ(stores_.totals.stores(), 1);
  EXPECT_EQ(Find("a"), store);
  EXPECT_EQ(Find("a")->create_time(), absl::UnixEpoch());
  EXPECT_EQ(stores_.compaction_queue.Take(), store);
  std::optional<ByteBudget::Reserved> more;
  EXPECT_EQ(ReasonOf(add(more)->Stage(nullptr)), "STORE_EXISTS");
}

TEST_F(TableWritesTest, ARenameIsNotRefusedForTheBytesOfItsName) {
  Create("a");
  stores_.budget.Add(kBytesMax);
  const std::string long_name(100, 'b');
  RenameNow({.name = "a", .new_name = long_name});
  EXPECT_EQ(stores_.budget.store_bytes(), kBytesMax + BytesOf(long_name));
}

}  // namespace
}  // namespace softlookup
