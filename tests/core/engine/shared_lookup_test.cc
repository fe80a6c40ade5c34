// Lookups that share a pass over their store's rows must answer as if each were alone. A failure
// prints SOFTLOOKUP_TEST_SEED=N; with that in the environment the run begins with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/kernels.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::testing {
namespace {

constexpr std::int64_t kKeyDim = 96, kValueDim = 48;
constexpr std::int64_t kRows = 9'000;  // One query over them is more than is answered at once.
constexpr std::int64_t kLaterRows = 700;

AttentionOptions RandomOptions(Draw& draw) {
  AttentionOptions options{.score = static_cast<Score>(draw.Int(0, static_cast<int>(kScoreMax))),
                           .mode = static_cast<Mode>(draw.Int(0, 3)),
                           .weights = static_cast<WeightsMode>(draw.Int(0, 3)),
                           .top_weights = static_cast<std::uint32_t>(draw.Int(1, 20))};
  if (draw.Coin()) options.temperature = draw.Real(0.2, 5);
  if (draw.Chance(0.2)) options.top_k = static_cast<std::uint64_t>(draw.Int(1, 300));
  if (draw.Chance(0.2)) options.min_score = draw.Real(-3, 0);
  if (draw.Chance(0.2)) options.recency_decay = 0.999;
  if (draw.Chance(0.2)) {
    options.causal = true;
    options.causal_offset = static_cast<std::uint64_t>(draw.Int(0, kRows));
  }
  if (draw.Chance(0.3)) options.max_error = draw.Coin() ? draw.Real(0, 1e-4) : draw.Real(0, 1);
  return options;
}

RowFilter RandomFilter(Draw& draw) {
  RowFilter filter;
  if (draw.Chance(0.2)) filter.begin = static_cast<std::uint64_t>(draw.Int(0, 3000));
  if (draw.Chance(0.2)) filter.end = static_cast<std::uint64_t>(draw.Int(3000, kRows));
  if (draw.Chance(0.1)) filter.last = static_cast<std::uint64_t>(draw.Int(1, 5000));
  if (draw.Chance(0.2)) filter.any_labels = {absl::StrCat("l", draw.Int(0, 2))};
  return filter;
}

void ExpectSameBits(const LookupResult& actual, const LookupResult& expected) {
  ASSERT_EQ(actual.values, expected.values);
  ASSERT_EQ(actual.revision, expected.revision);
  ASSERT_EQ(actual.stats.size(), expected.stats.size());
  for (std::size_t i = 0; i < expected.stats.size(); ++i) {
    ASSERT_EQ(actual.stats[i].log_sum_exp, expected.stats[i].log_sum_exp);
    ASSERT_EQ(actual.stats[i].entropy, expected.stats[i].entropy);
    ASSERT_EQ(actual.stats[i].counted_rows, expected.stats[i].counted_rows);
    ASSERT_EQ(actual.stats[i].error_bound, expected.stats[i].error_bound);
    ASSERT_EQ(actual.stats[i].summed_rows, expected.stats[i].summed_rows);
  }
  ASSERT_EQ(actual.weights.size(), expected.weights.size());
  for (std::size_t i = 0; i < expected.weights.size(); ++i) {
    ASSERT_EQ(actual.weights[i].rows.size(), expected.weights[i].rows.size());
    ASSERT_EQ(actual.weights[i].remaining_weight, expected.weights[i].remaining_weight);
    for (std::size_t row = 0; row < expected.weights[i].rows.size(); ++row) {
      ASSERT_EQ(actual.weights[i].rows[row].position, expected.weights[i].rows[row].position);
      ASSERT_EQ(actual.weights[i].rows[row].weight, expected.weights[i].rows[row].weight);
      ASSERT_EQ(actual.weights[i].rows[row].score, expected.weights[i].rows[row].score);
    }
  }
}

// The parameters are the heads, and what scans.
class SharedLookupTest : public ::testing::TestWithParam<std::tuple<int, Kernel>> {
 protected:
  struct Asked {
    std::vector<float> queries;
    LookupRequest request;
    std::shared_ptr<CancelToken> cancel = std::make_shared<CancelToken>();
    absl::StatusOr<LookupResult> expected;  // In the snapshot that is there when it is asked.
    absl::StatusOr<LookupResult> expected_later;
    absl::StatusOr<LookupResult> actual;
  };

  void SetUp() override {
    for (Engine* engine : {alone_.get(), sharing_.get()}) {
      ASSERT_THAT(engine->CreateStore({.name = "s",
                                       .key_dim = kKeyDim,
                                       .value_dim = kValueDim,
                                       .num_heads = std::get<int>(GetParam())}),
                  IsOk());
      Append(*engine, kRows, 1);
      RowFilter some;
      some.begin = 1'500;
      some.end = 2'900;
      ASSERT_THAT(engine->DeleteRows("s", some), IsOk());
    }
  }

  static void Append(Engine& engine, std::int64_t rows, std::uint64_t seed) {
    const std::vector<float> keys = NormalFloats(rows * kKeyDim, seed, 0.4);
    const std::vector<float> values = NormalFloats(rows * kValueDim, seed + 1);
    std::vector<std::vector<std::string>> labels;
    for (std::int64_t row = 0; row < rows; ++row) labels.push_back({absl::StrCat("l", row % 3)});
    ASSERT_THAT(
        AppendAndWait(engine, {.store = "s",
                               .keys = {.data = keys.data(), .rows = rows, .cols = kKeyDim},
                               .values = {.data = values.data(), .rows = rows, .cols = kValueDim},
                               .row_labels = labels}),
        IsOk());
  }

  // Asks who answers alone.
  void Ask(Draw& draw) {
    Asked& asked = asked_.emplace_back();
    const std::int64_t count = draw.Chance(0.7) ? 1 : draw.Int(2, 12);
    asked.queries = draw.Normal(count * kKeyDim);
    asked.request = {.store = "s",
                     .queries = {.data = asked.queries.data(), .rows = count, .cols = kKeyDim}};
    // Most ask alike, as clients of one kind do.
    if (draw.Chance(0.6)) asked.request.options = RandomOptions(draw);
    if (draw.Chance(0.4)) asked.request.filter = RandomFilter(draw);
    if (draw.Chance(0.1)) asked.request.source = Source::kRowsAndMemory;
    asked.expected = LookupAndWait(*alone_, asked.request);
    EXPECT_THAT(asked.expected, IsOk());
  }

  const std::unique_ptr<Engine> alone_ = Engine::Create(
      {.thread_count = 1, .queries_per_pass_max = 1, .kernel = std::get<Kernel>(GetParam())});
  const std::unique_ptr<Engine> sharing_ =
      Engine::Create({.limits = {.lookup_wait_max = absl::InfiniteDuration()},
                      .thread_count = 2,
                      .kernel = std::get<Kernel>(GetParam())});
  std::deque<Asked> asked_;
};

TEST_P(SharedLookupTest, AnswersAsIfAlone) {
  const std::uint64_t seed = FirstSeed();
  SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", seed));
  Draw draw(seed);
  constexpr int kLookups = 60;
  absl::Mutex mutex;
  int answered = 0;
  // Those of the second half see another snapshot.
  for (int i = 0; i < kLookups; ++i) {
    if (i == kLookups / 2) Append(*alone_, kLaterRows, 7);
    Ask(draw);
  }
  // As may others: one that takes long to prepare sees the snapshot that is there by then.
  for (Asked& asked : asked_) asked.expected_later = LookupAndWait(*alone_, asked.request);
  // Faster than they are answered, so that they wait for each other.
  for (int i = 0; i < kLookups; ++i) {
    if (i == kLookups / 2) Append(*sharing_, kLaterRows, 7);
    Asked& asked = asked_[static_cast<std::size_t>(i)];
    if (i % 10 == 9) asked.cancel->Cancel();
    sharing_->Lookup(asked.request, asked.cancel, [&](absl::StatusOr<LookupResult> result) {
      asked.actual = std::move(result);
      absl::MutexLock lock(&mutex);
      ++answered;
    });
  }
  {
    const auto all = [&] { return answered == kLookups; };
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&all));
  }
  for (int i = 0; i < kLookups; ++i) {
    SCOPED_TRACE(i);
    const Asked& asked = asked_[static_cast<std::size_t>(i)];
    if (i % 10 == 9) {
      EXPECT_EQ(asked.actual.status().code(), absl::StatusCode::kCancelled);
      continue;
    }
    ASSERT_THAT(asked.actual, IsOk());
    const bool is_later = asked.actual->revision != asked.expected->revision;
    ExpectSameBits(*asked.actual, is_later ? *asked.expected_later : *asked.expected);
  }
}

TEST(SharedLookupEndTest, AnEngineAnswersWhatIsBeingPreparedBeforeItGoes) {
  std::unique_ptr<Engine> engine = Engine::Create({.thread_count = 1});
  ASSERT_THAT(engine->CreateStore({.name = "s", .key_dim = 64, .value_dim = 64}), IsOk());
  constexpr std::int64_t kCount = 20'000;
  const std::vector<float> floats = NormalFloats(kCount * 64, 1);
  const MatrixView rows{.data = floats.data(), .rows = kCount, .cols = 64};
  const std::vector<std::vector<std::string>> labels(kCount, {"l"});
  ASSERT_THAT(
      AppendAndWait(*engine, {.store = "s", .keys = rows, .values = rows, .row_labels = labels}),
      IsOk());
  std::atomic<int> answered{0};
  LookupRequest request{.store = "s", .queries = {.data = floats.data(), .rows = 1, .cols = 64}};
  request.filter.any_labels = {"l"};
  for (int i = 0; i < 20; ++i) {
    engine->Lookup(request, std::make_shared<CancelToken>(), [&](const auto& result) {
      EXPECT_THAT(result, IsOk());
      ++answered;
    });
  }
  engine = nullptr;
  EXPECT_EQ(answered, 20);
}

INSTANTIATE_TEST_SUITE_P(HeadsAndKernels, SharedLookupTest,
                         ::testing::Combine(::testing::Values(1, 3),
                                            ::testing::ValuesIn(KernelsHere())),
                         [](const auto& info) {
                           return absl::StrCat(std::get<int>(info.param), "Heads",
                                               TestNameOf(std::get<Kernel>(info.param)));
                         });

}  // namespace
}  // namespace softlookup::testing
