#include "core/attention/pass_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/core/attention/played_pass.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

TEST(PassTaskTest, HasTheHeadQueriesOfWhatIsAsked) {
  const AttentionTask asked = TaskOf({.weights = WeightsMode::kAll}, /*num_heads=*/2);
  const CancelToken cancel;
  PassTask task(asked, cancel, /*collected_rows_max=*/7);
  EXPECT_EQ(&task.attention_task(), &asked);
  EXPECT_EQ(task.head_queries().count(), 2);
  EXPECT_EQ(task.head_queries().PlanOf(1).collected_rows_left->load(), 7);
}

TEST(PassTaskTest, ContinuesUntilItIsCancelled) {
  const AttentionTask asked = TaskOf({});
  CancelToken cancel;
  PassTask task(asked, cancel, 0);
  EXPECT_TRUE(task.Continues());
  EXPECT_THAT(task.status(), IsOk());
  cancel.Cancel();
  EXPECT_FALSE(task.Continues());
  EXPECT_FALSE(task.Continues());
  EXPECT_THAT(task.status(), StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST(PassTaskTest, ContinuesUntilItsDeadline) {
  const AttentionTask asked = TaskOf({});
  const CancelToken cancel(absl::Now() - absl::Seconds(1));
  PassTask task(asked, cancel, 0);
  EXPECT_FALSE(task.Continues());
  EXPECT_THAT(task.status(), StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
}

// No head query was left out, so the answer is whole.
TEST(PassTaskTest, IsOkIfItIsCancelledOnceNobodyAsksAnyMore) {
  const AttentionTask asked = TaskOf({});
  CancelToken cancel;
  PassTask task(asked, cancel, 0);
  EXPECT_TRUE(task.Continues());
  cancel.Cancel();
  EXPECT_THAT(task.status(), IsOk());
}

}  // namespace
}  // namespace softlookup
