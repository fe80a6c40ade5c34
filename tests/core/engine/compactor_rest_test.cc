// How long a compaction rests between its steps, so that lookups have the cores meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "core/base/histogram.h"
#include "core/engine/committer.h"
#include "core/engine/compactor.h"
#include "core/engine/counted_stores.h"
#include "core/engine/table_writes.h"
#include "core/engine/writes.h"
#include "tests/core/engine/ticking_clock.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::TickingClock;
using ::testing::ElementsAre;

// Rows of 40 blocks of a narrow store. A run has 16 blocks, so these are three runs.
constexpr std::uint64_t kRestRows = 40 * 1024;

// Returns for how long the compaction of a store of three runs of blocks rests, if a run takes
// `run_time`.
std::vector<absl::Duration> RestsBetweenRuns(absl::Duration run_time) {
  CountedStores stores(std::int64_t{1} << 30);
  Histogram sync_time{kTimeBounds};
  Committer committer(nullptr, std::int64_t{1} << 20, sync_time);
  const auto write_now = [](std::unique_ptr<Write> write) {
    EXPECT_THAT(write->Stage(nullptr), IsOk());
    write->Publish();
    write->Answer(absl::OkStatus());
  };
  write_now(MakeCreateStore(
      stores, 1, /*replay_count=*/0, {.name = "s", .key_dim = 1, .value_dim = 1},
      [](auto task) { task(); },
      /*store_count_max=*/1, [](auto) {}));
  const std::shared_ptr<Store> store = *stores.table.Find("store", "s");
  // The last row opens block 40, which is not full and keeps its rows.
  const std::vector<float> numbers(kRestRows + 1);
  write_now(MakeAppend(stores, store, {.keys = numbers, .values = numbers}, [](auto) {}));
  write_now(MakeDeleteRows(stores, store, {}, [](auto) {}));
  const TickingClock clock(run_time);
  const auto result = Compactor(stores, nullptr, committer, clock)
                          .Compact(store, {.end_memories = true}, CancelToken());
  EXPECT_THAT(result, IsOk());
  EXPECT_EQ(result->dropped_rows, kRestRows);
  return clock.waits;
}

TEST(CompactorTest, RestsAsLongAsARunTookBeforeTheNextOne) {
  EXPECT_THAT(RestsBetweenRuns(absl::Milliseconds(7)),
              ElementsAre(absl::Milliseconds(7), absl::Milliseconds(7)));
}

TEST(CompactorTest, RestsATenthOfASecondAtMost) {
  EXPECT_THAT(RestsBetweenRuns(absl::Seconds(7)),
              ElementsAre(absl::Milliseconds(100), absl::Milliseconds(100)));
}

}  // namespace
}  // namespace softlookup
