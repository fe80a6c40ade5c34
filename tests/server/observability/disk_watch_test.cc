#include "server/observability/disk_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/told_clock.h"

namespace softlookup::server {
namespace {

using softlookup::testing::TemporaryDirectory;

// What a test lets a watch read. A reading that has begun waits while the gate is shut.
class Disk {
 public:
  DiskWatch::Read reader() const {
    return [state = state_] {
      absl::MutexLock lock(&state->mutex);
      ++state->begun;
      state->mutex.Await(absl::Condition(&state->is_open));
      return DiskStats{.spaces = {}, .newest_backup = absl::FromUnixSeconds(state->begun)};
    };
  }
  void SetOpen(bool is_open) {
    absl::MutexLock lock(&state_->mutex);
    state_->is_open = is_open;
  }
  void AwaitBegun(int count) {
    absl::MutexLock lock(&state_->mutex);
    const auto has_begun = [&] { return state_->begun >= count; };
    state_->mutex.Await(absl::Condition(&has_begun));
  }

 private:
  struct State {
    absl::Mutex mutex;
    int begun = 0;
    bool is_open = true;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Which reading the latest figures are of; 0 if there are none.
int LatestOf(const DiskWatch& watch) {
  const std::optional<absl::Time> time = watch.latest().newest_backup;
  return time.has_value() ? static_cast<int>(absl::ToUnixSeconds(*time)) : 0;
}

// Reads until the figures of reading `number` are there.
void AwaitLatest(const DiskWatch& watch, int number) {
  EXPECT_TRUE(testing::AwaitThat([&] { return LatestOf(watch) >= number; }));
}

TEST(DiskWatchTest, ReadsAtOnceAndWhenAsked) {
  const Disk disk;
  DiskWatch watch(disk.reader());
  AwaitLatest(watch, 1);
  watch.ReadSoon();
  AwaitLatest(watch, 2);
}

TEST(DiskWatchTest, ADiskThatHangsHoldsNobodyUp) {
  Disk disk;
  disk.SetOpen(false);
  {
    DiskWatch watch(disk.reader());
    disk.AwaitBegun(1);
    EXPECT_EQ(LatestOf(watch), 0);
    watch.ReadSoon();
    EXPECT_EQ(LatestOf(watch), 0);
  }  // The reading that is under way outlives the watch.
  disk.SetOpen(true);
}

TEST(DiskWatchTest, OldFiguresAreLeftOut) {
  testing::ToldClock clock;
  Disk disk;
  DiskWatch watch(disk.reader(), clock);
  AwaitLatest(watch, 1);
  disk.SetOpen(false);
  watch.ReadSoon();
  disk.AwaitBegun(2);
  clock.Advance(DiskWatch::kStaleAfter);
  EXPECT_EQ(LatestOf(watch), 1);
  clock.Advance(absl::Nanoseconds(1));
  EXPECT_EQ(LatestOf(watch), 0);
  disk.SetOpen(true);
  AwaitLatest(watch, 2);
}

TEST(DiskWatchTest, ADiskHasItsSizeAndWhatIsFree) {
  const TemporaryDirectory directory;
  const std::optional<DiskSpace> space = ReadDiskSpace("data", directory.path());
  ASSERT_TRUE(space.has_value());
  EXPECT_EQ(space->directory, "data");
  EXPECT_GT(space->free_bytes, 0u);
  EXPECT_GE(space->size_bytes, space->free_bytes);
  EXPECT_FALSE(ReadDiskSpace("data", directory.path() + "/none").has_value());
}

}  // namespace
}  // namespace softlookup::server
