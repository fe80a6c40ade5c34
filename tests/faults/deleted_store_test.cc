// Stores that are deleted, damaged ones above all, and what RocksDB's tables then hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/storage/background_errors.h"
#include "core/storage/open_database.h"
#include "core/storage/records.h"
#include "core/storage/synced_sequence.h"
#include "softlookup/engine.h"
#include "tests/testing/damage_table.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr std::int64_t kDim = 32;
constexpr std::int64_t kAppendRows = 500;

// What a component of the store's rows is. The names sort as they were made.
const std::map<std::string, float> kStores = {
    {"a-left", 1.25f}, {"b-damaged", 2.5f}, {"c-right", 3.75f}};
constexpr const char* kDamaged = "b-damaged";
constexpr std::uint64_t kDamagedNumber = 2;

class DeletedStoreTest : public ::testing::Test {
 protected:
  // Each store has 2,000 rows of 256 bytes. All records are in one table of level 0 when the engine
  // is closed.
  void SetUp() override {
    const auto engine = Open();
    for (const auto& [name, component] : kStores) {
      ASSERT_THAT(engine->CreateStore({.name = name, .key_dim = kDim, .value_dim = kDim}), IsOk());
      for (int i = 0; i < 4; ++i) Append(*engine, name);
    }
  }

  // Opens the directory, in which `damaged` stores must be damaged.
  std::unique_ptr<Engine> Open(const std::vector<std::string>& damaged = {}) {
    std::vector<std::string> found;
    auto engine = Engine::Open({.thread_count = 1}, data_, [&](const absl::Status& status) {
      for (const auto& [key, value] : MetadataOf(status)) {
        if (key == "store") found.push_back(value);
      }
      EXPECT_THAT(status.message(), HasSubstr("; restore a backup, or delete the store"));
    });
    EXPECT_THAT(engine, IsOk());
    EXPECT_EQ(found, damaged);
    return *std::move(engine);
  }

  void Append(Engine& engine, const std::string& name) {
    const std::vector<float> floats(kAppendRows * kDim, kStores.at(name));
    const MatrixView rows{.data = floats.data(), .rows = kAppendRows, .cols = kDim};
    ASSERT_THAT(AppendAndWait(engine, {.store = name, .keys = rows, .values = rows}), IsOk());
    row_counts_[name] += kAppendRows;
  }

  // Every row of the store can be read, and is what was appended.
  void CheckRows(Engine& engine, const std::string& name) {
    CheckRows(engine, name, kStores.at(name));
  }
  void CheckRows(Engine& engine, const std::string& name, float component) {
    SCOPED_TRACE(name);
    const auto reader = engine.ReadRows(name, {});
    ASSERT_THAT(reader, IsOk());
    std::int64_t count = 0;
    for (;;) {
      const std::vector<Row> rows = (*reader)->Next(1000);
      if (rows.empty()) break;
      count += static_cast<std::int64_t>(rows.size());
      for (const Row& row : rows) {
        ASSERT_THAT(row.key, ::testing::Each(component));
        ASSERT_THAT(row.value, ::testing::Each(component));
      }
    }
    EXPECT_EQ(count, row_counts_.at(name));
  }

  static std::vector<std::string> NamesIn(Engine& engine) {
    std::vector<std::string> names;
    const auto list = engine.ListStores("", "", 100);
    EXPECT_THAT(list, IsOk());
    for (const StoreInfo& store : list->stores) names.push_back(store.config.name);
    return names;
  }

  // The database itself, whose tables are small, so that a store has some for itself.
  std::unique_ptr<rocksdb::DB> OpenDatabaseItself() {
    rocksdb::Options options =
        LogOptions(rocksdb::Env::Default(), std::make_shared<BackgroundErrors>());
    options.target_file_size_base = 64 << 10;
    auto db = OpenDatabase(options, data_, SyncedSequence(data_ + "/" + kSyncedName));
    EXPECT_THAT(db, IsOk());
    return *std::move(db);
  }

  // Reads and writes all tables anew.
  void CompactAll() {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    const rocksdb::Status status = OpenDatabaseItself()->CompactRange(options, nullptr, nullptr);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  static void DamageRows(const fs::path& table) {
    DamageRow(table, std::vector<float>(2 * kDim, kStores.at(kDamaged)));
  }

  // Damages a table that holds rows of the damaged store alone.
  void DamageOwnTable() {
    CompactAll();
    const KeyRange keys = KeysOfStore(kDamagedNumber);
    std::vector<rocksdb::LiveFileMetaData> tables;
    OpenDatabaseItself()->GetLiveFilesMetaData(&tables);
    std::erase_if(tables, [&](const rocksdb::LiveFileMetaData& table) {
      return table.level == 0 || table.smallestkey < keys.begin || table.largestkey >= keys.end;
    });
    ASSERT_GE(tables.size(), 2u);
    DamageRows(fs::path(data_) / tables[tables.size() / 2].relative_filename);
  }

  absl::Status Verify() const {
    LoadObserver ignore;
    return Engine::Verify(data_, ignore);
  }

  TemporaryDirectory directory_;
  const std::string data_ = directory_.path() + "/data";
  std::map<std::string, std::int64_t> row_counts_;
};

TEST_F(DeletedStoreTest, ADamagedStoreCanOnlyBeListedReadAndDeleted) {
  DamageRows(OnlyTableIn(data_));
  const auto engine = Open({kDamaged});
  EXPECT_THAT(NamesIn(*engine), ElementsAre("a-left", kDamaged, "c-right"));
  const auto info = engine->GetStore(kDamaged);
  ASSERT_THAT(info, IsOk());
  EXPECT_THAT(info->damage, HasSubstr("checksum"));
  EXPECT_EQ(info->config.name, kDamaged);
  EXPECT_EQ(info->config.key_dim, kDim);
  EXPECT_EQ(info->row_count, static_cast<std::uint64_t>(row_counts_[kDamaged]));
  EXPECT_EQ(info->live_row_count, 0u);
  EXPECT_EQ(info->byte_size, 0u);
  EXPECT_EQ(engine->GetStore("a-left")->damage, "");

  const std::vector<float> floats(kDim, 1);
  const MatrixView row{.data = floats.data(), .rows = 1, .cols = kDim};
  for (const absl::Status& status :
       {AppendAndWait(*engine, {.store = kDamaged, .keys = row, .values = row}).status(),
        LookupAndWait(*engine, {.store = kDamaged, .queries = row}).status(),
        engine->ReadRows(kDamaged, {}).status(), engine->GetWriter(kDamaged, "w").status(),
        engine->DeleteRows(kDamaged, {.begin = 0}).status(),
        engine->UpdateStore(kDamaged, {.temperature = 1}).status(),
        engine->RenameStore({.name = kDamaged, .new_name = "renamed"}).status(),
        engine->RenameStore({.name = "a-left", .new_name = kDamaged, .replace = true}).status(),
        engine->GetMemory(kDamaged, "", std::nullopt, std::nullopt).status()}) {
    EXPECT_EQ(ReasonOf(status), "DATA_LOSS") << status;
    EXPECT_THAT(status.message(), HasSubstr("restore a backup, or delete the store"));
  }
  EXPECT_EQ(
      ReasonOf(engine->CreateStore({.name = kDamaged, .key_dim = 1, .value_dim = 1}).status()),
      "STORE_EXISTS");
  EXPECT_EQ(ReasonOf(engine->RenameStore({.name = "a-left", .new_name = kDamaged}).status()),
            "STORE_EXISTS");
  EXPECT_THAT(NamesIn(*engine), ElementsAre("a-left", kDamaged, "c-right"));

  EXPECT_EQ(engine->stats().damaged_stores, 1);
  ASSERT_THAT(engine->DeleteStore(kDamaged), IsOk());
  EXPECT_EQ(engine->stats().damaged_stores, 0);
  EXPECT_EQ(engine->stats().stores, 2);
  EXPECT_EQ(ReasonOf(engine->DeleteStore(kDamaged)), "STORE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(engine->GetStore(kDamaged).status()), "STORE_NOT_FOUND");
  EXPECT_THAT(NamesIn(*engine), ElementsAre("a-left", "c-right"));
  EXPECT_THAT(engine->CreateStore({.name = kDamaged, .key_dim = 1, .value_dim = 1}), IsOk());
}

TEST_F(DeletedStoreTest, OtherStoresAreRenamedAndReplacedBesideADamagedOne) {
  DamageRows(OnlyTableIn(data_));
  {
    const auto engine = Open({kDamaged});
    ASSERT_THAT(engine->RenameStore({.name = "a-left", .new_name = "c-right", .replace = true}),
                IsOk());
    EXPECT_FALSE(engine->stats().log_failed);
  }
  {
    const auto engine = Open({kDamaged});
    EXPECT_THAT(NamesIn(*engine), ElementsAre(kDamaged, "c-right"));
    ASSERT_THAT(engine->DeleteStore(kDamaged), IsOk());
    // Its name is free for a renamed store, whose number is not that of the deleted one.
    ASSERT_THAT(engine->RenameStore({.name = "c-right", .new_name = kDamaged}), IsOk());
  }
  row_counts_[kDamaged] = row_counts_["a-left"];
  for (int start = 0; start < 2; ++start) {
    const auto engine = Open();
    EXPECT_THAT(NamesIn(*engine), ElementsAre(kDamaged));
    CheckRows(*engine, kDamaged, kStores.at("a-left"));
    EXPECT_FALSE(engine->stats().log_failed);
  }
}

TEST_F(DeletedStoreTest, ADamagedTableOfADeletedStoreIsGone) {
  DamageOwnTable();
  ASSERT_THAT(Open({kDamaged})->DeleteStore(kDamaged), IsOk());
  for (int start = 0; start < 6; ++start) {
    const auto engine = Open();
    EXPECT_THAT(NamesIn(*engine), ElementsAre("a-left", "c-right"));
    Append(*engine, "a-left");
    Append(*engine, "c-right");
  }
  EXPECT_THAT(Verify(), IsOk());
  CompactAll();
  const auto engine = Open();
  CheckRows(*engine, "a-left");
  CheckRows(*engine, "c-right");
  EXPECT_FALSE(engine->stats().log_failed);
}

TEST_F(DeletedStoreTest, ADamagedTableThatOthersShareIsNotCompacted) {
  DamageRows(OnlyTableIn(data_));
  ASSERT_THAT(Open({kDamaged})->DeleteStore(kDamaged), IsOk());
  EXPECT_EQ(ReasonOf(Verify()), "DATA_LOSS");
  // Each start leaves a table in level 0. RocksDB compacts four of them if it may.
  constexpr int kStarts = 8;
  for (int start = 0; start < kStarts; ++start) {
    const auto engine = Open();
    EXPECT_THAT(NamesIn(*engine), ElementsAre("a-left", "c-right"));
    Append(*engine, "a-left");
    Append(*engine, "c-right");
    EXPECT_FALSE(engine->stats().log_failed);
  }
  const auto engine = Open();
  CheckRows(*engine, "a-left");
  CheckRows(*engine, "c-right");
  EXPECT_THAT(engine->CreateStore({.name = kDamaged, .key_dim = 1, .value_dim = 1}), IsOk());
  std::ptrdiff_t tables = 0;
  for (const auto& entry : fs::directory_iterator(data_)) {
    tables += entry.path().extension() == ".sst" ? 1 : 0;
  }
  EXPECT_GT(tables, kStarts);
}

TEST_F(DeletedStoreTest, ALaterStoreMeetsNoDamageThatADeletedOneHasLeft) {
  DamageRows(OnlyTableIn(data_));
  {
    // The damaged store becomes the one of the largest number.
    const auto engine = Open({kDamaged});
    ASSERT_THAT(engine->DeleteStore("c-right"), IsOk());
    ASSERT_THAT(engine->DeleteStore(kDamaged), IsOk());
  }
  {
    const auto engine = Open();
    row_counts_["c-right"] = 0;
    ASSERT_THAT(engine->CreateStore({.name = "c-right", .key_dim = kDim, .value_dim = kDim}),
                IsOk());
    Append(*engine, "c-right");
  }
  for (int start = 0; start < 2; ++start) {
    const auto engine = Open();
    EXPECT_THAT(NamesIn(*engine), ElementsAre("a-left", "c-right"));
    CheckRows(*engine, "a-left");
    CheckRows(*engine, "c-right");
  }
}

// Notes why the engine keeps the disk of deleted stores.
class NotingLoadObserver final : public LoadObserver {
 public:
  void OnDiskKept(const absl::Status& why) override { whys_.emplace_back(why.message()); }
  const std::vector<std::string>& whys() const { return whys_; }

 private:
  std::vector<std::string> whys_;
};

TEST_F(DeletedStoreTest, DiskThatIsKeptIsReportedAndCounted) {
  const auto load = [&](const std::vector<std::string>& whys) -> std::unique_ptr<Engine> {
    auto engine = Engine::Open({.thread_count = 1}, data_);
    EXPECT_THAT(engine, IsOk());
    NotingLoadObserver observer;
    EXPECT_THAT((*engine)->Load(observer), IsOk());
    EXPECT_EQ(observer.whys().size(), whys.size());
    for (std::size_t i = 0; i < std::min(whys.size(), observer.whys().size()); ++i) {
      EXPECT_THAT(observer.whys()[i], HasSubstr(whys[i]));
    }
    return *std::move(engine);
  };
  // Most of the store's 2,000 rows of 256 bytes.
  const auto await_deleted_bytes = [](Engine& engine) {
    EXPECT_TRUE(AwaitThat([&] { return engine.stats().deleted_bytes >= 400'000; }));
  };
  const fs::path table = OnlyTableIn(data_);
  EXPECT_EQ(load({})->stats().deleted_bytes, 0u);
  DamageRows(table);
  {
    const auto engine = load({"a store is damaged"});
    EXPECT_EQ(engine->stats().deleted_bytes, 0u);
    ASSERT_THAT(engine->DeleteStore(kDamaged), IsOk());
    await_deleted_bytes(*engine);
  }
  await_deleted_bytes(*load({"what is left of deleted stores cannot be read"}));
}

// A table that rots when nobody reads it any more.
TEST_F(DeletedStoreTest, ADeletedStoreThatIsDamagedLaterIsNotCompacted) {
  ASSERT_THAT(Open()->DeleteStore(kDamaged), IsOk());
  // Of the tables of level 0, the first has all rows, and another one the deletion.
  fs::path largest;
  for (const auto& entry : fs::directory_iterator(data_)) {
    if (entry.path().extension() != ".sst") continue;
    if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
  }
  DamageRows(largest);
  for (int start = 0; start < 8; ++start) {
    const auto engine = Open();
    EXPECT_THAT(NamesIn(*engine), ElementsAre("a-left", "c-right"));
    Append(*engine, "a-left");
    Append(*engine, "c-right");
    EXPECT_FALSE(engine->stats().log_failed);
  }
  const auto engine = Open();
  CheckRows(*engine, "a-left");
  CheckRows(*engine, "c-right");
}

TEST_F(DeletedStoreTest, ADeletedStoreIsNotFoundWithoutTheNamesEither) {
  CompactAll();
  ASSERT_THAT(Open()->DeleteStore(kDamaged), IsOk());
  for (int start = 0; start < 2; ++start) {
    const KeyRange names = KeysOfNames();
    {
      const std::unique_ptr<rocksdb::DB> db = OpenDatabaseItself();
      ASSERT_TRUE(db->DeleteRange(rocksdb::WriteOptions(), db->DefaultColumnFamily(), names.begin,
                                  names.end)
                      .ok());
    }
    const auto engine = Open();
    EXPECT_THAT(NamesIn(*engine), ElementsAre("a-left", "c-right"));
    CheckRows(*engine, "a-left");
    CheckRows(*engine, "c-right");
  }
}

}  // namespace
}  // namespace softlookup::testing
