#include "core/engine/kept_snapshots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "core/store/store_editor.h"
#include "softlookup/partial_lookup.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/told_clock.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;

constexpr std::int64_t kBytesMax = std::int64_t{1} << 30;

// A store whose writes are published as the engine does.
class WrittenStore {
 public:
  explicit WrittenStore(std::uint64_t number = 7, std::int64_t dim = 4)
      : store_(std::in_place, number,
               std::make_unique<StoreEditor>(
                   StoreConfig{.name = "s", .key_dim = dim, .value_dim = dim}),
               absl::UnixEpoch(), [](auto task) { task(); }) {}

  const Store& store() const { return *store_; }
  std::uint64_t revision() const { return store_->snapshot()->revision(); }
  StoreLease& lease() { return store_->editor().lease(); }

  void Append(KeptSnapshots& kept, std::int64_t count = 1) {
    const std::int64_t dim = store_->snapshot()->config().key_dim;
    const std::vector<float> floats = testing::NormalFloats(count * dim, 1);
    const MatrixView rows{floats.data(), count, dim};
    const auto appended = store_->editor().Append({.keys = rows, .values = rows});
    ASSERT_THAT(appended, IsOk());
    Publish(appended->snapshot, kept);
  }
  void DeleteAndCompact(KeptSnapshots& kept, std::uint64_t end) {
    const auto deleted = store_->editor().Delete({.end = end});
    ASSERT_THAT(deleted, IsOk());
    Publish(deleted->snapshot, kept);
    Publish(store_->editor().Compact(0, 1).snapshot, kept);
  }
  // Evicts all full blocks, as RangeResidency does.
  void Evict(KeptSnapshots& kept) {
    const std::shared_ptr<const Snapshot> before = store_->snapshot();
    store_->editor().Commit();
    const auto after = store_->editor().Evict([](std::int64_t) { return true; });
    store_->Publish(after);
    kept.OnEvicted(*store_, after->revision(),
                   static_cast<std::int64_t>(before->byte_size() - after->byte_size()));
  }
  void End() { store_.reset(); }

 private:
  void Publish(const std::shared_ptr<const Snapshot>& next, KeptSnapshots& kept) {
    kept.Keep(*store_, *next);
    store_->Publish(next);
  }

  std::optional<Store> store_;
};

class KeptSnapshotsTest : public ::testing::Test {
 protected:
  // Returns the revisions in [1, revision] that are there.
  static std::vector<std::uint64_t> Found(const KeptSnapshots& kept, const WrittenStore& written) {
    std::vector<std::uint64_t> found;
    for (std::uint64_t revision = 1; revision <= written.revision(); ++revision) {
      const auto snapshot = kept.Find(written.store(), revision);
      if (!snapshot.ok()) continue;
      EXPECT_EQ((*snapshot)->revision(), revision);
      found.push_back(revision);
    }
    return found;
  }

  testing::ToldClock clock_;
  ByteBudget budget_{0};
  KeptSnapshots kept_{kBytesMax, budget_, clock_};
  WrittenStore written_;
};

TEST_F(KeptSnapshotsTest, OnlyAStoreThatIsAskedForPartsHasThem) {
  for (int i = 0; i < 3; ++i) written_.Append(kept_);
  EXPECT_THAT(Found(kept_, written_), ::testing::ElementsAre(4));
  EXPECT_EQ(budget_.used_bytes(), 0);
  kept_.OnAsked(written_.store());
  for (int i = 0; i < 2; ++i) written_.Append(kept_);
  EXPECT_THAT(Found(kept_, written_), ::testing::ElementsAre(4, 5, 6));
  WrittenStore other(8);
  other.Append(kept_);
  EXPECT_THAT(Found(kept_, other), ::testing::ElementsAre(2));
}

TEST_F(KeptSnapshotsTest, WhatIsGoneHasAnErrorThatSaysWhatIsNewest) {
  written_.Append(kept_);
  const absl::Status gone = kept_.Find(written_.store(), 1).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ReasonOf(gone), kSnapshotGone.name);
  EXPECT_THAT(MetadataOf(gone),
              ::testing::UnorderedElementsAre(::testing::Pair("revision", "2"),
                                              ::testing::Pair("incarnation", "7")));
}

// A snapshot that was the newest for long is not old before it is replaced.
TEST_F(KeptSnapshotsTest, ASnapshotIsKeptFor10SecondsAfterItWasReplaced) {
  clock_.Advance(absl::Seconds(50));
  kept_.OnAsked(written_.store());
  written_.Append(kept_);
  clock_.Advance(absl::Seconds(9));
  kept_.OnAsked(written_.store());
  written_.Append(kept_);
  EXPECT_THAT(Found(kept_, written_), ::testing::ElementsAre(1, 2, 3));
  clock_.Advance(absl::Seconds(1));
  written_.Append(kept_);
  EXPECT_THAT(Found(kept_, written_), ::testing::ElementsAre(2, 3, 4));
  clock_.Advance(absl::Seconds(8));
  written_.Append(kept_);
  EXPECT_THAT(Found(kept_, written_), ::testing::ElementsAre(2, 3, 4, 5));
  // Nobody has asked for 10 s, so 5 is not kept.
  clock_.Advance(absl::Seconds(1));
  written_.Append(kept_);
  EXPECT_THAT(Found(kept_, written_), ::testing::Not(::testing::Contains(5)));
}

TEST_F(KeptSnapshotsTest, AStoreHasAtMostSoMany) {
  constexpr std::uint64_t kMax = KeptSnapshots::kCountMax, kMore = 76;
  kept_.OnAsked(written_.store());
  for (std::uint64_t i = 0; i < kMax + kMore; ++i) written_.Append(kept_);
  const std::vector<std::uint64_t> found = Found(kept_, written_);
  EXPECT_THAT(found, ::testing::SizeIs(kMax + 1)) << "with the newest one";
  EXPECT_EQ(found.front(), kMore + 1);
}

TEST_F(KeptSnapshotsTest, BytesCountAsReservedUntilTheyAreFree) {
  kept_.OnAsked(written_.store());
  written_.Append(kept_, 20'000);
  const std::int64_t before = budget_.used_bytes();
  EXPECT_LT(before, 4'096) << "an empty store";
  // The first block's rows are held by the snapshots from before the compaction alone.
  const std::int64_t block_bytes = written_.store().snapshot()->stored_blocks().block_rows() * 32;
  written_.DeleteAndCompact(kept_, 20'000);
  EXPECT_GT(budget_.used_bytes(), before + block_bytes);
  EXPECT_LT(budget_.used_bytes(), before + 2 * block_bytes);
  kept_.Drop(written_.store());
  EXPECT_EQ(budget_.used_bytes(), 0);
  EXPECT_THAT(Found(kept_, written_), ::testing::ElementsAre(written_.revision()));
}

TEST_F(KeptSnapshotsTest, TheOldestGiveWayToTheLimitOfBytes) {
  constexpr std::int64_t kDim = 10'000;
  constexpr std::int64_t kPanelBytes = 16 * 2 * kDim * 4;
  ByteBudget budget(0);
  KeptSnapshots kept(4 * kPanelBytes, budget, clock_);
  WrittenStore wide(9, kDim);
  kept.OnAsked(wide.store());
  for (int i = 0; i < 10; ++i) wide.Append(kept);
  EXPECT_LE(budget.used_bytes(), 4 * kPanelBytes);
  EXPECT_THAT(Found(kept, wide), ::testing::ElementsAre(8, 9, 10, 11));
}

TEST_F(KeptSnapshotsTest, NothingIsKeptBeyondTheBudget) {
  ByteBudget budget(1'000'000);
  KeptSnapshots kept(kBytesMax, budget, clock_);
  kept.OnAsked(written_.store());
  budget.Add(1'000'000);
  written_.Append(kept);
  EXPECT_THAT(Found(kept, written_), ::testing::ElementsAre(2));
  EXPECT_EQ(budget.used_bytes(), 1'000'000);
  budget.Add(-1'000'000);
  written_.Append(kept);
  EXPECT_THAT(Found(kept, written_), ::testing::ElementsAre(2, 3));
}

class EvictedRowsTest : public KeptSnapshotsTest {
 protected:
  // 20,000 rows of 8 floats are full blocks, but for the last rows.
  static constexpr std::int64_t kEvictedBytes = 500'000;

  // Makes revisions 1 to 3, and evicts the rows of the last one.
  void AppendAndEvict(KeptSnapshots& kept) {
    kept.OnAsked(written_.store());
    written_.Append(kept, 20'000);
    written_.Append(kept);
    written_.Evict(kept);
  }
  bool HasRows(const KeptSnapshots& kept, std::uint64_t revision) const {
    return (*kept.Find(written_.store(), revision))->stored_blocks().IsResident(0);
  }
};

TEST_F(EvictedRowsTest, LookupsThatHaveBegunFindThemForASecond) {
  AppendAndEvict(kept_);
  EXPECT_THAT(Found(kept_, written_), ::testing::ElementsAre(1, 2, 3));
  EXPECT_TRUE(HasRows(kept_, 2));
  EXPECT_FALSE(HasRows(kept_, 3));
  EXPECT_GT(budget_.used_bytes(), kEvictedBytes);
  clock_.AwaitWaits(1);
  clock_.Advance(KeptSnapshots::kEvictedTime);
  clock_.AwaitWaits(2);
  EXPECT_THAT(Found(kept_, written_), ::testing::ElementsAre(3));
  EXPECT_EQ(budget_.used_bytes(), 0);
}

TEST_F(EvictedRowsTest, EachEvictionHasItsSecond) {
  AppendAndEvict(kept_);
  clock_.AwaitWaits(1);
  written_.Append(kept_, 20'000);
  clock_.Advance(KeptSnapshots::kEvictedTime / 2);
  written_.Evict(kept_);
  clock_.Advance(KeptSnapshots::kEvictedTime / 2);
  clock_.AwaitWaits(2);
  EXPECT_THAT(Found(kept_, written_), ::testing::ElementsAre(3, 4));
  clock_.Advance(KeptSnapshots::kEvictedTime);
  clock_.AwaitWaits(3);
  EXPECT_THAT(Found(kept_, written_), ::testing::ElementsAre(4));
}

TEST_F(EvictedRowsTest, AStoreThatIsDroppedHasNone) {
  AppendAndEvict(kept_);
  kept_.Drop(written_.store());
  EXPECT_EQ(budget_.used_bytes(), 0);
}

TEST_F(EvictedRowsTest, TheyGiveWayToOtherRows) {
  AppendAndEvict(kept_);
  kept_.DropEvicted();
  EXPECT_THAT(Found(kept_, written_), ::testing::ElementsAre(3));
  EXPECT_EQ(budget_.used_bytes(), 0);
}

TEST_F(EvictedRowsTest, TheyGiveWayToSnapshotsThatHaveNone) {
  ByteBudget budget(1'000'000);
  KeptSnapshots kept(kBytesMax, budget, clock_);
  AppendAndEvict(kept);
  EXPECT_TRUE(HasRows(kept, 2));
  budget.Add(1'000'000 - budget.used_bytes());
  written_.Append(kept);
  EXPECT_THAT(Found(kept, written_), ::testing::ElementsAre(3, 4));
  EXPECT_LT(budget.used_bytes(), 1'000'000 - kEvictedBytes);
}

TEST_F(EvictedRowsTest, TheyStayIfOtherSnapshotsReachTheirOwnLimit) {
  constexpr std::int64_t kDim = 10'000;
  KeptSnapshots kept(4 * 16 * 2 * kDim * 4, budget_, clock_);
  WrittenStore wide(9, kDim);
  kept.OnAsked(wide.store());
  for (int i = 0; i < 10; ++i) wide.Append(kept);
  AppendAndEvict(kept);
  wide.Append(kept);
  EXPECT_THAT(Found(kept, written_), ::testing::ElementsAre(1, 2, 3));
  EXPECT_TRUE(HasRows(kept, 2));
}

TEST_F(EvictedRowsTest, TheyAreNotKeptBeyondTheBudget) {
  ByteBudget budget(1'000'000);
  KeptSnapshots kept(kBytesMax, budget, clock_);
  budget.Add(1'000'000 - kEvictedBytes);
  AppendAndEvict(kept);
  EXPECT_THAT(Found(kept, written_), ::testing::ElementsAre(3));
}

TEST_F(EvictedRowsTest, NothingIsReservedIfNobodyHasAsked) {
  written_.Append(kept_, 20'000);
  written_.Evict(kept_);
  EXPECT_EQ(budget_.used_bytes(), 0);
}

TEST_F(KeptSnapshotsTest, OldOnesAreFreedThoughNobodyCalls) {
  absl::Notification freed;
  kept_.OnAsked(written_.store());
  written_.Append(kept_);
  written_.lease().OnEnd([&] { freed.Notify(); });
  written_.End();
  EXPECT_FALSE(freed.HasBeenNotified());
  clock_.AwaitWaits(1);
  clock_.Advance(absl::Seconds(11));
  freed.WaitForNotification();
  EXPECT_EQ(budget_.used_bytes(), 0);
}

TEST_F(KeptSnapshotsTest, ManyAskBesideAWriter) {
  kept_.OnAsked(written_.store());
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        const std::uint64_t newest = written_.store().snapshot()->revision();
        const std::uint64_t revision = newest > 20 ? newest - 20 : newest;
        kept_.OnAsked(written_.store());
        const auto found = kept_.Find(written_.store(), revision);
        ASSERT_THAT(found, IsOk());
        ASSERT_EQ((*found)->revision(), revision);
      }
    });
  }
  for (int i = 0; i < 300; ++i) written_.Append(kept_);
  done = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace softlookup
