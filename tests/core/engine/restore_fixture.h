#ifndef SOFTLOOKUP_TESTS_CORE_ENGINE_RESTORE_FIXTURE_H_
#define SOFTLOOKUP_TESTS_CORE_ENGINE_RESTORE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/engine/open_on_log.h"
#include "core/storage/commit_log.h"
#include "core/storage/records.h"
#include "softlookup/engine.h"
#include "tests/core/engine/compaction_checks.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/watched_log.h"

namespace softlookup::testing {

// Rows of 512 bytes, so that the store takes several writes to copy.
inline constexpr std::int64_t kWideDim = 64;
inline constexpr std::int64_t kWideRows = 20'000;

inline AppendRequest RowsTo(absl::string_view store, const std::vector<float>& keys,
                            const std::vector<float>& values, std::int64_t rows) {
  const auto count = static_cast<std::int64_t>(keys.size());
  const auto value_count = static_cast<std::int64_t>(values.size());
  return {.store = store,
          .keys = {.data = keys.data(), .rows = rows, .cols = count / rows},
          .values = {.data = values.data(), .rows = rows, .cols = value_count / rows}};
}

// The rows of a store, all at once.
inline std::vector<Row> RowsOf(Engine& engine, const std::string& store) {
  const auto reader = engine.ReadRows(store, {});
  EXPECT_THAT(reader, IsOk());
  return reader.ok() ? (*reader)->Next(1'000'000) : std::vector<Row>();
}

// An engine with a directory, and a copy of that directory as it once was.
class RestoreStoreTest : public ::testing::Test {
 protected:
  RestoreStoreTest() { Open(); }

  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }

  void Open(const std::string& name = "data") {
    engine_ = nullptr;
    auto log = OpenCommitLog(Path(name));
    ASSERT_THAT(log, IsOk());
    auto watched = std::make_unique<WatchedLog>(*std::move(log));
    log_ = watched.get();
    auto engine = OpenOnLog({.limits = limits_, .thread_count = 2}, std::move(watched),
                            [](const absl::Status& damage) { ADD_FAILURE() << damage; });
    ASSERT_THAT(engine, IsOk());
    engine_ = *std::move(engine);
  }
  void Copy() {
    std::filesystem::remove_all(Path("copy"));
    ASSERT_THAT(engine_->CopyTo(Path("copy")), IsOk());
  }
  absl::StatusOr<StoreInfo> Restore(const std::string& store, const std::string& name) {
    return engine_->RestoreStore({.directory = Path("copy"), .store = store, .name = name},
                                 CancelToken());
  }
  // Makes the store "s" of kWideRows rows.
  void FillWide() {
    ASSERT_THAT(engine_->CreateStore({.name = "s", .key_dim = kWideDim, .value_dim = kWideDim}),
                IsOk());
    constexpr std::int64_t kAppendRows = 500;
    for (std::int64_t first = 0; first < kWideRows; first += kAppendRows) {
      const auto seed = static_cast<std::uint64_t>(first);
      const std::vector<float> keys = NormalFloats(kAppendRows * kWideDim, seed + 1);
      const std::vector<float> values = NormalFloats(kAppendRows * kWideDim, seed + 2);
      AppendRequest request = RowsTo("s", keys, values, kAppendRows);
      request.durable = false;
      ASSERT_THAT(AppendAndWait(*engine_, request), IsOk());
    }
  }
  std::vector<std::string> Names() {
    const auto list = engine_->ListStores("", "", 100);
    EXPECT_THAT(list, IsOk());
    std::vector<std::string> names;
    for (const StoreInfo& info : list->stores) names.push_back(info.config.name);
    return names;
  }
  // Closes the engine. Returns the numbers of which a directory has records, and the unfinished
  // ones.
  std::pair<std::set<std::uint64_t>, std::set<std::uint64_t>> NumbersIn(const std::string& name) {
    engine_ = nullptr;
    std::set<std::uint64_t> numbers, unfinished;
    const auto log = OpenCommitLogToRead(Path(name));
    EXPECT_THAT(log, IsOk());
    if (!log.ok()) return {};
    const auto scan = [&](const KeyRange& keys, auto add) {
      EXPECT_THAT((*log)->Scan(keys.begin, keys.end,
                               [&](absl::string_view key, absl::string_view) {
                                 add(key);
                                 return absl::OkStatus();
                               }),
                  IsOk());
    };
    scan(KeysOfAllStores(), [&](absl::string_view key) { numbers.insert(StoreOfKey(key)); });
    scan(KeysOfUnfinished(),
         [&](absl::string_view key) { unfinished.insert(*ParseUnfinishedKey(key)); });
    return {numbers, unfinished};
  }
  std::uint64_t NumberOf(const std::string& store) {
    return engine_->GetMemory(store, "", std::nullopt, std::nullopt)->incarnation;
  }
  // Only the store "s" is there, in RAM and on the disk, also after a start. The name "t" and the
  // log can be used.
  void ExpectNothingIsLeft() {
    // A write, so that the write before it has freed what it held.
    EXPECT_EQ(ReasonOf(engine_->GetWriter("s", "nobody").status()), "WRITER_NOT_FOUND");
    const std::int64_t bytes = engine_->stats().store_bytes;
    EXPECT_EQ(static_cast<std::uint64_t>(bytes), engine_->GetStore("s")->byte_size);
    EXPECT_THAT(Names(), ::testing::ElementsAre("s"));
    const std::uint64_t number = NumberOf("s");
    const auto [numbers, unfinished] = NumbersIn("data");
    EXPECT_THAT(numbers, ::testing::ElementsAre(number));
    EXPECT_THAT(unfinished, ::testing::IsEmpty());
    Open();
    EXPECT_THAT(Names(), ::testing::ElementsAre("s"));
    EXPECT_THAT(Restore("s", "t"), IsOk());
    ExpectSameRows(RowsOf(*engine_, "t"), RowsOf(*engine_, "s"));
  }

  Limits limits_;
  const TemporaryDirectory directory_;
  std::unique_ptr<Engine> engine_;
  WatchedLog* log_ = nullptr;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_ENGINE_RESTORE_FIXTURE_H_
