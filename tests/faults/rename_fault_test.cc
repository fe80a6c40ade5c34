// Renames that replace a store, on a disk that fails and on one that loses power: each is there
// whole or not at all. A failure prints SOFTLOOKUP_TEST_SEED=N; with that in the environment the
// run begins with it, as far as threads take the same turns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/engine/open_on_log.h"
#include "core/storage/rocksdb_log.h"
#include "tests/faults/cycles.h"
#include "tests/faults/faulty_env.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using Fault = FaultyFileSystem::Fault;

// The store that is served, and the one that is built to take its place. The rows of generation g
// have the value g.
constexpr char kServed[] = "served", kNext[] = "next";
constexpr std::int64_t kRowsOfAStore = 3;

class RenameFaultTest : public ::testing::Test {
 protected:
  void Open() {
    engine_ = nullptr;
    auto log = OpenRocksdbLog(directory_.path() + "/data", RocksdbAccess::kWrite, env_.get());
    ASSERT_THAT(log, IsOk());
    auto engine = OpenOnLog({.thread_count = 1}, *std::move(log),
                            [](const absl::Status& damage) { ADD_FAILURE() << damage.ToString(); });
    ASSERT_THAT(engine, IsOk());
    engine_ = *std::move(engine);
  }

  absl::Status Make(const std::string& name, int generation) {
    if (absl::Status created =
            engine_->CreateStore({.name = name, .key_dim = 1, .value_dim = 1}).status();
        !created.ok()) {
      return created;
    }
    const std::vector<float> values(kRowsOfAStore, static_cast<float>(generation));
    const MatrixView rows{.data = values.data(), .rows = kRowsOfAStore, .cols = 1};
    return AppendAndWait(*engine_, {.store = name, .keys = rows, .values = rows}).status();
  }

  // The generation of a store's rows. Nothing if there is no store of this name, 0 if it has no
  // rows.
  std::optional<int> GenerationOf(const std::string& name) {
    const auto reader = engine_->ReadRows(name, {});
    if (absl::IsNotFound(reader.status())) return std::nullopt;
    if (!reader.ok()) {
      ADD_FAILURE() << name << ": " << reader.status();
      return std::nullopt;
    }
    const std::vector<Row> rows = (*reader)->Next(2 * kRowsOfAStore);
    if (rows.empty()) return 0;
    EXPECT_EQ(rows.size(), static_cast<std::size_t>(kRowsOfAStore)) << name;
    for (const Row& row : rows) EXPECT_EQ(row.value[0], rows[0].value[0]) << name;
    return static_cast<int>(rows[0].value[0]);
  }

  // Builds and swaps stores until a call of the disk fails.
  void SwapUntilAFault() {
    while (!files_->has_failed()) {
      ++tried_;
      if (!Make(kNext, tried_).ok()) continue;
      const StoreRename rename{.name = kNext, .new_name = kServed, .replace = true};
      if (engine_->RenameStore(rename).ok()) acknowledged_ = tried_;
    }
  }

  // What is found when the engine is opened again: the last acknowledged store, or one whose rename
  // was not acknowledged, but happened. A store that was built is in one place.
  void CheckStores() {
    const std::optional<int> served = GenerationOf(kServed), next = GenerationOf(kNext);
    ASSERT_TRUE(served.has_value()) << "no store is served";
    ASSERT_GE(*served, acknowledged_);
    ASSERT_LE(*served, tried_);
    if (next.has_value()) {
      ASSERT_NE(next, served) << "a store is there twice";
    }
    ASSERT_EQ(engine_->ListStores("", "", 10)->stores.size(), next.has_value() ? 2u : 1u);
    acknowledged_ = *served;
  }

  void Run(Fault fault, int cycles) {
    Open();
    if (HasFatalFailure()) return;
    ASSERT_THAT(Make(kServed, ++tried_), IsOk());
    acknowledged_ = tried_;
    for (int cycle = 0; cycle < cycles; ++cycle) {
      SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", FirstSeed() + cycle));
      std::mt19937_64 random(FirstSeed() + cycle);
      files_->FailAt(fault, 1 + static_cast<std::int64_t>(random() % 20), /*stays=*/true);
      SwapUntilAFault();
      // What was not acknowledged does not show, and lookups go on.
      EXPECT_EQ(GenerationOf(kServed), acknowledged_);
      engine_ = nullptr;
      if (fault == Fault::kPowerCut) files_->LosePower(random);
      files_->Heal();
      ASSERT_NO_FATAL_FAILURE(Open());
      ASSERT_NO_FATAL_FAILURE(CheckStores());
      if (GenerationOf(kNext).has_value()) {
        ASSERT_THAT(engine_->DeleteStore(kNext), IsOk());
      }
    }
    std::cout << cycles << " faults, " << tried_ << " stores\n";
  }

  TemporaryDirectory directory_;
  const std::shared_ptr<FaultyFileSystem> files_ = std::make_shared<FaultyFileSystem>();
  const std::unique_ptr<rocksdb::Env> env_ = MakeEnv(files_);
  std::unique_ptr<Engine> engine_;
  int tried_ = 0;         // Generation of the store that was built last.
  int acknowledged_ = 0;  // Generation of the store that is known to be served.
};

TEST_F(RenameFaultTest, APowerCutLeavesTheOldStoreOrTheNewOne) {
  Run(Fault::kPowerCut, Cycles(60, 500));
}

TEST_F(RenameFaultTest, AFailedWriteLeavesTheOldStoreOrTheNewOne) {
  Run(Fault::kWriteFails, Cycles(30, 300));
}

TEST_F(RenameFaultTest, AFailedSyncLeavesTheOldStoreOrTheNewOne) {
  Run(Fault::kSyncFails, Cycles(30, 300));
}

}  // namespace
}  // namespace softlookup::testing
