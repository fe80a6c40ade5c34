// Restores that are refused, that fail, or that are ended: nothing of them is left, in RAM and on
// the disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/engine/store_restorer.h"
#include "softlookup/engine.h"
#include "tests/core/engine/compaction_checks.h"
#include "tests/core/engine/restore_fixture.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::ExpectSameRows;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::kWideDim;
using ::softlookup::testing::kWideRows;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::RestoreStoreTest;
using ::softlookup::testing::RowsOf;
using ::softlookup::testing::RowsTo;
using ::softlookup::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RestoreFaultTest : public RestoreStoreTest {};

TEST_F(RestoreFaultTest, AnErrorInTheMiddleOfTheCopyLeavesNothing) {
  FillWide();
  Copy();
  for (int good_commits = 0;; ++good_commits) {
    SCOPED_TRACE(good_commits);
    int commits = 0;
    log_->before_commit = [&] {
      return commits++ == good_commits ? absl::UnavailableError("no disk") : absl::OkStatus();
    };
    const auto restored = Restore("s", "t");
    log_->before_commit = [] { return absl::OkStatus(); };
    if (restored.ok()) {
      EXPECT_GT(good_commits, 2) << "the store is copied in too few writes";
      break;
    }
    EXPECT_THAT(restored, StatusIs(absl::StatusCode::kUnavailable, "no disk"));
    ASSERT_NO_FATAL_FAILURE(ExpectNothingIsLeft());
    ASSERT_THAT(engine_->DeleteStore("t"), IsOk());
  }
}

TEST_F(RestoreFaultTest, AStartDeletesWhatACrashLeftAndGivesItsNumberToNoOtherStore) {
  FillWide();
  Copy();
  const std::uint64_t number = NumberOf("s");
  for (const int good_commits : {1, 2}) {
    SCOPED_TRACE(good_commits);
    int commits = 0;
    log_->before_commit = [&] {
      return commits++ < good_commits ? absl::OkStatus() : absl::UnavailableError("dead");
    };
    EXPECT_THAT(Restore("s", "t"), StatusIs(absl::StatusCode::kUnavailable, "dead"));
    const auto [numbers, unfinished] = NumbersIn("data");
    ASSERT_EQ(numbers.size(), 2u);
    ASSERT_EQ(unfinished.size(), 1u);
    EXPECT_GT(*unfinished.begin(), number);
    LoadObserver ignore;
    EXPECT_THAT(Engine::Verify(Path("data"), ignore), IsOk());
    Open();
    EXPECT_THAT(Names(), ElementsAre("s"));
    ASSERT_THAT(engine_->CreateStore({.name = "new", .key_dim = 1, .value_dim = 1}), IsOk());
    EXPECT_GT(NumberOf("new"), *unfinished.begin());
    ASSERT_THAT(engine_->DeleteStore("new"), IsOk());
    const auto [left, left_unfinished] = NumbersIn("data");
    EXPECT_THAT(left, ElementsAre(number));
    EXPECT_THAT(left_unfinished, IsEmpty());
    Open();
  }
  ExpectNothingIsLeft();
}

TEST_F(RestoreFaultTest, WhatACrashLeftInAnEmptyDirectoryIsNoStore) {
  FillWide();
  Copy();
  Open("empty");
  int commits = 0;
  log_->before_commit = [&] {
    return commits++ < 1 ? absl::OkStatus() : absl::UnavailableError("dead");
  };
  EXPECT_THAT(Restore("s", "t"), StatusIs(absl::StatusCode::kUnavailable, "dead"));
  const auto [numbers, unfinished] = NumbersIn("empty");
  ASSERT_EQ(numbers, unfinished);
  ASSERT_EQ(unfinished.size(), 1u);
  Open("empty");
  EXPECT_THAT(Names(), IsEmpty());
  ASSERT_THAT(engine_->CreateStore({.name = "new", .key_dim = 1, .value_dim = 1}), IsOk());
  const std::uint64_t created = NumberOf("new");
  EXPECT_GT(created, *unfinished.begin());
  const auto [left, left_unfinished] = NumbersIn("empty");
  EXPECT_THAT(left, ElementsAre(created));
  EXPECT_THAT(left_unfinished, IsEmpty());
}

TEST_F(RestoreFaultTest, ABackupThatIsMadeMeanwhileHasNothingOfTheStore) {
  FillWide();
  Copy();
  int commits = 0;
  log_->before_commit = [&] {
    if (++commits == 2) {
      EXPECT_THAT(engine_->CopyTo(Path("meanwhile")), IsOk());
    }
    return absl::OkStatus();
  };
  ASSERT_THAT(Restore("s", "t"), IsOk());
  log_->before_commit = [] { return absl::OkStatus(); };
  EXPECT_EQ(NumbersIn("meanwhile").second.size(), 1u);
  LoadObserver ignore;
  EXPECT_THAT(Engine::Verify(Path("meanwhile"), ignore), IsOk());
  Open("meanwhile");
  EXPECT_THAT(Names(), ElementsAre("s"));
  EXPECT_THAT(NumbersIn("meanwhile").second, IsEmpty());
}

TEST_F(RestoreFaultTest, ACancelEndsItAndLeavesNothing) {
  FillWide();
  Copy();
  for (const int last_commit : {1, 2}) {
    SCOPED_TRACE(last_commit);
    CancelToken cancel;
    int commits = 0;
    log_->before_commit = [&] {
      if (++commits == last_commit) cancel.Cancel();
      return absl::OkStatus();
    };
    EXPECT_EQ(engine_->RestoreStore({.directory = Path("copy"), .store = "s", .name = "t"}, cancel)
                  .status()
                  .code(),
              absl::StatusCode::kCancelled);
    EXPECT_EQ(commits, last_commit + 1) << "the last one deletes";
    ASSERT_NO_FATAL_FAILURE(ExpectNothingIsLeft());
    ASSERT_THAT(engine_->DeleteStore("t"), IsOk());
  }
  CancelToken cancelled;
  cancelled.Cancel();
  EXPECT_EQ(engine_->RestoreStore({.directory = Path("copy"), .store = "s", .name = "t"}, cancelled)
                .status()
                .code(),
            absl::StatusCode::kCancelled);
  const CancelToken late(absl::InfinitePast());
  EXPECT_EQ(engine_->RestoreStore({.directory = Path("copy"), .store = "s", .name = "t"}, late)
                .status()
                .code(),
            absl::StatusCode::kDeadlineExceeded);
  ExpectNothingIsLeft();
}

TEST_F(RestoreFaultTest, ANameThatIsTakenMeanwhileIsNotTakenAgain) {
  FillWide();
  Copy();
  const auto take_name = [&](const StoreInfo& info) {
    EXPECT_EQ(info.config.name, "t");
    EXPECT_EQ(info.row_count, static_cast<std::uint64_t>(kWideRows));
    return engine_->CreateStore({.name = "t", .key_dim = 1, .value_dim = 1}).status();
  };
  const auto restored = engine_->RestoreStore(
      {.directory = Path("copy"), .store = "s", .name = "t", .check_store = take_name},
      CancelToken());
  EXPECT_EQ(ReasonOf(restored.status()), "STORE_EXISTS");
  EXPECT_EQ(engine_->GetStore("t")->row_count, 0u);
  ASSERT_THAT(engine_->DeleteStore("t"), IsOk());
  ExpectNothingIsLeft();
}

TEST_F(RestoreFaultTest, ATakenNameIsRefusedBeforeTheCopyIsRead) {
  ASSERT_THAT(engine_->CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}), IsOk());
  Copy();
  bool is_read = false;
  const auto note = [&] {
    is_read = true;
    return absl::OkStatus();
  };
  const StoreRestore restore{.directory = Path("copy"), .store = "s", .check_directory = note};
  EXPECT_EQ(ReasonOf(engine_->RestoreStore(restore, CancelToken()).status()), "STORE_EXISTS");
  EXPECT_FALSE(is_read);
}

TEST_F(RestoreFaultTest, OfSeveralThatWantANameOneGetsIt) {
  FillWide();
  Copy();
  std::vector<absl::Status> ends(4);
  std::vector<std::thread> threads;
  for (absl::Status& end : ends) {
    threads.emplace_back([&] { end = Restore("s", "t").status(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::count_if(ends.begin(), ends.end(), [](const auto& end) { return end.ok(); }), 1);
  for (const absl::Status& end : ends) {
    if (!end.ok()) {
      EXPECT_EQ(ReasonOf(end), "STORE_EXISTS");
    }
  }
  ExpectSameRows(RowsOf(*engine_, "t"), RowsOf(*engine_, "s"));
  ASSERT_THAT(engine_->DeleteStore("t"), IsOk());
  ExpectNothingIsLeft();
}

TEST_F(RestoreFaultTest, OtherWritesGoOnMeanwhile) {
  FillWide();
  Copy();
  // Runs on the thread that restores, between its writes.
  const std::vector<float> row = NormalFloats(kWideDim, 3);
  const auto append = [&](const StoreInfo&) {
    return AppendAndWait(*engine_, RowsTo("s", row, row, 1)).status();
  };
  ASSERT_THAT(engine_->RestoreStore(
                  {.directory = Path("copy"), .store = "s", .name = "t", .check_store = append},
                  CancelToken()),
              IsOk());
  EXPECT_EQ(engine_->GetStore("s")->row_count, engine_->GetStore("t")->row_count + 1);
}

TEST_F(RestoreFaultTest, AnErrorOfACheckEndsIt) {
  FillWide();
  Copy();
  const absl::Status error = absl::ResourceExhaustedError("too large for this caller");
  bool was_loaded = false;
  StoreRestore restore{.directory = Path("copy"), .store = "s", .name = "t"};
  restore.check_store = [&](const StoreInfo&) {
    was_loaded = true;
    return error;
  };
  EXPECT_EQ(engine_->RestoreStore(restore, CancelToken()).status(), error);
  EXPECT_TRUE(was_loaded);
  was_loaded = false;
  restore.check_directory = [] { return absl::DataLossError("torn"); };
  EXPECT_EQ(engine_->RestoreStore(restore, CancelToken()).status(), absl::DataLossError("torn"));
  EXPECT_FALSE(was_loaded);
  ExpectNothingIsLeft();
}

TEST_F(RestoreFaultTest, LimitsHoldForAStoreThatIsRestored) {
  FillWide();
  Copy();
  const auto bytes = static_cast<std::int64_t>(engine_->GetStore("s")->byte_size);
  limits_.ram_bytes_max = bytes + bytes / 2;
  Open();
  const absl::Status no_room = Restore("s", "t").status();
  EXPECT_EQ(ReasonOf(no_room), "MEMORY_LIMIT");
  EXPECT_TRUE(absl::IsResourceExhausted(no_room)) << no_room;
  const std::vector<float> row = NormalFloats(kWideDim, 3);
  EXPECT_THAT(AppendAndWait(*engine_, RowsTo("s", row, row, 1)), IsOk()) << "nothing is reserved";
  limits_ = {};
  limits_.store_count_max = 1;
  Open();
  EXPECT_EQ(ReasonOf(Restore("s", "t").status()), "TOO_MANY_STORES");
  limits_ = {};
  limits_.ram_bytes_max = 3 * bytes;
  Open();
  Copy();
  ExpectNothingIsLeft();
}

TEST_F(RestoreFaultTest, IsRefusedUntilTheStoresAreLoaded) {
  Copy();
  engine_ = nullptr;
  const auto loading = Engine::Open({}, Path("data"));
  ASSERT_THAT(loading, IsOk());
  EXPECT_EQ(ReasonOf((*loading)
                         ->RestoreStore({.directory = Path("copy"), .store = "s"}, CancelToken())
                         .status()),
            "LOADING");
}

}  // namespace
}  // namespace softlookup
