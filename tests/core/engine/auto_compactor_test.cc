#include "core/engine/auto_compactor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "core/engine/open_on_log.h"
#include "core/storage/commit_log.h"
#include "core/store/store_editor.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/watched_log.h"

namespace softlookup {
namespace {

using ::softlookup::testing::AppendAndWait;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::LookupAndWait;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::TemporaryDirectory;
using ::softlookup::testing::WatchedLog;
using ::testing::ElementsAre;

constexpr std::int64_t kDim = 4;
constexpr std::int64_t kBlockRows = 1024;  // Of rows as small as these.

// Notes the compactions that the engine reports.
class NotingObserver final : public EngineObserver {
 public:
  void OnAutoCompactionBegin(absl::string_view store) override {
    Note(absl::StrCat("begin ", store));
  }
  void OnAutoCompactionEnd(absl::string_view store, const absl::Status& status,
                           std::uint64_t dropped_rows) override {
    Note(absl::StrCat("end ", store, " ", absl::StatusCodeToString(status.code()), " ",
                      dropped_rows));
  }
  // Waits for `count` events, and returns all.
  std::vector<std::string> Await(std::size_t count) {
    const auto has_them = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return events_.size() >= count;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&has_them));
    return events_;
  }

 private:
  void Note(std::string event) {
    absl::MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
  }

  absl::Mutex mutex_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
};

// An engine in a directory of its own.
class AutoCompactorTest : public ::testing::Test {
 protected:
  // Opens the directory, in place of the engine that was open.
  void Open(double compact_above) {
    engine_ = nullptr;
    absl::StatusOr<std::unique_ptr<CommitLog>> log = OpenCommitLog(directory_.path());
    ASSERT_THAT(log, IsOk());
    auto watched = std::make_unique<WatchedLog>(*std::move(log));
    log_ = watched.get();
    auto engine =
        OpenOnLog({.compact_above = compact_above, .observer = observer_}, std::move(watched),
                  [](const absl::Status& damage) { ADD_FAILURE() << damage; });
    ASSERT_THAT(engine, IsOk());
    engine_ = *std::move(engine);
  }
  void Create(const std::string& store) {
    ASSERT_THAT(engine_->CreateStore({.name = store, .key_dim = kDim, .value_dim = kDim}), IsOk());
  }
  void AppendRows(const std::string& store, std::int64_t count,
                  const std::vector<std::uint64_t>& ids = {}) {
    ASSERT_LE(count, kRowsMax);
    const MatrixView rows{.data = floats_.data(), .rows = count, .cols = kDim};
    ASSERT_THAT(AppendAndWait(*engine_, {.store = store,
                                         .keys = rows,
                                         .values = rows,
                                         .ids = ids,
                                         .on_conflict = OnConflict::kReplace}),
                IsOk());
  }
  void DeleteRows(const std::string& store, std::uint64_t begin, std::uint64_t end) {
    ASSERT_THAT(engine_->DeleteRows(store, {.begin = begin, .end = end}), IsOk());
  }
  // Makes a store in which half of the rows could be dropped. Stores that were queued before it are
  // looked at before it.
  void AppendAndDeleteBlock(const std::string& store) {
    Create(store);
    AppendRows(store, 2 * kBlockRows);
    DeleteRows(store, 0, kBlockRows);
  }
  // Waits until `count` compactions have ended.
  void AwaitCompactions(std::uint64_t count) const {
    EXPECT_TRUE(testing::AwaitThat([&] { return engine_->stats().compactions >= count; }));
  }
  void AwaitDroppedRows(std::uint64_t count) const {
    EXPECT_TRUE(testing::AwaitThat([&] { return engine_->stats().dropped_rows >= count; }));
  }
  // Returns whether the row at `position` is in a block that has lost rows.
  bool IsCompacted(const std::string& store, std::uint64_t position) const {
    const absl::StatusOr<MemoryState> memory =
        engine_->GetMemory(store, "", std::nullopt, position + 1);
    EXPECT_TRUE(memory.ok() || ReasonOf(memory.status()) == "ROWS_COMPACTED") << memory.status();
    return !memory.ok();
  }
  std::vector<float> LookUp(const std::string& store) const {
    const MatrixView queries{.data = floats_.data(), .rows = 3, .cols = kDim};
    const auto answer = LookupAndWait(*engine_, {.store = store, .queries = queries});
    EXPECT_THAT(answer, IsOk());
    return answer.ok() ? answer->values : std::vector<float>();
  }

  static constexpr std::int64_t kRowsMax = 20 * kBlockRows;
  const std::vector<float> floats_ = NormalFloats(kRowsMax * kDim, 1);
  const TemporaryDirectory directory_;
  const std::shared_ptr<NotingObserver> observer_ = std::make_shared<NotingObserver>();
  WatchedLog* log_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

TEST_F(AutoCompactorTest, TheBeginAndTheEndOfEachCompactionAreReported) {
  Open(0.5);
  AppendAndDeleteBlock("s");
  EXPECT_THAT(observer_->Await(2), ElementsAre("begin s", "end s OK 1024"));
  Create("t");
  AppendRows("t", 2 * kBlockRows);
  int commits = 0;
  log_->before_commit = [&] {  // The first commit is that of the deletion.
    return ++commits == 2 ? MakeError(reasons::kStorageFailed, "no disk") : absl::OkStatus();
  };
  DeleteRows("t", 0, kBlockRows);
  EXPECT_THAT(observer_->Await(4),
              ElementsAre("begin s", "end s OK 1024", "begin t", "end t UNAVAILABLE 0"));
}

TEST_F(AutoCompactorTest, AStoreIsCompactedOnceThePartOfItsRowsCanBeDropped) {
  Open(0.5);
  Create("s");
  AppendRows("s", 3 * kBlockRows + 10);
  DeleteRows("s", 0, kBlockRows);
  AppendAndDeleteBlock("other");
  AwaitCompactions(1);
  EXPECT_EQ(engine_->stats().dropped_rows, std::uint64_t{kBlockRows});
  EXPECT_TRUE(IsCompacted("other", 5));
  EXPECT_FALSE(IsCompacted("s", 5)) << "a third of its rows can be dropped";

  DeleteRows("s", kBlockRows + 10, 2 * kBlockRows);
  AwaitCompactions(2);
  EXPECT_EQ(engine_->stats().dropped_rows, std::uint64_t{3 * kBlockRows - 10});
  EXPECT_TRUE(IsCompacted("s", 5));
  EXPECT_TRUE(IsCompacted("s", kBlockRows + 5));
  EXPECT_FALSE(IsCompacted("s", 2 * kBlockRows + 5));
  EXPECT_EQ(engine_->GetStore("s")->row_count, std::uint64_t{3 * kBlockRows + 10});
  EXPECT_EQ(engine_->GetStore("s")->live_row_count, std::uint64_t{kBlockRows + 20});

  const std::vector<float> answer = LookUp("s");
  Open(0);
  EXPECT_EQ(LookUp("s"), answer);
  EXPECT_TRUE(IsCompacted("s", 5));
}

TEST_F(AutoCompactorTest, RowsThatWereDroppedCountNoMore) {
  Open(0.5);
  AppendAndDeleteBlock("s");
  AwaitCompactions(1);
  // Of 3 blocks that hold rows, 1 can lose them. Of all 4 blocks that ever were, 2 did or can.
  AppendRows("s", 2 * kBlockRows);
  DeleteRows("s", kBlockRows, 2 * kBlockRows);
  AppendAndDeleteBlock("other");
  AwaitCompactions(2);
  EXPECT_FALSE(IsCompacted("s", kBlockRows + 5));
  EXPECT_TRUE(IsCompacted("other", 5));
}

TEST_F(AutoCompactorTest, RowsThatAnAppendReplacesAreDropped) {
  Open(0.5);
  Create("s");
  std::vector<std::uint64_t> ids(kBlockRows);
  std::iota(ids.begin(), ids.end(), std::uint64_t{1});
  AppendRows("s", kBlockRows, ids);
  AppendRows("s", kBlockRows, ids);
  AwaitCompactions(1);
  EXPECT_EQ(engine_->stats().dropped_rows, std::uint64_t{kBlockRows});
}

TEST_F(AutoCompactorTest, TheLastBlockLosesItsRowsWhenTheNextOneBegins) {
  Open(0.5);
  Create("s");
  AppendRows("s", kBlockRows);
  DeleteRows("s", 0, kBlockRows);
  AppendAndDeleteBlock("other");
  AwaitCompactions(1);
  EXPECT_FALSE(IsCompacted("s", 5));
  AppendRows("s", 1);
  AwaitCompactions(2);
  EXPECT_TRUE(IsCompacted("s", 5));
}

TEST_F(AutoCompactorTest, StoresThatAreLoadedAreLookedAt) {
  Open(0);
  AppendAndDeleteBlock("a");
  AppendAndDeleteBlock("b");
  Open(0.5);
  AwaitCompactions(2);
  EXPECT_TRUE(IsCompacted("a", 5));
  EXPECT_TRUE(IsCompacted("b", 5));
}

TEST_F(AutoCompactorTest, WithoutConsentACompactionMustBeAskedForAndCountsAsWell) {
  Open(0);
  AppendAndDeleteBlock("s");
  const CancelToken cancel;
  EXPECT_EQ(ReasonOf(engine_->CompactStore({.store = "s"}, cancel).status()),
            "COMPACTION_ENDS_MEMORIES");
  EXPECT_EQ(engine_->stats().compactions, 0u);
  EXPECT_FALSE(IsCompacted("s", 5));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(engine_->CompactStore({.store = "s", .end_memories = true}, cancel), IsOk());
    EXPECT_EQ(engine_->stats().compactions, 1u) << "the second one drops nothing";
    EXPECT_EQ(engine_->stats().dropped_rows, std::uint64_t{kBlockRows});
  }
}

TEST_F(AutoCompactorTest, AnEngineWithoutADirectoryCompactsToo) {
  engine_ = Engine::Create({.compact_above = 0.5});
  AppendAndDeleteBlock("s");
  AwaitCompactions(1);
  EXPECT_TRUE(IsCompacted("s", 5));
}

TEST_F(AutoCompactorTest, ARenamedStoreIsCompactedUnderItsNewName) {
  Open(0.5);
  Create("s");
  AppendRows("s", 2 * kBlockRows);
  DeleteRows("s", 0, kBlockRows);
  ASSERT_THAT(engine_->RenameStore({.name = "s", .new_name = "t"}), IsOk());
  AwaitDroppedRows(kBlockRows);
  EXPECT_TRUE(IsCompacted("t", 5));
}

TEST_F(AutoCompactorTest, AStoreThatWasCompactedIsLookedAtAgainIfMoreRowsDiedMeanwhile) {
  Open(0.25);
  Create("s");
  AppendRows("s", 4 * kBlockRows);
  absl::Notification compacts, go_on;
  int commits = 0;
  log_->before_commit = [&] {
    if (++commits == 2) {  // The first one is that of the deletion.
      compacts.Notify();
      go_on.WaitForNotification();
    }
    return absl::OkStatus();
  };
  DeleteRows("s", 0, kBlockRows);
  compacts.WaitForNotification();
  std::thread deletion([&] { DeleteRows("s", kBlockRows, 2 * kBlockRows); });
  go_on.Notify();
  deletion.join();
  AwaitDroppedRows(2 * kBlockRows);
  EXPECT_TRUE(IsCompacted("s", kBlockRows + 5));
}

TEST_F(AutoCompactorTest, ACompactionThatFailedIsTriedAgainAtTheNextDeletion) {
  Open(0.25);
  Create("s");
  AppendRows("s", 4 * kBlockRows);
  absl::Notification failed;
  int commits = 0;
  log_->before_commit = [&] {
    if (++commits != 2) return absl::OkStatus();  // The first one is that of the deletion.
    failed.Notify();
    return MakeError(reasons::kStorageFailed, "The disk has a bad day");
  };
  DeleteRows("s", 0, kBlockRows);
  failed.WaitForNotification();
  const std::uint64_t revision = engine_->GetStore("s")->revision;
  AppendAndDeleteBlock("other");
  AwaitCompactions(1);
  EXPECT_TRUE(IsCompacted("other", 5));
  EXPECT_EQ(engine_->GetStore("s")->revision, revision) << "nothing was tried again";
  EXPECT_EQ(engine_->stats().failed_compactions, 1);
  DeleteRows("s", 4 * kBlockRows - 1, 4 * kBlockRows);
  AwaitCompactions(2);
  EXPECT_TRUE(IsCompacted("s", 5));
}

TEST_F(AutoCompactorTest, AStopEndsACompactionAndTheNextStartGoesOn) {
  constexpr std::int64_t kBlocks = 18;  // One write compacts fewer.
  Open(0);
  Create("s");
  AppendRows("s", (kBlocks + 1) * kBlockRows);
  DeleteRows("s", 0, kBlocks * kBlockRows);
  // The loaded store is compacted at once, so the engine is closed amid that, or before or after.
  Open(0.01);
  engine_ = nullptr;
  Open(0.01);
  EXPECT_TRUE(testing::AwaitThat([&] { return IsCompacted("s", kBlocks * kBlockRows - 5); }));
  for (std::int64_t block = 0; block < kBlocks; ++block) {
    EXPECT_TRUE(IsCompacted("s", static_cast<std::uint64_t>(block * kBlockRows + 5))) << block;
  }
  absl::Status rest;
  do {
    rest = engine_->CompactStore({.store = "s"}, CancelToken()).status();
  } while (ReasonOf(rest) == "COMPACTION_IN_PROGRESS");
  EXPECT_THAT(rest, IsOk()) << "there is nothing left to drop";
}

TEST(CompactionRowsTest, HeldAreTheRowsThatNoCompactionHasDropped) {
  StoreEditor editor(StoreConfig{.name = "s", .key_dim = 1, .value_dim = 1});
  const std::vector<float> ones(3 * kBlockRows + 7, 1);
  const MatrixView rows{.data = ones.data(), .rows = 3 * kBlockRows + 7, .cols = 1};
  ASSERT_THAT(editor.Append({.keys = rows, .values = rows}), IsOk());
  const auto count = [&] { return CountCompactionRows(editor.newest()->stored_blocks()); };
  EXPECT_EQ(count().held, 3 * kBlockRows + 7);
  EXPECT_EQ(count().to_drop, 0);
  // In the first block a quarter is live, in the second one more, in the last one nothing.
  constexpr std::uint64_t kQuarter = kBlockRows / 4;
  ASSERT_THAT(editor.Delete({.begin = kQuarter, .end = kBlockRows}), IsOk());
  ASSERT_THAT(editor.Delete({.begin = kBlockRows, .end = kBlockRows + 3 * kQuarter - 1}), IsOk());
  ASSERT_THAT(editor.Delete({.begin = 3 * kBlockRows}), IsOk());
  EXPECT_EQ(count().held, 3 * kBlockRows + 7);
  EXPECT_EQ(count().to_drop, 3 * kBlockRows / 4);
  editor.Compact(0, 3);
  EXPECT_EQ(count().held, 3 * kBlockRows + 7 - 3 * kBlockRows / 4);
  EXPECT_EQ(count().to_drop, 0);
  ASSERT_THAT(editor.Delete({.begin = 0, .end = 3}), IsOk());
  EXPECT_EQ(count().to_drop, 3);
}

}  // namespace
}  // namespace softlookup
