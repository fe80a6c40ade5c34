#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/engine/open_on_log.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/gated_log.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::GatedLog;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

TEST(AppendChainTest, AppendsBeforeOneThatTheFullQueueRefusesStillRun) {
  auto gated_log = std::make_unique<GatedLog>();
  GatedLog& log = *gated_log;
  EngineOptions options{.thread_count = 1};
  options.limits.waiting_append_bytes_max = 100;
  auto opened = OpenOnLog(options, std::move(gated_log), [](const absl::Status&) {});
  ASSERT_THAT(opened.status(), IsOk());
  std::unique_ptr<Engine> engine = *std::move(opened);
  ASSERT_THAT(engine->CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}), IsOk());

  const auto chain = std::make_shared<AppendChain>();
  std::vector<absl::Status> ends(4, absl::UnknownError("not answered"));
  const std::vector<float> floats(100, 1);
  const auto append = [&](std::size_t i, std::int64_t rows) {
    const MatrixView view{floats.data(), rows, 1};
    engine->Append({.store = "s", .keys = view, .values = view, .chain = chain},
                   [&ends, i](const auto& result) { ends[i] = result.status(); });
  };
  log.gated = true;
  append(0, 1);
  log.entered.WaitForNotification();
  append(1, 1);
  append(2, 100);
  EXPECT_THAT(ends[2], StatusIs(absl::StatusCode::kResourceExhausted, ""));
  log.gate.Notify();
  append(3, 1);
  engine.reset();  // Runs what was posted.
  EXPECT_THAT(ends[0], IsOk());
  EXPECT_THAT(ends[1], IsOk());
  EXPECT_THAT(ends[3], StatusIs(absl::StatusCode::kCancelled, "An append before this one"));
}

// The engine answers an append of which the log does not know whether it has it, and goes on with
// other appends once the log knows.
TEST(AppendChainTest, AnAppendWithAnUnknownOutcomeEndsItsChainAndIsSeenOnceItIsKnown) {
  auto gated_log = std::make_unique<GatedLog>();
  GatedLog& log = *gated_log;
  auto opened = OpenOnLog({.thread_count = 1}, std::move(gated_log), [](const absl::Status&) {});
  ASSERT_THAT(opened.status(), IsOk());
  const std::unique_ptr<Engine> engine = *std::move(opened);
  ASSERT_THAT(engine->CreateStore({.name = "s", .key_dim = 1, .value_dim = 1}), IsOk());
  const float one = 1;
  const MatrixView view{&one, 1, 1};
  const auto append = [&](const std::shared_ptr<AppendChain>& chain) {
    return testing::AppendAndWait(*engine,
                                  {.store = "s", .keys = view, .values = view, .chain = chain});
  };
  const auto chain = std::make_shared<AppendChain>(), refused = std::make_shared<AppendChain>();
  EXPECT_THAT(append(chain), IsOk());
  log.result = WithUnknownOutcome(absl::UnavailableError("no answer"));
  EXPECT_THAT(append(chain), StatusIs(absl::StatusCode::kUnavailable, "no answer"));
  EXPECT_EQ(engine->GetStore("s")->row_count, 1u);
  EXPECT_THAT(append(refused), StatusIs(absl::StatusCode::kUnavailable, "not known yet"));
  log.result = absl::OkStatus();
  log.on_settled(true);
  for (const auto& ended : {chain, refused}) {
    EXPECT_THAT(append(ended), StatusIs(absl::StatusCode::kCancelled, "An append before this one"));
  }
  EXPECT_EQ(engine->GetStore("s")->row_count, 2u);
  EXPECT_THAT(append(std::make_shared<AppendChain>()), IsOk());
  EXPECT_EQ(engine->GetStore("s")->row_count, 3u);
}

}  // namespace
}  // namespace softlookup
