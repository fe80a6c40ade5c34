// What is left on the disk of a deleted store: nothing, soon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/open_on_log.h"
#include "core/storage/background_errors.h"
#include "core/storage/open_database.h"
#include "core/storage/records.h"
#include "core/storage/rocksdb_log.h"
#include "core/storage/synced_sequence.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/sanitized.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDim = 128;
constexpr std::int64_t kAppendRows = 1000;  // 1 MB.

// How many appends the stores have. The numbers of the stores are 1 to 3.
using Appends = std::map<std::string, int>;
// What is in the write-ahead log, and in tables of several write buffers. In the second, a tenth of
// the rest is less than a write buffer.
const Appends kSmall = {{"a", 3}, {"b", 20}, {"c", 3}};
const Appends kLarge = {{"a", 20}, {"b", 160}, {"c", 20}};
constexpr const char* kLargest = "b";
constexpr std::uint64_t kLargestNumber = 2;

// An engine, and the log that it is on.
class OpenEngine {
 public:
  explicit OpenEngine(const std::string& directory) {
    fs::create_directories(directory);
    auto log = OpenRocksdbLog(directory, RocksdbAccess::kWrite, rocksdb::Env::Default());
    EXPECT_THAT(log, IsOk());
    log_ = log->get();
    auto engine = OpenOnLog({.thread_count = 1}, *std::move(log),
                            [](const absl::Status& damage) { ADD_FAILURE() << damage; });
    EXPECT_THAT(engine, IsOk());
    engine_ = *std::move(engine);
  }

  Engine& operator*() const { return *engine_; }
  Engine* operator->() const { return engine_.get(); }
  void AwaitReclaimed() { log_->AwaitReclaimed(); }

 private:
  CommitLog* log_ = nullptr;  // The engine's.
  std::unique_ptr<Engine> engine_;
};

class FreedDiskTest : public ::testing::TestWithParam<Appends> {
 protected:
  // The appends of the stores take turns, so that all have rows in all tables.
  static void Fill(Engine& engine, const Appends& appends) {
    const std::vector<float> floats = NormalFloats(kAppendRows * kDim, 1);
    const MatrixView rows{.data = floats.data(), .rows = kAppendRows, .cols = kDim};
    int turns = 0;
    for (const auto& [name, count] : appends) {
      ASSERT_THAT(engine.CreateStore({.name = name, .key_dim = kDim, .value_dim = kDim}), IsOk());
      turns = std::max(turns, count);
    }
    for (int turn = 0; turn < turns; ++turn) {
      for (const auto& [name, count] : appends) {
        if (turn * count / turns == (turn + 1) * count / turns) continue;
        ASSERT_THAT(
            AppendAndWait(engine, {.store = name, .keys = rows, .values = rows, .durable = false}),
            IsOk());
      }
    }
  }

  static std::uint64_t BytesOn(const std::string& directory) {
    std::uint64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(directory)) bytes += entry.file_size();
    return bytes;
  }

  // What a directory takes that never had the largest store.
  std::uint64_t BytesOfTheRest() const {
    const std::string directory = directory_.path() + "/rest";
    Appends rest = GetParam();
    rest.erase(kLargest);
    Fill(*OpenEngine(directory), rest);
    return BytesOn(directory);
  }

  void CheckTheRest(Engine& engine) const {
    EXPECT_EQ(engine.ListStores("", "", 10)->stores.size(), 2u);
    for (const auto& [name, count] : GetParam()) {
      if (name != kLargest) CheckRows(engine, name, count);
    }
  }

  static void CheckRows(Engine& engine, const std::string& name, int appends) {
    const auto reader = engine.ReadRows(name, {});
    ASSERT_THAT(reader, IsOk());
    std::int64_t rows = 0;
    for (auto page = (*reader)->Next(1000); !page.empty(); page = (*reader)->Next(1000)) {
      rows += static_cast<std::int64_t>(page.size());
    }
    EXPECT_EQ(rows, appends * kAppendRows) << name;
  }

  const TemporaryDirectory directory_;
  const std::string data_ = directory_.path() + "/data";
};

// A sanitizer takes five times as long for the large ones. It sees the tables of deleted stores in
// deleted_store_test.
INSTANTIATE_TEST_SUITE_P(Sizes, FreedDiskTest,
                         ::testing::ValuesIn(kSanitized ? std::vector<Appends>{kSmall}
                                                        : std::vector<Appends>{kSmall, kLarge}),
                         [](const auto& sizes) { return sizes.index == 0 ? "Small" : "Large"; });

TEST_P(FreedDiskTest, ADeletedStoreIsOffTheDiskWithoutARestartAndAfterOne) {
  const double rest = static_cast<double>(BytesOfTheRest());
  {
    OpenEngine engine(data_);
    Fill(*engine, GetParam());
    EXPECT_GT(BytesOn(data_), 2 * rest);
    ASSERT_THAT(engine->DeleteStore(kLargest), IsOk());
    engine.AwaitReclaimed();
    EXPECT_LT(BytesOn(data_), 1.3 * rest);
    CheckTheRest(*engine);
  }
  EXPECT_LT(BytesOn(data_), 1.3 * rest);
  OpenEngine engine(data_);
  engine.AwaitReclaimed();
  EXPECT_LT(BytesOn(data_), 1.3 * rest);
  CheckTheRest(*engine);
}

TEST_P(FreedDiskTest, AReplacedStoreIsOffTheDiskWithoutARestartAndAfterOne) {
  const double rest = static_cast<double>(BytesOfTheRest());
  const auto check = [&](Engine& engine) {
    EXPECT_LT(BytesOn(data_), 1.3 * rest);
    EXPECT_EQ(engine.ListStores("", "", 10)->stores.size(), 2u);
    CheckRows(engine, kLargest, GetParam().at("a"));
    CheckRows(engine, "c", GetParam().at("c"));
  };
  {
    OpenEngine engine(data_);
    Fill(*engine, GetParam());
    EXPECT_GT(BytesOn(data_), 2 * rest);
    ASSERT_THAT(engine->RenameStore({.name = "a", .new_name = kLargest, .replace = true}), IsOk());
    engine.AwaitReclaimed();
    check(*engine);
  }
  OpenEngine engine(data_);
  engine.AwaitReclaimed();
  check(*engine);
}

TEST_P(FreedDiskTest, WhatAStopCutShortTheNextStartDoes) {
  const double rest = static_cast<double>(BytesOfTheRest());
  {
    OpenEngine engine(data_);
    Fill(*engine, GetParam());
    ASSERT_THAT(engine->DeleteStore(kLargest), IsOk());
  }
  OpenEngine engine(data_);
  engine.AwaitReclaimed();
  EXPECT_LT(BytesOn(data_), 1.3 * rest);
  CheckTheRest(*engine);
}

TEST_P(FreedDiskTest, AStoreThatIsMadeWhileOneIsFreedKeepsItsRows) {
  {
    OpenEngine engine(data_);
    Fill(*engine, GetParam());
    // Those of the largest numbers.
    ASSERT_THAT(engine->DeleteStore("c"), IsOk());
    ASSERT_THAT(engine->DeleteStore(kLargest), IsOk());
  }
  for (const std::string name : {"new", "newer"}) {
    OpenEngine engine(data_);
    Fill(*engine, {{name, 2}});
    engine.AwaitReclaimed();
    EXPECT_EQ(engine->GetStore(name)->row_count, std::uint64_t{2 * kAppendRows});
  }
  OpenEngine engine(data_);
  EXPECT_EQ(engine->ListStores("", "", 10)->stores.size(), 3u);
  for (const char* name : {"new", "newer"}) {
    EXPECT_EQ(engine->GetStore(name)->row_count, std::uint64_t{2 * kAppendRows});
  }
}

// Versions that freed no disk left the deletion alone.
TEST_P(FreedDiskTest, WhatAnEarlierVersionDeletedAStartFrees) {
  const double rest = static_cast<double>(BytesOfTheRest());
  {
    OpenEngine engine(data_);
    Fill(*engine, GetParam());
  }
  {
    auto db =
        OpenDatabase(LogOptions(rocksdb::Env::Default(), std::make_shared<BackgroundErrors>()),
                     data_, SyncedSequence(data_ + "/" + kSyncedName));
    ASSERT_THAT(db, IsOk());
    const KeyRange keys = KeysOfStore(kLargestNumber);
    rocksdb::WriteBatch batch;
    ASSERT_TRUE(batch.DeleteRange(keys.begin, keys.end).ok());
    ASSERT_TRUE(batch.DeleteRange(KeyOfName(kLargestNumber), KeyOfName(kLargestNumber + 1)).ok());
    ASSERT_TRUE((*db)->Write(rocksdb::WriteOptions(), &batch).ok());
  }
  EXPECT_GT(BytesOn(data_), 2 * rest);
  for (int start = 0; start < 2; ++start) {
    OpenEngine engine(data_);
    engine.AwaitReclaimed();
    EXPECT_LT(BytesOn(data_), 1.3 * rest);
    CheckTheRest(*engine);
  }
}

}  // namespace
}  // namespace softlookup::testing
