// A disk that fails under the log, and one that loses power. A failure prints
// SOFTLOOKUP_TEST_SEED=N; with that in the environment the run begins with it, as far as threads
// take the same turns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/engine/open_on_log.h"
#include "core/storage/rocksdb_log.h"
#include "tests/faults/cycles.h"
#include "tests/faults/faulty_env.h"
#include "tests/faults/journal.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using Fault = FaultyFileSystem::Fault;
using ::testing::AnyOf;

MATCHER_P(HasReason, reason, "") {
  *result_listener << arg.ToString();
  return ReasonOf(arg) == reason;
}

constexpr int kCyclesOfAStore = 10;

class FileSystemTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Engine>> Open() {
    absl::Status damage;
    auto log = OpenRocksdbLog(directory_.path() + "/data", RocksdbAccess::kWrite, env_.get());
    if (!log.ok()) return log.status();
    auto engine = OpenOnLog({.thread_count = 1}, *std::move(log),
                            [&](const absl::Status& status) { damage = status; });
    if (!damage.ok()) return damage;
    return engine;
  }

  // Opens what the last cycle left on a healed disk, and checks it.
  absl::StatusOr<std::unique_ptr<Engine>> BeginCycle(int cycle, Journal::MayLack may_lack) {
    random_.seed(FirstSeed() + cycle);
    files_->Heal();
    auto engine = Open();
    if (!engine.ok()) return engine;
    if (journal_ != nullptr) journal_->Check(**engine, may_lack);
    if (cycle % kCyclesOfAStore == 0) BeginStore(**engine, cycle);
    return engine;
  }

  // A store that has not grown large, so that every cycle costs the same.
  void BeginStore(Engine& engine, int number) {
    if (journal_ != nullptr) {
      EXPECT_THAT(engine.DeleteStore(store_), IsOk());
    }
    store_ = absl::StrCat("store", number);
    journal_ = std::make_unique<Journal>(store_);
    EXPECT_THAT(journal_->CreateStore(engine), IsOk());
  }

  // A store whose configuration takes 96 KiB.
  static absl::Status CreateWideStore(Engine& engine, const std::string& name) {
    constexpr std::int64_t kInputDim = 8192;
    const std::vector<float> weights(kInputDim, 1);
    return engine
        .CreateStore(
            {.name = name,
             .key_dim = 1,
             .value_dim = 1,
             .projection = std::make_shared<const Projection>(Projection{
                 .input_dim = kInputDim, .query = weights, .key = weights, .value = weights})})
        .status();
  }

  std::int64_t Draw(std::int64_t count) { return static_cast<std::int64_t>(random_() % count); }

  TemporaryDirectory directory_;
  const std::shared_ptr<FaultyFileSystem> files_ = std::make_shared<FaultyFileSystem>();
  const std::unique_ptr<rocksdb::Env> env_ = MakeEnv(files_);
  std::mt19937_64 random_;
  std::string store_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(FileSystemTest, PowerCutsTakeNothingThatWasAcknowledgedAsDurable) {
  const int cycles = Cycles(60, 500);
  std::uint64_t acknowledged = 0;
  for (int cycle = 0; cycle < cycles && !HasFailure(); ++cycle) {
    SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", FirstSeed() + cycle));
    auto engine = BeginCycle(cycle, Journal::MayLack::kAppliedSuffix);
    ASSERT_THAT(engine, IsOk());
    const bool all_durable = cycle % 3 == 0;
    files_->FailAt(Fault::kPowerCut, 1 + Draw(60), /*stays=*/true);
    while (!files_->has_failed()) {
      journal_->Submit(**engine, all_durable || Draw(4) == 0);
      if (Draw(3) == 0) journal_->AwaitAll().IgnoreError();
    }
    journal_->AwaitAll().IgnoreError();
    acknowledged += journal_->acknowledged_count();
    *engine = nullptr;
    files_->LosePower(random_);
  }
  std::cout << cycles << " power cuts, " << acknowledged << " acknowledged appends\n";
  EXPECT_GT(acknowledged, static_cast<std::uint64_t>(cycles));
}

TEST_F(FileSystemTest, FailedCallsAreNeverAcknowledgedAndLookupsGoOn) {
  const int faults = Cycles(100, 2000);
  int failed = 0, cycle = 0;
  for (; failed < faults && !HasFailure(); ++cycle) {
    ASSERT_LT(cycle, 10 * faults) << "only " << failed << " calls failed";
    SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", FirstSeed() + cycle));
    auto engine = BeginCycle(cycle, Journal::MayLack::kNothing);
    ASSERT_THAT(engine, IsOk());
    const Fault fault = Draw(2) == 0 ? Fault::kWriteFails : Fault::kSyncFails;
    files_->FailAt(fault, 1 + Draw(6), /*stays=*/Draw(2) == 0);
    for (int i = 0; i < 30; ++i) {
      journal_->Submit(**engine, Draw(2) == 0);
      if (Draw(5) == 0) journal_->AwaitAll().IgnoreError();
    }
    journal_->AwaitAll().IgnoreError();
    if (files_->has_failed()) {
      ++failed;
      files_->Heal();
      journal_->Submit(**engine, /*durable=*/true);
      const absl::Status last = journal_->AwaitAll();
      // Healed or not, a write-ahead log that failed once is not trusted until it is opened again.
      // RocksDB repeats what it does in the background.
      if (absl::EndsWith(files_->failed_file(), ".log")) {
        EXPECT_THAT(last, HasReason("STORAGE_FAILED"));
      }
      if (!last.ok()) {
        EXPECT_TRUE((*engine)->stats().log_failed);
      }
      journal_->CheckRefusedAreMissing(**engine);
    }
  }
  std::cout << cycle << " cycles, " << failed << " in which a call failed\n";
}

TEST_F(FileSystemTest, AFullDiskRefusesAppendsUntilThereIsRoom) {
  const int faults = Cycles(40, 500);
  int failed = 0, cycle = 0;
  auto engine = Open();
  ASSERT_THAT(engine, IsOk());
  for (; failed < faults && !HasFailure(); ++cycle) {
    ASSERT_LT(cycle, 10 * faults) << "only " << failed << " met a full disk";
    SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", FirstSeed() + cycle));
    random_.seed(FirstSeed() + cycle);
    if (cycle % kCyclesOfAStore == 0) BeginStore(**engine, cycle);
    files_->FailAt(Fault::kDiskFull, 1 + Draw(6), /*stays=*/true);
    for (int i = 0; i < 30; ++i) journal_->Submit(**engine, Draw(2) == 0);
    if (absl::Status last = journal_->AwaitAll(); !last.ok()) {
      ++failed;
      EXPECT_THAT(last, HasReason("STORAGE_FAILED"));
      EXPECT_TRUE(RetryAfterOf(last).has_value());
    }
    files_->Heal();
    journal_->Submit(**engine, /*durable=*/true);
    const absl::Status first = journal_->AwaitAll();
    if (!first.ok() || (*engine)->stats().log_failed) {
      // Work in the background met the full disk, and told of it in or after that append. The next
      // one opens the log again, and with that such work has ended.
      EXPECT_THAT(first, AnyOf(IsOk(), HasReason("STORAGE_FAILED")));
      journal_->Submit(**engine, /*durable=*/true);
      EXPECT_THAT(journal_->AwaitAll(), IsOk());
      EXPECT_FALSE((*engine)->stats().log_failed);
    }
    journal_->CheckRefusedAreMissing(**engine);
    if (Draw(4) == 0) {
      *engine = nullptr;
      engine = Open();
      ASSERT_THAT(engine, IsOk());
      journal_->CheckRefusedAreMissing(**engine);
      journal_->Check(**engine, Journal::MayLack::kNothing);
    }
  }
  std::cout << cycle << " cycles, " << failed << " in which the disk was full\n";
}

TEST_F(FileSystemTest, StoresAreDeletedAndReplacedOnAFullDisk) {
  const int faults = Cycles(30, 300);
  int failed = 0, cycle = 0;
  auto engine = Open();
  ASSERT_THAT(engine, IsOk());
  for (; failed < faults && !HasFailure(); ++cycle) {
    ASSERT_LT(cycle, 10 * faults) << "only " << failed << " met a full disk";
    SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", FirstSeed() + cycle));
    random_.seed(FirstSeed() + cycle);
    if (cycle % kCyclesOfAStore == 0) BeginStore(**engine, cycle);
    const std::string old = absl::StrCat("old", cycle), rebuilt = absl::StrCat("rebuilt", cycle),
                      wide = absl::StrCat("wide", cycle);
    std::vector<std::string> others = {old, rebuilt};
    for (const std::string& name : others) {
      EXPECT_THAT((*engine)->CreateStore({.name = name, .key_dim = 1, .value_dim = 1}), IsOk());
    }
    EXPECT_THAT(CreateWideStore(**engine, wide), IsOk());
    files_->FailAt(Fault::kDiskFull, 1 + Draw(6), /*stays=*/true);
    for (int i = 0; i < 30; ++i) journal_->Submit(**engine, Draw(2) == 0);
    const bool was_full = !journal_->AwaitAll().ok();
    // Writes that take some kilobytes have room now, as after the release of the reserve.
    files_->Heal();
    files_->SetFreeBytes(85'000'000);
    if (was_full) {
      ++failed;
      journal_->Submit(**engine, /*durable=*/true);
      const absl::Status refused = journal_->AwaitAll();
      EXPECT_THAT(refused, HasReason("STORAGE_FAILED"));
      EXPECT_TRUE(absl::StrContains(refused.message(), "85 MB are free, and 139 MB are needed"))
          << refused;
      // A rename makes room if it replaces a store. It needs room for what it says of the renamed.
      const auto rename = [&](const std::string& name, const std::string& new_name, bool replace) {
        return (*engine)
            ->RenameStore({.name = name, .new_name = new_name, .replace = replace})
            .status();
      };
      EXPECT_THAT(rename(rebuilt, "unused", /*replace=*/false), HasReason("STORAGE_FAILED"));
      EXPECT_THAT(rename(wide, old, /*replace=*/true), HasReason("STORAGE_FAILED"));
      EXPECT_THAT(rename(rebuilt, old, /*replace=*/true), IsOk());
      EXPECT_THAT((*engine)->GetStore(rebuilt).status(), HasReason("STORE_NOT_FOUND"));
      EXPECT_EQ((*engine)->ListStores("", "", 10)->stores.size(), 3u);
      others = {old};
    }
    others.push_back(wide);
    for (const std::string& name : others) {
      EXPECT_THAT((*engine)->DeleteStore(name), IsOk());
      EXPECT_THAT((*engine)->GetStore(name).status(), HasReason("STORE_NOT_FOUND"));
    }
    if (was_full) {
      journal_->Submit(**engine, /*durable=*/true);
      EXPECT_THAT(journal_->AwaitAll(), HasReason("STORAGE_FAILED"));
      EXPECT_TRUE((*engine)->stats().log_failed);
    }
    files_->SetFreeBytes(std::nullopt);
    if (Draw(2) == 0) {
      journal_->Submit(**engine, /*durable=*/true);
      EXPECT_THAT(journal_->AwaitAll(), IsOk());
      if ((*engine)->stats().log_failed) {  // As above.
        journal_->Submit(**engine, /*durable=*/true);
        EXPECT_THAT(journal_->AwaitAll(), IsOk());
        EXPECT_FALSE((*engine)->stats().log_failed);
      }
    } else {
      *engine = nullptr;
      engine = Open();
      ASSERT_THAT(engine, IsOk());
      EXPECT_EQ((*engine)->ListStores("", "", 10)->stores.size(), 1u);
      journal_->Check(**engine, Journal::MayLack::kNothing);
    }
    journal_->CheckRefusedAreMissing(**engine);
  }
  std::cout << cycle << " cycles, " << failed << " in which the disk was full\n";
}

// The deletion is synced in a log of its own, behind what was never synced.
TEST_F(FileSystemTest, APowerCutTakesNoDeletionOnAFullDisk) {
  const int faults = Cycles(30, 300);
  int failed = 0, cycle = 0;
  for (; failed < faults && !HasFailure(); ++cycle) {
    ASSERT_LT(cycle, 10 * faults) << "only " << failed << " met a full disk";
    SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", FirstSeed() + cycle));
    auto engine = BeginCycle(cycle, Journal::MayLack::kAppliedSuffix);
    ASSERT_THAT(engine, IsOk());
    EXPECT_EQ((*engine)->ListStores("", "", 10)->stores.size(), 1u);
    EXPECT_THAT((*engine)->CreateStore({.name = "old", .key_dim = 1, .value_dim = 1}), IsOk());
    files_->FailAt(Fault::kDiskFull, 1 + Draw(6), /*stays=*/true);
    for (int i = 0; i < 30; ++i) journal_->Submit(**engine, /*durable=*/false);
    failed += journal_->AwaitAll().ok() ? 0 : 1;
    files_->Heal();
    files_->SetFreeBytes(85'000'000);
    EXPECT_THAT((*engine)->DeleteStore("old"), IsOk());
    files_->FailAt(Fault::kPowerCut, 1, /*stays=*/true);
    *engine = nullptr;
    files_->LosePower(random_);
    files_->SetFreeBytes(std::nullopt);
  }
  std::cout << cycle << " power cuts, " << failed << " on a full disk\n";
}

// After a failed sync, the next one succeeds, though the kernel may have dropped what it had.
TEST_F(FileSystemTest, NothingIsDeletedOnAFullDiskAfterASyncThatHadNoRoom) {
  auto engine = Open();
  ASSERT_THAT(engine, IsOk());
  BeginStore(**engine, 0);
  EXPECT_THAT((*engine)->CreateStore({.name = "old", .key_dim = 1, .value_dim = 1}), IsOk());
  files_->FailAt(Fault::kSyncHasNoRoom, 1, /*stays=*/false);
  files_->SetFreeBytes(85'000'000);
  journal_->Submit(**engine, /*durable=*/true);
  EXPECT_THAT(journal_->AwaitAll(), HasReason("STORAGE_FAILED"));
  EXPECT_TRUE(files_->has_failed());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT((*engine)->DeleteStore("old"), HasReason("STORAGE_FAILED"));
  }
  files_->Heal();
  files_->SetFreeBytes(std::nullopt);
  *engine = nullptr;
  engine = Open();
  ASSERT_THAT(engine, IsOk());
  EXPECT_THAT((*engine)->GetStore("old"), IsOk());
  journal_->Check(**engine, Journal::MayLack::kNothing);
  EXPECT_THAT((*engine)->DeleteStore("old"), IsOk());
}

// RocksDB asserts that it need not begin a new write buffer again after it failed to, once the
// buffer has the deletion of a range.
TEST_F(FileSystemTest, BackupsOfALogThatHasFailedAreRefused) {
  auto engine = Open();
  ASSERT_THAT(engine, IsOk());
  BeginStore(**engine, 0);
  EXPECT_THAT((*engine)->CreateStore({.name = "old", .key_dim = 1, .value_dim = 1}), IsOk());
  EXPECT_THAT((*engine)->DeleteStore("old"), IsOk());
  files_->FailAt(Fault::kWriteFails, 1, /*stays=*/true);
  for (int i = 0; i < 3; ++i) {
    const absl::Status refused = (*engine)->CopyTo(absl::StrCat(directory_.path(), "/copy", i));
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
    EXPECT_TRUE((*engine)->stats().log_failed);
  }
  files_->Heal();
  *engine = nullptr;
  engine = Open();
  ASSERT_THAT(engine, IsOk());
  EXPECT_EQ((*engine)->ListStores("", "", 10)->stores.size(), 1u);
  EXPECT_THAT((*engine)->CopyTo(absl::StrCat(directory_.path(), "/whole")), IsOk());
}

TEST_F(FileSystemTest, ABackupThatTheDataDirectorysDiskHasNoRoomForNamesThatDirectory) {
  auto engine = Open();
  ASSERT_THAT(engine, IsOk());
  BeginStore(**engine, 0);
  files_->FailAt(Fault::kDiskFull, 1, /*stays=*/true);
  const absl::Status refused = (*engine)->CopyTo(directory_.path() + "/copy");
  EXPECT_THAT(refused, HasReason("STORAGE_FAILED"));
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("its own files in " + directory_.path() +
                                                      "/data, whose disk is full"));
}

TEST_F(FileSystemTest, AFailedAppendEndsTheChainThatItIsPartOf) {
  auto engine = Open();
  ASSERT_THAT(engine, IsOk());
  BeginStore(**engine, 0);
  const auto chain = std::make_shared<AppendChain>();
  const auto append = [&](std::uint64_t sequence) {
    const auto info = (*engine)->GetStore(store_);
    const std::vector<float> keys(static_cast<std::size_t>(info->config.key_dim), 1);
    const std::vector<float> values(static_cast<std::size_t>(info->config.value_dim), 1);
    return AppendAndWait(
               **engine,
               {.store = store_,
                .keys = {.data = keys.data(), .rows = 1, .cols = info->config.key_dim},
                .values = {.data = values.data(), .rows = 1, .cols = info->config.value_dim},
                .writer = "streaming",
                .sequence = sequence,
                .chain = chain})
        .status();
  };
  EXPECT_THAT(append(1), IsOk());
  files_->FailAt(Fault::kDiskFull, 1, /*stays=*/true);
  EXPECT_THAT(append(2), HasReason("STORAGE_FAILED"));
  files_->Heal();
  // There is room again, but what comes after the missing append must not be there without it.
  EXPECT_THAT(append(3), HasReason("CANCELLED"));
  EXPECT_EQ((*engine)->GetWriter(store_, "streaming")->last_sequence, 1u);
}

TEST_F(FileSystemTest, ADirectoryThatCannotBeBegunIsAnErrorAndCanBeBegunLater) {
  for (const Fault fault : {Fault::kDiskFull, Fault::kWriteFails, Fault::kSyncFails}) {
    for (int call = 1; call <= 20; ++call) {
      files_->FailAt(fault, call, /*stays=*/true);
      Open().status().IgnoreError();
    }
  }
  files_->Heal();
  EXPECT_THAT(Open(), IsOk());
}

TEST_F(FileSystemTest, FailedReadsAreErrorsAndPass) {
  const int faults = Cycles(30, 500);
  {
    auto engine = Open();
    ASSERT_THAT(engine, IsOk());
    BeginStore(**engine, 0);
    for (int i = 0; i < 100; ++i) journal_->Submit(**engine, /*durable=*/true);
    EXPECT_THAT(journal_->AwaitAll(), IsOk());
  }
  int failed = 0, cycle = 0;
  for (; failed < faults && !HasFailure(); ++cycle) {
    ASSERT_LT(cycle, 10 * faults) << "only " << failed << " could not be opened";
    SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", FirstSeed() + cycle));
    random_.seed(FirstSeed() + cycle);
    files_->FailAt(Fault::kReadFails, 1 + Draw(40), /*stays=*/Draw(2) == 0);
    auto engine = Open();
    files_->Heal();
    if (engine.ok()) {
      journal_->Check(**engine, Journal::MayLack::kNothing);
    } else {
      ++failed;
      EXPECT_EQ(engine.status().code(), absl::StatusCode::kUnavailable) << engine.status();
    }
    engine = nullptr;
    engine = Open();
    ASSERT_THAT(engine, IsOk());
    journal_->Check(**engine, Journal::MayLack::kNothing);
  }
  std::cout << cycle << " cycles, " << failed << " in which a failed read kept it closed\n";
}

}  // namespace
}  // namespace softlookup::testing
