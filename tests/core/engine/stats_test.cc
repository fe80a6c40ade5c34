// What the engine says it has done, beside what was done.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

constexpr std::int64_t kDim = 8;
constexpr std::uint64_t kRowBytes = 2 * kDim * 4;

StoreConfig Config(const std::string& name) {
  return {.name = name, .key_dim = kDim, .value_dim = kDim};
}

MatrixView Rows(const std::vector<float>& floats, std::int64_t count) {
  return {.data = floats.data(), .rows = count, .cols = kDim};
}

std::uint64_t CountOf(const HistogramCounts& counts) {
  return std::accumulate(counts.counts.begin(), counts.counts.end(), std::uint64_t{0});
}

class StatsTest : public ::testing::Test {
 protected:
  void AppendRows(Engine& engine, const std::string& store, std::int64_t count) {
    const MatrixView rows = Rows(floats_, count);
    ASSERT_THAT(AppendAndWait(engine, {.store = store, .keys = rows, .values = rows}), IsOk());
  }
  LookupReport LookUp(Engine& engine, LookupRequest request) {
    LookupReport report;
    request.report = &report;
    EXPECT_THAT(LookupAndWait(engine, request), IsOk());
    return report;
  }

  static constexpr std::int64_t kRowsMax = 60'000;
  const std::vector<float> floats_ = NormalFloats(kRowsMax * kDim, 1);
};

TEST_F(StatsTest, SumsFollowEveryWrite) {
  const std::unique_ptr<Engine> engine = Engine::Create({});
  const EngineStats empty = engine->stats();
  EXPECT_EQ(empty.stores, 0);
  EXPECT_EQ(empty.store_bytes, 0);
  for (const char* name : {"a", "b"}) {
    ASSERT_THAT(engine->CreateStore(Config(name)), IsOk());
    AppendRows(*engine, name, 100);
  }
  ASSERT_THAT(engine->DeleteRows("a", {.end = 30}), IsOk());
  EngineStats stats = engine->stats();
  EXPECT_EQ(stats.stores, 2);
  EXPECT_EQ(stats.rows, 200u);
  EXPECT_EQ(stats.live_rows, 170u);
  EXPECT_EQ(stats.appended_rows, 200u);
  EXPECT_EQ(stats.appended_bytes, 200 * kRowBytes);
  EXPECT_EQ(static_cast<std::uint64_t>(stats.store_bytes),
            engine->GetStore("a")->byte_size + engine->GetStore("b")->byte_size);
  EXPECT_EQ(stats.ram_used_bytes, stats.store_bytes);
  EXPECT_FALSE(stats.log_failed);
  EXPECT_EQ(CountOf(stats.log_sync_time), 0u);

  ASSERT_THAT(engine->DeleteStore("a"), IsOk());
  stats = engine->stats();
  EXPECT_EQ(stats.stores, 1);
  EXPECT_EQ(stats.rows, 100u);
  EXPECT_EQ(stats.live_rows, 100u);
  EXPECT_EQ(stats.appended_rows, 200u);
}

TEST_F(StatsTest, ARefusedOrRepeatedWriteCountsNothing) {
  const std::unique_ptr<Engine> engine = Engine::Create({});
  ASSERT_THAT(engine->CreateStore(Config("s")), IsOk());
  EXPECT_FALSE(engine->CreateStore(Config("s")).ok());
  const std::vector<std::uint64_t> ids = {1, 2};
  AppendRequest request{
      .store = "s", .keys = Rows(floats_, 2), .values = Rows(floats_, 2), .ids = ids};
  request.writer = "w";
  request.sequence = 1;
  ASSERT_THAT(AppendAndWait(*engine, request), IsOk());
  EXPECT_TRUE(AppendAndWait(*engine, request)->duplicate);
  request.sequence = 2;
  EXPECT_FALSE(AppendAndWait(*engine, request).ok());
  request.on_conflict = OnConflict::kReplace;
  ASSERT_THAT(AppendAndWait(*engine, request), IsOk());
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.stores, 1);
  EXPECT_EQ(stats.rows, 4u);
  EXPECT_EQ(stats.live_rows, 2u);
  EXPECT_EQ(stats.appended_rows, 4u);
}

TEST_F(StatsTest, WhatIsLoadedIsThereAndWhatWasSyncedWasTimed) {
  const TemporaryDirectory directory;
  const std::string data = directory.path() + "/data";
  EngineStats before;
  const auto open = [&] {
    return *Engine::Open({}, data, [](const absl::Status& damage) { FAIL() << damage; });
  };
  {
    const std::unique_ptr<Engine> engine = open();
    ASSERT_THAT(engine->CreateStore(Config("s")), IsOk());
    AppendRows(*engine, "s", 100);
    ASSERT_THAT(engine->DeleteRows("s", {.end = 1}), IsOk());
    before = engine->stats();
    EXPECT_EQ(CountOf(before.log_sync_time), 3u);
    EXPECT_GT(before.log_sync_time.sum, 0);
    EXPECT_FALSE(before.log_failed);
  }
  const EngineStats stats = open()->stats();
  EXPECT_EQ(stats.stores, 1);
  EXPECT_EQ(stats.damaged_stores, 0);
  EXPECT_EQ(stats.rows, 100u);
  EXPECT_EQ(stats.live_rows, 99u);
  EXPECT_EQ(stats.appended_rows, 0u);
  EXPECT_GT(stats.store_bytes, 0);
}

TEST_F(StatsTest, ALookupCountsTheRowsItGoesOver) {
  const std::unique_ptr<Engine> engine = Engine::Create({});
  ASSERT_THAT(engine->CreateStore(Config("s")), IsOk());
  AppendRows(*engine, "s", 5000);
  LookUp(*engine, {.store = "s", .queries = Rows(floats_, 3)});
  EngineStats stats = engine->stats();
  EXPECT_EQ(stats.scanned_rows, 5000u);
  EXPECT_EQ(stats.scanned_bytes, 5000 * kRowBytes);
  EXPECT_GE(stats.summed_rows, 3u);
  EXPECT_LE(stats.summed_rows, 3 * 5000u);
  EXPECT_EQ(stats.pass_queries.sum, 3);
  EXPECT_EQ(stats.pass_lookups.sum, 1);
  // Within one block, and over the end of one into the next.
  for (const std::uint64_t begin : {10, 1000}) {
    const LookupReport report = LookUp(
        *engine,
        {.store = "s", .queries = Rows(floats_, 1), .filter = {.begin = begin, .end = begin + 50}});
    EXPECT_EQ(report.scanned_rows, 50u);
  }
  stats = engine->stats();
  EXPECT_EQ(stats.scanned_rows, 5100u);
  EXPECT_EQ(CountOf(stats.pass_lookups), 3u);
  EXPECT_EQ(CountOf(stats.lookup_queue_time), 3u);
  EXPECT_EQ(CountOf(stats.lookup_compute_time), 3u);

  EXPECT_FALSE(LookupAndWait(*engine, {.store = "t", .queries = Rows(floats_, 1)}).ok());
  LookUp(*engine, {.store = "s", .queries = Rows(floats_, 0)});
  EXPECT_EQ(engine->stats().scanned_rows, 5100u);
  EXPECT_EQ(engine->stats().summed_rows, stats.summed_rows);
}

TEST_F(StatsTest, SummedRowsCountForEachQuery) {
  const std::unique_ptr<Engine> engine = Engine::Create({});
  ASSERT_THAT(engine->CreateStore(Config("s")), IsOk());
  AppendRows(*engine, "s", 100);
  // LINEAR and top_k leave out nothing; HARD copies the value of one row.
  LookUp(*engine, {.store = "s", .queries = Rows(floats_, 3), .options = {.mode = Mode::kLinear}});
  EXPECT_EQ(engine->stats().summed_rows, 300u);
  LookUp(*engine, {.store = "s", .queries = Rows(floats_, 2), .options = {.top_k = 10}});
  EXPECT_EQ(engine->stats().summed_rows, 320u);
  LookUp(*engine, {.store = "s", .queries = Rows(floats_, 4), .options = {.mode = Mode::kHard}});
  EXPECT_EQ(engine->stats().summed_rows, 324u);
}

TEST_F(StatsTest, AFirstLookReadsSketchesAndLeavesMostRowsOut) {
  constexpr std::int64_t kWideDim = 64, kRowCount = 5000, kSketchedRows = 4096;
  const auto rows = [this](std::int64_t count) {
    return MatrixView{.data = floats_.data(), .rows = count, .cols = kWideDim};
  };
  const std::unique_ptr<Engine> engine = Engine::Create({});
  ASSERT_THAT(engine->CreateStore({.name = "s", .key_dim = kWideDim, .value_dim = kWideDim}),
              IsOk());
  ASSERT_THAT(
      AppendAndWait(*engine, {.store = "s", .keys = rows(kRowCount), .values = rows(kRowCount)}),
      IsOk());
  LookUp(*engine, {.store = "s", .queries = rows(1), .options = {.temperature = 2}});
  EngineStats stats = engine->stats();
  EXPECT_EQ(stats.sketched_rows, 0u) << "at this temperature, every row weighs something";
  EXPECT_EQ(stats.scanned_rows, kRowCount);
  LookUp(*engine, {.store = "s", .queries = rows(1), .options = {.temperature = 0.02}});
  stats = engine->stats();
  EXPECT_EQ(stats.sketched_rows, kSketchedRows);
  // The rows behind the last full block have no sketch.
  EXPECT_GE(stats.scanned_rows, 2 * kRowCount - kSketchedRows);
  EXPECT_LT(stats.scanned_rows, 2 * kRowCount - kSketchedRows + 500);
  // The memory of the rows before the range can have a larger value than the rows.
  LookUp(*engine, {.store = "s",
                   .queries = rows(1),
                   .options = {.temperature = 0.02},
                   .filter = {.begin = 100},
                   .source = Source::kRowsAndMemory});
  EXPECT_EQ(engine->stats().sketched_rows, kSketchedRows);
}

TEST_F(StatsTest, AShortLookupWaitsForNobody) {
  const std::unique_ptr<Engine> engine = Engine::Create({});
  ASSERT_THAT(engine->CreateStore(Config("s")), IsOk());
  AppendRows(*engine, "s", 100);
  const LookupReport report = LookUp(*engine, {.store = "s", .queries = Rows(floats_, 1)});
  EXPECT_EQ(report.queue_wait, absl::ZeroDuration());
  EXPECT_GT(report.compute, absl::ZeroDuration());
  EXPECT_EQ(engine->stats().lookup_queue_time.sum, 0);
}

TEST_F(StatsTest, LookupsThatShareAPassScanItsRowsOnce) {
  constexpr int kLater = 39, kQueries = 10;
  const std::unique_ptr<Engine> engine =
      Engine::Create({.limits = {.lookup_wait_max = absl::Seconds(60)},
                      .thread_count = 1,
                      .queries_per_pass_max = 200});
  ASSERT_THAT(engine->CreateStore(Config("s")), IsOk());
  AppendRows(*engine, "s", kRowsMax);
  const LookupRequest request{.store = "s", .queries = Rows(floats_, kQueries)};
  const auto look_up = [&](LookupReport& report, absl::AnyInvocable<void()> then) {
    LookupRequest reported = request;
    reported.report = &report;
    engine->Lookup(reported, std::make_shared<CancelToken>(),
                   [then = std::move(then)](const absl::StatusOr<LookupResult>& r) mutable {
                     EXPECT_THAT(r, IsOk());
                     then();
                   });
  };
  // The first keeps the only thread until all others wait.
  absl::Notification begun, others_wait;
  LookupReport first;
  look_up(first, [&] {
    begun.Notify();
    others_wait.WaitForNotification();
  });
  begun.WaitForNotification();
  absl::BlockingCounter answered(kLater);
  std::vector<LookupReport> reports(kLater);
  for (LookupReport& report : reports) look_up(report, [&] { answered.DecrementCount(); });
  EngineStats stats = engine->stats();
  EXPECT_EQ(stats.waiting_lookups, kLater);
  EXPECT_GE(stats.waiting_work, 1.0 * kLater * kQueries * kRowsMax * 2 * kDim);
  EXPECT_EQ(CountOf(stats.pass_lookups), 1u);
  others_wait.Notify();
  answered.Wait();

  stats = engine->stats();
  EXPECT_EQ(CountOf(stats.pass_lookups), 3u);  // Of 1, 20 and 19.
  EXPECT_EQ(stats.pass_lookups.sum, 1 + kLater);
  EXPECT_EQ(stats.pass_queries.sum, kQueries * (1 + kLater));
  EXPECT_EQ(stats.scanned_rows, std::uint64_t{3 * kRowsMax});
  EXPECT_EQ(CountOf(stats.lookup_queue_time), std::uint64_t{1 + kLater});
  EXPECT_EQ(CountOf(stats.lookup_compute_time), std::uint64_t{1 + kLater});
  EXPECT_EQ(stats.waiting_lookups, 0);
  EXPECT_EQ(stats.waiting_work, 0);
  for (const LookupReport& report : reports) {
    EXPECT_GT(report.queue_wait, absl::ZeroDuration());
    EXPECT_GT(report.compute, absl::ZeroDuration());
    EXPECT_EQ(report.scanned_rows, std::uint64_t{kRowsMax});
  }
}

TEST_F(StatsTest, TheWaitForARevisionIsNotTheQueues) {
  const std::unique_ptr<Engine> engine = Engine::Create({});
  ASSERT_THAT(engine->CreateStore(Config("s")), IsOk());
  absl::Notification answered;
  LookupReport report;
  LookupRequest request{.store = "s", .queries = Rows(floats_, 1), .min_revision = 2};
  request.report = &report;
  const absl::Time begin = absl::Now();
  engine->Lookup(request, std::make_shared<CancelToken>(),
                 [&](const absl::StatusOr<LookupResult>& result) {
                   EXPECT_THAT(result, IsOk());
                   answered.Notify();
                 });
  EXPECT_FALSE(answered.WaitForNotificationWithTimeout(absl::Milliseconds(30)));
  AppendRows(*engine, "s", 1);
  answered.WaitForNotification();
  EXPECT_GE(report.revision_wait, absl::Milliseconds(30));
  EXPECT_LE(report.revision_wait + report.queue_wait + report.compute, absl::Now() - begin);
}

}  // namespace
}  // namespace softlookup::testing
