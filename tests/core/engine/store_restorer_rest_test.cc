// How long a restore rests between its writes, so that other calls have the log meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "core/base/histogram.h"
#include "core/base/limits.h"
#include "core/engine/committer.h"
#include "core/engine/counted_stores.h"
#include "core/engine/lookup_counters.h"
#include "core/engine/store_restorer.h"
#include "tests/core/engine/restore_fixture.h"
#include "tests/core/engine/ticking_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/watched_log.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::RestoreStoreTest;
using ::softlookup::testing::TickingClock;
using ::softlookup::testing::WatchedLog;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::SizeIs;

class RestoreRestTest : public RestoreStoreTest {
 protected:
  // Returns for how long the restore of FillWide()'s store rests after its writes, each of which
  // takes `write_time`. During each of them `lookups` lookups are done.
  std::vector<absl::Duration> RestsBetweenWrites(absl::Duration write_time, int lookups) {
    FillWide();
    Copy();
    auto opened = OpenCommitLog(Path("restored"));
    EXPECT_THAT(opened, IsOk());
    WatchedLog log(*std::move(opened));
    LookupCounters counters;
    log.before_commit = [&] {
      for (int i = 0; i < lookups; ++i) counters.queue_time.Observe(std::int64_t{1});
      return absl::OkStatus();
    };
    Histogram sync_time{kTimeBounds};
    Committer committer(&log, std::int64_t{1} << 20, sync_time);
    CountedStores stores(std::int64_t{1} << 30);
    const Limits limits;
    const TickingClock clock(write_time);
    StoreRestorer restorer(limits, stores, &log, committer, counters, clock);
    EXPECT_THAT(restorer.Restore(
                    {.directory = Path("copy"), .store = "s"}, /*number=*/1,
                    /*replay_count=*/0, [](auto task) { task(); }, CancelToken()),
                IsOk());
    return clock.waits;
  }
};

TEST_F(RestoreRestTest, RestsFiveTimesAsLongAsAWriteTookWhileLookupsCome) {
  EXPECT_THAT(RestsBetweenWrites(absl::Milliseconds(7), /*lookups=*/1),
              AllOf(SizeIs(40), Each(absl::Milliseconds(35))));
}

TEST_F(RestoreRestTest, DoesNotRestIfNobodyCalls) {
  EXPECT_THAT(RestsBetweenWrites(absl::Milliseconds(7), /*lookups=*/0),
              AllOf(SizeIs(3), Each(absl::ZeroDuration())));
}

}  // namespace
}  // namespace softlookup
