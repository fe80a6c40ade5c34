#include "softlookup/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/base/error.h"
#include "core/engine/open_on_log.h"
#include "tests/core/engine/engine_fixture.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/gated_log.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::StatusIs;

using EngineTest = EngineFixture;

TEST_F(EngineTest, AnswersFromWhatWasAppended) {
  Create("s");
  EXPECT_THAT(Append("s", {1, 0, 0, 1}, {10, 20}), IsOk());
  const auto result = Lookup({.store = "s", .options = {.temperature = 1e-3}}, {0, 1});
  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(result->values, ::testing::ElementsAre(20));
  EXPECT_EQ(result->revision, 2u);
  EXPECT_EQ(result->row_count, 2u);
}

TEST_F(EngineTest, RefusesABadAppendWholeAndNamesFieldAndRow) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  Create("s");
  EXPECT_THAT(Append("s", {}, {}), StatusIs(kInvalid, "keys: an append has at least one row"));
  EXPECT_THAT(Append("s", {1, 2}, {1, 2}), StatusIs(kInvalid, "values: 2 rows, but keys has 1"));
  EXPECT_THAT(Append("s", {1, 2, 3}, {1}, 3), StatusIs(kInvalid, "keys: 3 columns"));
  EXPECT_THAT(Append("s", {1, 2}, {1, 2}, 2, 2), StatusIs(kInvalid, "values: 2 columns"));
  EXPECT_THAT(Append("s", {1, 2, 3, kNan}, {1, 2}),
              StatusIs(kInvalid, "keys: row 1, column 1 is NaN"));
  EXPECT_THAT(Append("s", {1, 2, 3, 4}, {-kInf, 2}),
              StatusIs(kInvalid, "values: row 0, column 0 is infinite"));
  EXPECT_THAT(Append("t", {1, 2}, {1}), StatusIs(absl::StatusCode::kNotFound, "\"t\""));
  const absl::Status refused = Append("s", {1, 2, 3, kNan}, {1, 2}).status();
  EXPECT_EQ(ReasonOf(refused), "NON_FINITE_VALUE");
  EXPECT_THAT(MetadataOf(refused),
              ::testing::ElementsAre(std::pair<std::string, std::string>("column", "1"),
                                     std::pair<std::string, std::string>("field", "keys"),
                                     std::pair<std::string, std::string>("row", "1")));
  EXPECT_EQ(engine_->GetStore("s")->row_count, 0u);
  EXPECT_EQ(engine_->GetStore("s")->revision, 1u);
  EXPECT_THAT(Append("s", {1, 2}, {1}), IsOk());
}

TEST_F(EngineTest, RefusesABadLookup) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  Create("s");
  ASSERT_THAT(Append("s", {1, 0, 0, 1}, {10, 20}), IsOk());
  const auto with = [&](AttentionOptions options) {
    return Lookup({.store = "s", .options = options}, {1, 2});
  };
  EXPECT_THAT(with({.temperature = 0}), StatusIs(kInvalid, "options.temperature"));
  EXPECT_THAT(with({.temperature = -1}), StatusIs(kInvalid, "options.temperature"));
  EXPECT_THAT(with({.temperature = std::nan("")}), StatusIs(kInvalid, "options.temperature"));
  EXPECT_THAT(with({.temperature = 1e7}), StatusIs(kInvalid, "options.temperature"));
  EXPECT_THAT(with({.min_score = INFINITY}), StatusIs(kInvalid, "options.min_score"));
  EXPECT_THAT(with({.recency_decay = 0}), StatusIs(kInvalid, "options.recency_decay"));
  EXPECT_THAT(with({.recency_decay = 1.1}), StatusIs(kInvalid, "options.recency_decay"));
  EXPECT_THAT(with({.top_weights = 1025}), StatusIs(kInvalid, "options.top_weights"));
  EXPECT_THAT(with({.max_error = -0.1}), StatusIs(kInvalid, "options.max_error"));
  EXPECT_THAT(with({.max_error = 1.5}), StatusIs(kInvalid, "options.max_error"));
  EXPECT_THAT(with({.max_error = std::nan("")}), StatusIs(kInvalid, "options.max_error"));
  EXPECT_THAT(Lookup({.store = "s"}, {1, 2, 3}, 3), StatusIs(kInvalid, "queries: 3 columns"));
  EXPECT_THAT(Lookup({.store = "s"}, {1, NAN}), StatusIs(kInvalid, "queries: row 0, column 1"));
  EXPECT_THAT(Lookup({.store = "s", .filter = {.end = 3}}, {1, 2}),
              StatusIs(kInvalid, "filter.end: 3 is past the row count of 2"));
  EXPECT_THAT(Lookup({.store = "s", .filter = {.begin = 2, .end = 1}}, {1, 2}),
              StatusIs(kInvalid, "filter.begin"));
  EXPECT_THAT(Lookup({.store = "s"}, std::vector<float>(2 * 4097)),
              StatusIs(kInvalid, "over the limit of 4096"));
  EXPECT_THAT(Lookup({.store = "../s"}, {1, 2}), StatusIs(kInvalid, "store"));
  EXPECT_THAT(with({}), IsOk());
}

TEST_F(EngineTest, StoreNamesAreChecked) {
  const auto create = [&](const std::string& name) {
    return engine_->CreateStore({.name = name, .key_dim = 1, .value_dim = 1}).status();
  };
  for (const std::string& bad :
       {std::string(), std::string("-a"), std::string("a..b"), std::string("a b"),
        std::string("a\0b", 3), std::string("\xc3\xa4"), std::string(129, 'a')}) {
    EXPECT_THAT(create(bad), StatusIs(absl::StatusCode::kInvalidArgument, "store.name")) << bad;
  }
  EXPECT_THAT(create("acme/users-1.x_y"), IsOk());
  EXPECT_THAT(create(std::string(128, 'a')), IsOk());
  EXPECT_THAT(create("acme/users-1.x_y"), StatusIs(absl::StatusCode::kAlreadyExists, "acme"));
}

TEST_F(EngineTest, DimensionsAreChecked) {
  const auto create = [&](std::int64_t key_dim, std::int64_t value_dim, std::int64_t heads) {
    return engine_
        ->CreateStore({.name = "s", .key_dim = key_dim, .value_dim = value_dim, .num_heads = heads})
        .status();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(create(0, 1, 1), StatusIs(kInvalid, "store.key_dim"));
  EXPECT_THAT(create(1, 65537, 1), StatusIs(kInvalid, "store.value_dim"));
  EXPECT_THAT(create(6, 4, 4), StatusIs(kInvalid, "store.key_dim: 6 is not divisible"));
  EXPECT_THAT(create(4, 6, 4), StatusIs(kInvalid, "store.value_dim"));
  EXPECT_THAT(create(65536, 65536, 4), IsOk());
}

TEST_F(EngineTest, ListsByPrefixInOrderAndInPages) {
  for (const char* name : {"b/2", "a", "b/1", "c", "b/3", "b"}) Create(name);
  const auto names = [](const ListResult& result) {
    std::vector<std::string> names;
    for (const StoreInfo& info : result.stores) names.push_back(info.config.name);
    return names;
  };
  const ListResult page = *engine_->ListStores("b/", "", 2);
  EXPECT_THAT(names(page), ::testing::ElementsAre("b/1", "b/2"));
  EXPECT_TRUE(page.more);
  const ListResult next = *engine_->ListStores("b/", "b/2", 2);
  EXPECT_THAT(names(next), ::testing::ElementsAre("b/3"));
  EXPECT_FALSE(next.more);
  EXPECT_THAT(names(*engine_->ListStores("", "", 100)), ::testing::SizeIs(6));
}

TEST_F(EngineTest, AnUpdateIsARevisionAndChangesTheDefaults) {
  Create("s");
  ASSERT_THAT(Append("s", {1, 0, 0, 2}, {10, 20}), IsOk());
  const auto info = engine_->UpdateStore("s", {.score = Score::kDot, .temperature = 0.01});
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->revision, 3u);
  const auto result = Lookup({.store = "s"}, {1, 1});
  EXPECT_NEAR(result->stats[0].max_logit, 200, 1e-9);
  EXPECT_THAT(engine_->UpdateStore("s", {.temperature = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, "store.temperature"));
}

// The log would keep it, and the next start would take the store for damaged.
TEST_F(EngineTest, AnUpdateToAnUnknownScoreIsRefused) {
  Create("s");
  for (const int score : {-1, static_cast<int>(kScoreMax) + 1}) {
    EXPECT_THAT(engine_->UpdateStore("s", {.score = static_cast<Score>(score)}),
                StatusIs(absl::StatusCode::kInvalidArgument, "store.score"))
        << score;
  }
  EXPECT_EQ(engine_->GetStore("s")->revision, 1u);
  const auto info = engine_->UpdateStore("s", {.score = Score::kUnspecified});
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->config.score, Score::kScaledDot);
}

TEST_F(EngineTest, ADeletedStoreIsGoneAndItsNameFree) {
  Create("s");
  EXPECT_THAT(engine_->DeleteStore("s"), IsOk());
  EXPECT_THAT(engine_->DeleteStore("s"), StatusIs(absl::StatusCode::kNotFound, ""));
  EXPECT_THAT(Lookup({.store = "s"}, {1, 2}), StatusIs(absl::StatusCode::kNotFound, ""));
  Create("s");
}

TEST_F(EngineTest, LastTakesTheNewestRowsOfTheRange) {
  Create("s", 1, 1);
  ASSERT_THAT(Append("s", {0, 0, 0, 0}, {1, 2, 3, 4}, 1), IsOk());
  const auto value = [&](RowFilter filter) {
    return Lookup({.store = "s", .filter = filter}, {1}, 1)->values[0];
  };
  EXPECT_EQ(value({.last = 1}), 4);
  EXPECT_EQ(value({.end = 3, .last = 2}), 2.5);
  EXPECT_EQ(value({.begin = 1, .last = 100}), 3);
  EXPECT_EQ(value({.last = 0}), 0);
}

TEST_F(EngineTest, ALookupWaitsForItsRevision) {
  Create("s");
  const std::vector<float> query = {1, 2};
  const LookupRequest request{.store = "s", .queries = {query.data(), 1, 2}, .min_revision = 3};
  absl::StatusOr<LookupResult> result;
  absl::Notification done;
  engine_->Lookup(request, std::make_shared<CancelToken>(), [&](auto r) {
    result = std::move(r);
    done.Notify();
  });
  ASSERT_THAT(Append("s", {1, 2}, {1}), IsOk());
  EXPECT_FALSE(done.HasBeenNotified());
  ASSERT_THAT(Append("s", {1, 2}, {1}), IsOk());
  done.WaitForNotification();
  ASSERT_THAT(result, IsOk());
  EXPECT_GE(result->revision, 3u);

  const auto cancel = std::make_shared<CancelToken>();
  LookupRequest never = request;
  never.min_revision = 1000;
  absl::Status status;
  engine_->Lookup(never, cancel, [&](auto r) { status = r.status(); });
  cancel->Cancel();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST_F(EngineTest, AWaitThatRunsOutOfTimeSaysWhichRevisionTheStoreHas) {
  Create("s");
  ASSERT_THAT(Append("s", {1, 2}, {1}), IsOk());
  const std::vector<float> query = {1, 2};
  const LookupRequest request{.store = "s", .queries = {query.data(), 1, 2}, .min_revision = 99};
  const auto wait = std::make_shared<CancelToken>();
  absl::Status status;
  engine_->Lookup(request, wait, [&](auto result) { status = result.status(); });
  EXPECT_THAT(status, IsOk());
  wait->wait().End(MakeError(reasons::kDeadlineExceeded, "Too late"));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               "Too late: the store is at revision 2 and has not reached "
                               "min_revision 99; if that is a revision of another store"));
  EXPECT_EQ(ReasonOf(status), "DEADLINE_EXCEEDED");
  EXPECT_EQ(MetadataOf(status), ErrorMetadata({{"field", "min_revision"}}));
}

TEST_F(EngineTest, MemoryOfAnyWindow) {
  Create("s", 1, 1);
  ASSERT_THAT(Append("s", {1, 2, 6}, {10, 20, 60}, 1), IsOk());
  const auto all = engine_->GetMemory("s", "", std::nullopt, std::nullopt);
  ASSERT_THAT(all, IsOk());
  EXPECT_THAT(all->memory.key, ::testing::ElementsAre(3));
  EXPECT_THAT(all->memory.value, ::testing::ElementsAre(30));
  EXPECT_EQ(all->memory.weight, 3);
  EXPECT_THAT(engine_->GetMemory("s", "average", 1, 2)->memory.key, ::testing::ElementsAre(2));
  EXPECT_EQ(engine_->GetMemory("s", "average", 2, 2)->memory.weight, 0);
  EXPECT_THAT(engine_->GetMemory("s", "average", 0, 4),
              StatusIs(absl::StatusCode::kInvalidArgument, "end: 4"));
  EXPECT_THAT(engine_->GetMemory("s", "average", 2, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, "begin: 2"));
  EXPECT_THAT(engine_->GetMemory("s", "nope", 0, 1), StatusIs(absl::StatusCode::kNotFound, "nope"));
}

TEST_F(EngineTest, TurnsAwayWhatItsQueueCannotHold) {
  const auto engine = Engine::Create({.limits = {.waiting_jobs_max = 1}, .thread_count = 1});
  ASSERT_THAT(engine->CreateStore({.name = "s", .key_dim = 64, .value_dim = 64}), IsOk());
  const std::vector<float> rows = NormalFloats(60'000 * 64, 1);
  const MatrixView view{rows.data(), 60'000, 64};
  ASSERT_THAT(
      softlookup::testing::AppendAndWait(*engine, {.store = "s", .keys = view, .values = view}),
      IsOk());
  // 40 lookups of a few milliseconds each, sent at once to one thread and one place to wait.
  std::atomic<int> answered{0}, refused{0};
  absl::Mutex mutex;
  int pending = 40;
  absl::Status refusal;
  for (int i = 0; i < 40; ++i) {
    engine->Lookup({.store = "s", .queries = {rows.data(), 64, 64}},
                   std::make_shared<CancelToken>(), [&](auto result) {
                     result.ok() ? ++answered : ++refused;
                     absl::MutexLock lock(&mutex);
                     if (!result.ok()) refusal = result.status();
                     --pending;
                   });
  }
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(
      +[](int* count) { return *count == 0; }, &pending));
  EXPECT_GE(answered, 1);
  EXPECT_GE(refused, 1);
  EXPECT_THAT(refusal, StatusIs(absl::StatusCode::kResourceExhausted, "queue of 1"));
  EXPECT_TRUE(RetryAfterOf(refusal).has_value());
}

TEST_F(EngineTest, LookupsBesideAppendsSeePrefixes) {
  // Row j has value j; all keys are equal, so the answer over n rows is (n - 1) / 2.
  Create("s", 1, 1);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int j = 0; j < 3000; j += 3) {
      const std::vector<float> values = {static_cast<float>(j), static_cast<float>(j + 1),
                                         static_cast<float>(j + 2)};
      ASSERT_THAT(Append("s", {1, 1, 1}, values, 1), IsOk());
    }
    done = true;
  });
  std::uint64_t seen = 0;
  while (!done) {
    const auto result = Lookup({.store = "s"}, {1}, 1);
    ASSERT_THAT(result, IsOk());
    ASSERT_EQ(result->row_count % 3, 0u) << "a batch is seen whole or not at all";
    ASSERT_GE(result->row_count, seen);
    seen = result->row_count;
    if (seen > 0) {
      ASSERT_NEAR(result->values[0], (static_cast<double>(seen) - 1) / 2, 1e-5 * seen);
    }
  }
  writer.join();
}

constexpr absl::Duration kLongEnough = absl::Seconds(20);

TEST_F(EngineTest, AnAppendDoesNotWaitForThoseWhoWaitedForIt) {
  Create("s");
  const std::uint64_t incarnation =
      engine_->GetMemory("s", "", std::nullopt, std::nullopt)->incarnation;
  absl::Notification woken, go, acknowledged;
  engine_->WhenRevision("s", incarnation, 2, std::make_shared<CancelToken>(), [&](const auto&) {
    go.WaitForNotificationWithTimeout(kLongEnough);
    woken.Notify();
  });
  const std::vector<float> row = {1, 2};
  engine_->Append({.store = "s", .keys = {row.data(), 1, 2}, .values = {row.data(), 1, 1}},
                  [&](auto) { acknowledged.Notify(); });
  EXPECT_TRUE(acknowledged.WaitForNotificationWithTimeout(kLongEnough / 2));
  go.Notify();
  woken.WaitForNotification();
}

TEST_F(EngineTest, AWokenLookupIsPreparedOnThePool) {
  const auto engine = Engine::Create({.thread_count = 1});
  ASSERT_THAT(engine->CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}), IsOk());
  const float one = 1;
  const AppendRequest append{.store = "s", .keys = {&one, 1, 1}, .values = {&one, 1, 1}};
  absl::Notification answered;
  absl::Status status;
  {
    const BusyPool busy(*engine);
    // Only preparing it finds out what is wrong with it.
    engine->Lookup({.store = "s", .queries = {&one, 1, 1}, .filter = {.end = 9}, .min_revision = 2},
                   std::make_shared<CancelToken>(), [&](auto result) {
                     status = result.status();
                     answered.Notify();
                   });
    ASSERT_THAT(softlookup::testing::AppendAndWait(*engine, append), IsOk());
    EXPECT_FALSE(answered.WaitForNotificationWithTimeout(absl::Milliseconds(50)));
  }
  answered.WaitForNotification();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, "filter.end: 9 is past"));
}

TEST_F(EngineTest, ManyLookupsWokenAtOnceAreAllAnswered) {
  const auto engine = Engine::Create({.limits = {.waiting_jobs_max = 4}, .thread_count = 1});
  ASSERT_THAT(engine->CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}), IsOk());
  const float one = 1;
  constexpr int kLookups = 1000;
  absl::Mutex mutex;
  int answered = 0, refused = 0;
  const BusyPool* busy = new BusyPool(*engine);
  for (int i = 0; i < kLookups; ++i) {
    engine->Lookup({.store = "s", .queries = {&one, 1, 1}, .min_revision = 2},
                   std::make_shared<CancelToken>(), [&](auto result) {
                     absl::MutexLock lock(&mutex);
                     ++(result.ok() ? answered : refused);
                   });
  }
  ASSERT_THAT(softlookup::testing::AppendAndWait(
                  *engine, {.store = "s", .keys = {&one, 1, 1}, .values = {&one, 1, 1}}),
              IsOk());
  delete busy;
  const auto all = [&] { return answered + refused == kLookups; };
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&all));
  EXPECT_EQ(refused, 0);
}

TEST_F(EngineTest, AWaitForAStoreThatWasMadeAnewEndsAtOnce) {
  Create("s");
  const std::uint64_t incarnation =
      engine_->GetMemory("s", "", std::nullopt, std::nullopt)->incarnation;
  ASSERT_THAT(engine_->DeleteStore("s"), IsOk());
  Create("s");
  absl::Status status;
  engine_->WhenRevision("s", incarnation, 2, std::make_shared<CancelToken>(),
                        [&](const auto& end) { status = end; });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, "\"s\""));
}

TEST_F(EngineTest, AChainEndsWithItsStoreThoughAnotherTakesItsName) {
  const auto chain = std::make_shared<AppendChain>();
  const float one = 1;
  const auto append = [&] {
    return softlookup::testing::AppendAndWait(
               *engine_,
               {.store = "s", .keys = {&one, 1, 1}, .values = {&one, 1, 1}, .chain = chain})
        .status();
  };
  Create("s", 1, 1);
  EXPECT_THAT(append(), IsOk());
  ASSERT_THAT(engine_->DeleteStore("s"), IsOk());
  Create("s", 1, 1);
  EXPECT_THAT(append(), StatusIs(absl::StatusCode::kNotFound, "\"s\""));
  EXPECT_EQ(engine_->GetStore("s")->row_count, 0u);
}

TEST_F(EngineTest, ALinearMemoryIsListedByItsWeightNotItsLogit) {
  Create("s", 1, 1);
  // The average of the first four is 1, and counts four times; then rows of weight 3, 2 and 2.5.
  ASSERT_THAT(Append("s", {1, 1, 1, 1, 3, 2, 2.5}, {1, 1, 1, 1, 1, 1, 1}, 1), IsOk());
  const auto listed = [&](float query, std::uint32_t count) {
    const auto result = Lookup({.store = "s",
                                .options = {.score = Score::kDot,
                                            .mode = Mode::kLinear,
                                            .weights = WeightsMode::kTop,
                                            .top_weights = count},
                                .filter = {.begin = 4},
                                .source = Source::kRowsAndMemory},
                               {query}, 1);
    std::vector<double> weights;
    for (const WeightedRow& row : result->weights[0].rows) weights.push_back(row.weight);
    return weights;
  };
  EXPECT_THAT(listed(1, 2), ::testing::ElementsAre(4, 3));
  EXPECT_THAT(listed(1, 3), ::testing::ElementsAre(4, 3, 2.5));
  // The other way round, it has the largest logit and the smallest weight.
  EXPECT_THAT(listed(-1, 2), ::testing::ElementsAre(-2, -2.5));
  EXPECT_THAT(listed(-1, 10), ::testing::ElementsAre(-2, -2.5, -3, -4));
}

TEST(FullWriteQueueTest, RefusesAChangeOfStoresAtOnce) {
  auto gated_log = std::make_unique<testing::GatedLog>();
  testing::GatedLog& log = *gated_log;
  EngineOptions options{.thread_count = 1};
  options.limits.waiting_append_bytes_max = 100;
  auto opened = OpenOnLog(options, std::move(gated_log), [](const absl::Status&) {});
  ASSERT_THAT(opened.status(), IsOk());
  Engine& engine = **opened;
  const StoreConfig config{.name = "s", .key_dim = 1, .value_dim = 1};
  ASSERT_THAT(engine.CreateStore(config), IsOk());
  const std::vector<float> floats(100, 1);
  const auto append = [&](std::int64_t rows) {
    const MatrixView view{floats.data(), rows, 1};
    engine.Append({.store = "s", .keys = view, .values = view}, [](const auto&) {});
  };
  log.gated = true;
  append(1);
  log.entered.WaitForNotification();
  append(100);  // Waits alone, so the queue takes it whatever its size.
  EXPECT_THAT(engine.CreateStore({.name = "t", .key_dim = 1, .value_dim = 1}),
              StatusIs(absl::StatusCode::kResourceExhausted, "wait to be written"));
  log.gate.Notify();
}

}  // namespace
}  // namespace softlookup
