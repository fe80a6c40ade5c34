// Appends and lookups of inputs, which the store's projection makes keys, values and queries of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/base/error.h"
#include "tests/core/engine/engine_fixture.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

class ProjectionTest : public EngineFixture {
 protected:
  static std::shared_ptr<const Projection> ProjectionOf(std::int64_t input_dim,
                                                        std::int64_t key_dim,
                                                        std::int64_t value_dim) {
    return std::make_shared<const Projection>(
        Projection{.input_dim = input_dim,
                   .query = std::vector<float>(key_dim * input_dim, 1),
                   .key = std::vector<float>(key_dim * input_dim, 1),
                   .value = std::vector<float>(value_dim * input_dim, 1)});
  }
  // With one thread, and a store "s" that projects 64 dimensions to 256 and 256.
  static std::unique_ptr<Engine> EngineThatProjects() {
    std::unique_ptr<Engine> engine = Engine::Create({.thread_count = 1});
    EXPECT_THAT(engine->CreateStore({.name = "s",
                                     .key_dim = 256,
                                     .value_dim = 256,
                                     .projection = ProjectionOf(64, 256, 256)}),
                IsOk());
    return engine;
  }
};

TEST_F(ProjectionTest, AWaitingLookupTakesTheProjectionThatComesMeanwhile) {
  Create("s", 2, 1);
  ASSERT_THAT(Append("s", {1, 0, 0, 1}, {10, 20}), IsOk());
  const std::vector<float> input = {1, 2, 3};
  absl::StatusOr<LookupResult> result;
  absl::Notification done;
  engine_->Lookup({.store = "s", .inputs = MatrixView{input.data(), 1, 3}, .min_revision = 3},
                  std::make_shared<CancelToken>(), [&](auto r) {
                    result = std::move(r);
                    done.Notify();
                  });
  ASSERT_FALSE(done.HasBeenNotified());
  ASSERT_THAT(engine_->UpdateStore("s", {.projection = ProjectionOf(3, 2, 1)}), IsOk());
  done.WaitForNotification();
  ASSERT_THAT(result, IsOk());
  EXPECT_NEAR(result->values[0], 15, 1e-4);
}

TEST_F(ProjectionTest, ALookupThatCanNeverBeRightDoesNotWait) {
  Create("s");
  const std::vector<float> query = {1, NAN, 3};
  const auto refusal = [&](LookupRequest request) {
    request.store = "s";
    request.min_revision = 1000;
    const auto cancel = std::make_shared<CancelToken>();
    absl::Status status;
    engine_->Lookup(request, cancel, [&](auto result) { status = result.status(); });
    cancel->Cancel();
    return status;
  };
  EXPECT_THAT(refusal({.queries = {query.data(), 1, 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument, "queries: 1 column,"));
  EXPECT_THAT(refusal({.inputs = MatrixView{query.data(), 1, 3}}),
              StatusIs(absl::StatusCode::kInvalidArgument, "inputs: row 0, column 1 is NaN"));
  EXPECT_THAT(refusal({.queries = {query.data(), 0, 2}, .source = Source::kMemory, .memory = "m"}),
              StatusIs(absl::StatusCode::kNotFound, "no memory \"m\""));
}

TEST_F(ProjectionTest, FewInputsMustNotBecomeManyBytes) {
  const auto engine = Engine::Create({.limits = {.message_bytes_max = 1 << 20}, .thread_count = 1});
  const auto projection = ProjectionOf(1, 1024, 1024);
  ASSERT_THAT(engine->CreateStore(
                  {.name = "s", .key_dim = 1024, .value_dim = 1024, .projection = projection}),
              IsOk());
  const std::vector<float> inputs(512, 1);
  const auto rows = [&](std::int64_t count) { return MatrixView{inputs.data(), count, 1}; };
  const auto append = [&](std::int64_t count) {
    return softlookup::testing::AppendAndWait(*engine, {.store = "s", .inputs = rows(count)});
  };
  const auto lookup = [&](std::int64_t count) {
    absl::Status status;
    absl::Notification done;
    engine->Lookup({.store = "s", .inputs = rows(count)}, std::make_shared<CancelToken>(),
                   [&](auto result) {
                     status = result.status();
                     done.Notify();
                   });
    done.WaitForNotification();
    return status;
  };
  const auto attend = [&](std::int64_t count) {
    absl::Status status;
    absl::Notification done;
    engine->Attend({.inputs = rows(count), .projection = projection, .self = true},
                   std::make_shared<CancelToken>(), [&](auto result) {
                     status = result.status();
                     done.Notify();
                   });
    done.WaitForNotification();
    return status;
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(append(128), IsOk());
  EXPECT_THAT(append(129), StatusIs(kInvalid, "inputs: the projections of 129 rows"));
  EXPECT_EQ(ReasonOf(append(129).status()), "LIMIT_EXCEEDED");
  EXPECT_THAT(lookup(200), IsOk());
  EXPECT_THAT(lookup(257), StatusIs(kInvalid, "inputs: the projections of 257 rows"));
  EXPECT_THAT(attend(80), IsOk());
  EXPECT_THAT(attend(86), StatusIs(kInvalid, "inputs: the projections of 86 rows"));
}

TEST_F(ProjectionTest, AProjectionThatTakesLongRunsOnThePoolAndKeepsItsTurn) {
  const std::unique_ptr<Engine> engine = EngineThatProjects();
  std::vector<float> inputs(64 * 64, 1);
  const MatrixView many{inputs.data(), 64, 64}, few{inputs.data(), 1, 64};
  absl::Notification turn, first, second;
  AppendResult results[2];
  {
    const BusyPool busy(*engine);
    engine->Append(
        {.store = "s", .inputs = many},
        [&](auto result) {
          ASSERT_THAT(result, IsOk());
          results[0] = *result;
          first.Notify();
        },
        [&] { turn.Notify(); });
    // Nobody needs the request any more.
    std::fill(inputs.begin(), inputs.end(), NAN);
    EXPECT_FALSE(turn.HasBeenNotified());
    EXPECT_FALSE(first.HasBeenNotified());
  }
  turn.WaitForNotification();
  std::fill(inputs.begin(), inputs.end(), 1);
  engine->Append({.store = "s", .inputs = few}, [&](auto result) {
    ASSERT_THAT(result, IsOk());
    results[1] = *result;
    second.Notify();
  });
  second.WaitForNotification();
  EXPECT_TRUE(first.HasBeenNotified()) << "answered in the order of the turns";
  EXPECT_EQ(results[0].first_position, 0u);
  EXPECT_EQ(results[1].first_position, 64u);
}

TEST_F(ProjectionTest, AProjectionEndsAtItsDeadline) {
  const std::unique_ptr<Engine> engine = EngineThatProjects();
  const std::vector<float> inputs(64 * 64, 1);
  const auto chain = std::make_shared<AppendChain>();
  EXPECT_THAT(
      softlookup::testing::AppendAndWait(*engine, {.store = "s",
                                                   .inputs = MatrixView{inputs.data(), 64, 64},
                                                   .chain = chain,
                                                   .deadline = absl::Now()}),
      StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(
      softlookup::testing::AppendAndWait(
          *engine, {.store = "s", .inputs = MatrixView{inputs.data(), 1, 64}, .chain = chain})
          .status(),
      StatusIs(absl::StatusCode::kCancelled, "An append before this one"));
  EXPECT_EQ(engine->GetStore("s")->row_count, 0u);
}

TEST_F(ProjectionTest, AnEngineThatEndsStillWritesWhatItProjects) {
  absl::StatusOr<AppendResult> result = absl::UnknownError("never answered");
  {
    const std::unique_ptr<Engine> engine = EngineThatProjects();
    const std::vector<float> inputs(512 * 64, 1);
    engine->Append({.store = "s", .inputs = MatrixView{inputs.data(), 512, 64}},
                   [&](auto r) { result = std::move(r); });
  }
  EXPECT_THAT(result, IsOk());
}

}  // namespace
}  // namespace softlookup
