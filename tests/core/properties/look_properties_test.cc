// Lookups that look twice at a store's rows, on random stores, queries and options. A failure
// prints SOFTLOOKUP_TEST_SEED=N; with that in the environment the failing case comes first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/base/cost.h"
#include "softlookup/engine.h"
#include "tests/core/properties/look_case.h"
#include "tests/core/properties/stored_rows.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/sanitized.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::properties {
namespace {

using ::softlookup::testing::FirstSeed;
using ::softlookup::testing::LookupAndWait;
using ::softlookup::testing::TemporaryDirectory;

constexpr int kParts = 8;
// With SOFTLOOKUP_LONG_TESTS in the environment, 2,000 cases in all parts together.
int CasesOfPart() {
  if (testing::kSanitized) return 8;
  return std::getenv("SOFTLOOKUP_LONG_TESTS") != nullptr ? 250 : 80;
}
constexpr int kLookups = 3;

// The least part of the SOFT queries that must leave rows out. Too few say nothing.
constexpr double kLeftOutPartMin = 0.2;
constexpr std::int64_t kSoftQueriesMin = 1000;
// Fewer lookups than this do not show whether lookups share passes: a few may all be too small to.
constexpr std::int64_t kLookupsMin = 200;

std::string DescriptionOf(const LookupRequest& request) {
  const AttentionOptions& options = request.options;
  const RowFilter& filter = request.filter;
  const auto number = [](const auto& optional) {
    return optional ? absl::StrCat(*optional) : "none";
  };
  return absl::StrFormat(
      "score %d, temperature %.9g, mode %d, top_k %d, max_error %s, causal %d from %d; begin %s, "
      "end %s, last %s, %d and %d labels, %d ids; source %d; %d queries; min_score %s, weights %d "
      "of "
      "%d",
      static_cast<int>(options.score), *options.temperature, static_cast<int>(options.mode),
      options.top_k, number(options.max_error), options.causal, options.causal_offset,
      number(filter.begin), number(filter.end), number(filter.last), filter.any_labels.size(),
      filter.no_labels.size(), filter.exclude_ids.size(), static_cast<int>(request.source),
      request.queries.rows, number(request.options.min_score),
      static_cast<int>(request.options.weights), request.options.top_weights);
}

// Asks all lookups while another one in the same store is answered. So they wait, and then share a
// pass. Only those that are so small that they are answered at once do not.
std::vector<absl::StatusOr<LookupResult>> AnswersTogether(Engine& engine, const StoredRows& rows,
                                                          const std::deque<RandomLookup>& lookups) {
  absl::Mutex mutex;
  std::size_t answered = 0;
  const auto count_answer = [&] {
    absl::MutexLock lock(&mutex);
    ++answered;
  };
  // Enough queries even if most rows are deleted.
  const double query_cost = static_cast<double>(rows.count() * (rows.key_dim + rows.value_dim)) / 4;
  const auto query_count = static_cast<std::int64_t>(kInlineCostMax / query_cost) + 1;
  const std::vector<float> queries(query_count * rows.key_dim, 0.0f);
  absl::Notification begun, may_end;
  const std::thread::id asking = std::this_thread::get_id();
  engine.Lookup({.store = lookups[0].request.store,
                 .queries = {.data = queries.data(), .rows = query_count, .cols = rows.key_dim}},
                std::make_shared<CancelToken>(), [&](const absl::StatusOr<LookupResult>& result) {
                  EXPECT_THAT(result, IsOk());
                  begun.Notify();
                  if (std::this_thread::get_id() != asking) may_end.WaitForNotification();
                  count_answer();
                });
  begun.WaitForNotification();
  std::vector<absl::StatusOr<LookupResult>> results(lookups.size());
  for (std::size_t i = 0; i < lookups.size(); ++i) {
    engine.Lookup(lookups[i].request, std::make_shared<CancelToken>(),
                  [&, i](absl::StatusOr<LookupResult> result) {
                    results[i] = std::move(result);
                    count_answer();
                  });
  }
  may_end.Notify();
  const auto all = [&] { return answered == lookups.size() + 1; };
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&all));
  return results;
}

class LookPropertyTest : public ::testing::TestWithParam<int> {
 protected:
  void Run(std::uint64_t seed) {
    LookCase look(seed);
    SCOPED_TRACE(look.Description());
    // The portable tiles are slow.
    const Kernel kernel = seed % 32 == 0 ? Kernel::kPortableTiles : Kernel::kSimd;
    const std::unique_ptr<Engine> alone =
        Engine::Create({.thread_count = 1, .queries_per_pass_max = 1, .kernel = kernel});
    const std::unique_ptr<Engine> sharing =
        Engine::Create({.limits = {.lookup_wait_max = absl::InfiniteDuration()},
                        .thread_count = 4,
                        .pass_wait_max = absl::ZeroDuration(),
                        .kernel = kernel});
    for (Engine* engine : {alone.get(), sharing.get()}) {
      ASSERT_NO_FATAL_FAILURE(look.WriteTo(*engine, "s"));
    }
    if (look.rows().storage == StorageType::kBfloat16) {
      ASSERT_NO_FATAL_FAILURE(look.ReadBack(*alone, "s"));
    }
    std::deque<RandomLookup> lookups;
    std::vector<LookupResult> expected;
    for (int i = 0; i < kLookups; ++i) {
      lookups.push_back(look.MakeLookup("s"));
      SCOPED_TRACE(DescriptionOf(lookups.back().request));
      const auto result = LookupAndWait(*alone, lookups.back().request);
      ASSERT_THAT(result, IsOk());
      ASSERT_NO_FATAL_FAILURE(CheckAnswer(look, lookups.back().request, *result, *alone));
      expected.push_back(*result);
    }
    const auto actual = AnswersTogether(*sharing, look.rows(), lookups);
    for (int i = 0; i < kLookups; ++i) {
      SCOPED_TRACE(DescriptionOf(lookups[i].request));
      ASSERT_THAT(actual[i], IsOk());
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(*actual[i], expected[i]));
    }
    const HistogramCounts passes = sharing->stats().pass_lookups;
    lookups_ += passes.sum;
    passes_ += std::accumulate(passes.counts.begin(), passes.counts.end(), std::int64_t{0});
  }

  // Checks all queries' statistics. Compares some queries with the reference, and with the answers
  // that they have alone.
  void CheckAnswer(LookCase& look, const LookupRequest& request, const LookupResult& result,
                   Engine& engine) {
    const std::int64_t count = request.queries.rows, value_dim = look.rows().value_dim;
    const bool is_soft = request.options.mode == Mode::kSoft && request.options.top_k == 0 &&
                         !request.options.min_score &&
                         request.options.weights == WeightsMode::kUnspecified;
    const std::int64_t some = look.draw().Int(0, count - 1);
    for (std::int64_t query = 0; query < count; ++query) {
      SCOPED_TRACE(absl::StrCat("query ", query));
      const QueryStats& stats = result.stats[query];
      const float* values = &result.values[query * value_dim];
      for (std::int64_t i = 0; i < value_dim; ++i) ASSERT_TRUE(std::isfinite(values[i]));
      ASSERT_FALSE(std::isnan(stats.log_sum_exp) || std::isnan(stats.max_logit) ||
                   std::isnan(stats.entropy) || std::isnan(stats.error_bound));
      if (is_soft && stats.counted_rows > 0) {
        ++soft_;
        left_out_ += stats.summed_rows < stats.counted_rows ? 1 : 0;
      }
      if (query != 0 && query != some) continue;
      const Expected expected = Expect(look.rows(), request, query, engine);
      ranked_ += expected.is_ranked ? 1 : 0;
      close_calls_ += expected.is_close_call ? 1 : 0;
      ASSERT_NO_FATAL_FAILURE(
          ExpectWithinBounds(request.options, look.rows().key_dim, expected, stats, values));
      LookupRequest own = request;
      own.queries = {.data = request.queries.row(query), .rows = 1, .cols = look.rows().key_dim};
      own.options.causal_offset += static_cast<std::uint64_t>(query);
      const auto alone = LookupAndWait(engine, own);
      ASSERT_THAT(alone, IsOk());
      ASSERT_EQ(alone->values, std::vector<float>(values, values + value_dim));
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(alone->stats[0], stats));
      if (!result.weights.empty()) {
        ASSERT_NO_FATAL_FAILURE(ExpectSameBits(alone->weights[0], result.weights[query]));
      }
    }
  }

  std::int64_t soft_ = 0;         // SOFT queries over some rows, all of them weighed, none listed.
  std::int64_t left_out_ = 0;     // Those of which rows were left out.
  std::int64_t ranked_ = 0;       // HARD and top_k queries that were compared with the reference.
  std::int64_t close_calls_ = 0;  // Those of which the reference does not decide the rows.
  std::int64_t lookups_ = 0;
  std::int64_t passes_ = 0;
};

TEST_P(LookPropertyTest, AnswersKeepTheirBoundsAndHaveTheSameBitsInAnyCompany) {
  const int cases = CasesOfPart();
  const std::uint64_t first = FirstSeed() + GetParam() * cases;
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    const std::uint64_t seed = first + i;
    SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", seed));
    Run(seed);
  }
  const double left_out_part = static_cast<double>(left_out_) / static_cast<double>(soft_);
  std::cout << absl::StrFormat(
      "rows were left out for %d of %d SOFT queries (%.0f %%); %d ranked, %d of them too close to "
      "call; %d lookups in %d passes\n",
      left_out_, soft_, 100 * left_out_part, ranked_, close_calls_, lookups_, passes_);
  if (HasFailure()) return;
  if (soft_ >= kSoftQueriesMin) {
    EXPECT_GE(left_out_part, kLeftOutPartMin);
  }
  EXPECT_LE(close_calls_ * 20, ranked_) << "the reference decides too few";
  if (lookups_ >= kLookupsMin) {
    EXPECT_LT(passes_ * 5, lookups_ * 4) << "too few lookups shared a pass";
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, LookPropertyTest, ::testing::Range(0, kParts));

TEST(LookReloadTest, AStoreThatIsLoadedAgainAnswersWithTheSameBits) {
  constexpr int kStores = 12;
  const std::uint64_t first = FirstSeed();
  SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", first));
  const TemporaryDirectory directory;
  const auto open = [&] {
    auto engine = Engine::Open({.thread_count = 2, .kernel = Kernel::kSimd}, directory.path(),
                               [](const absl::Status& damage) { ADD_FAILURE() << damage; });
    EXPECT_THAT(engine, IsOk());
    return engine.ok() ? *std::move(engine) : nullptr;
  };
  std::unique_ptr<Engine> engine = open();
  ASSERT_NE(engine, nullptr);
  std::deque<RandomLookup> lookups;
  std::vector<LookupResult> expected;
  int left_out = 0;
  for (int i = 0; i < kStores; ++i) {
    const std::string name = absl::StrCat("s", i);
    LookCase look(first + i);
    ASSERT_NO_FATAL_FAILURE(look.WriteTo(*engine, name));
    for (int j = 0; j < kLookups; ++j) {
      lookups.push_back(look.MakeLookup(name));
      const auto result = LookupAndWait(*engine, lookups.back().request);
      ASSERT_THAT(result, IsOk());
      expected.push_back(*result);
      for (const QueryStats& stats : result->stats) {
        left_out += stats.summed_rows > 1 && stats.summed_rows < stats.counted_rows ? 1 : 0;
      }
    }
  }
  EXPECT_GE(left_out, kStores);
  engine = nullptr;  // One process at a time has the directory.
  engine = open();
  ASSERT_NE(engine, nullptr);
  for (std::size_t i = 0; i < lookups.size(); ++i) {
    SCOPED_TRACE(absl::StrCat(lookups[i].request.store, ": ", DescriptionOf(lookups[i].request)));
    const auto actual = LookupAndWait(*engine, lookups[i].request);
    ASSERT_THAT(actual, IsOk());
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(*actual, expected[i]));
  }
}

}  // namespace
}  // namespace softlookup::properties
